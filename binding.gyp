# Lets node-gyp build the addon: it only passes its headers on to CMake, the one build graph.
{
  "targets": [
    {
      "target_name": "cresset",
      "type": "none",
      "actions": [
        {
          "action_name": "cmake",
          "inputs": ["CMakeLists.txt"],
          "outputs": ["build/release/always-run"],
          "action": [
            "node", "tools/build.mjs", "native", "--node-headers=<(node_root_dir)/include/node"
          ]
        }
      ]
    }
  ]
}
