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
            "env", "CRESSET_NODE_INCLUDE_DIR=<(node_root_dir)/include/node",
            "node", "tools/build.mjs", "native"
          ]
        }
      ]
    }
  ]
}
