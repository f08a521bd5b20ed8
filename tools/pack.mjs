// `npm run pack`: makes the npm packages in build/package: cresset, and this machine's addon.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { main, must, root, step } from "./steps.mjs";

const folder = join(root, "build", "package");
const place = `${process.platform}-${process.arch}`;
const { version, license, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Packs one folder and returns the tarball's name. */
function pack(from) {
  return must("npm", ["pack", from, "--pack-destination", folder, "--loglevel=error"]).trim();
}

/** Libraries that a plain Linux may lack come with the addon: their Debian packages. */
const brought = {
  dnnl: "libdnnl2",
  OpenCL: "ocl-icd-libopencl1",
  gomp: "libgomp1",
  hwy: "libhwy1",
};

/** Puts the libraries that an addon needs into a folder, and their licences into one file. */
function bringLibraries(addon, target) {
  if (process.platform !== "linux") return;
  let notices = "";
  for (const [, name, path] of must("ldd", [addon]).matchAll(/^\s*lib(\w+)\.so\S* => (\S+)/gm)) {
    if (!(name in brought)) continue;
    copyFileSync(path, join(target, basename(path)));
    const licence = readFileSync(`/usr/share/doc/${brought[name]}/copyright`, "utf8");
    notices += `${basename(path)}\n\n${licence}\n\n`;
  }
  writeFileSync(join(target, "NOTICES"), notices);
}

/** The package with the built addon; npm installs it only where the addon can run. */
function packAddon() {
  const source = join(folder, place);
  const addon = join(root, "build", "release", "cresset.node");
  mkdirSync(source, { recursive: true });
  const manifest = {
    name: `@cresset/${place}`,
    version,
    description: `Cresset's native core for ${place}`,
    license,
    os: [process.platform],
    cpu: [process.arch],
    ...(process.platform === "linux" ? { libc: ["glibc"] } : {}),
    engines,
    main: "./cresset.node",
    files: ["cresset.node", "*.so.*", "NOTICES"],
  };
  writeFileSync(join(source, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const file of [addon, join(root, "LICENSE")]) {
    copyFileSync(file, join(source, basename(file)));
  }
  bringLibraries(addon, source);
  return pack(source);
}

main(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  step("cresset", () => pack(root));
  step(`@cresset/${place}`, packAddon);
});
