// `npm run pack`: makes the npm packages in build/package: cresset, and the addon of this machine.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { main, must, root, step } from "./steps.mjs";

const folder = join(root, "build", "package");
const place = `${process.platform}-${process.arch}`;
const { version, license, engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Packs one folder and returns the tarball's name. */
function pack(from) {
  return must("npm", ["pack", from, "--pack-destination", folder, "--loglevel=error"]).trim();
}

/** The package with the built addon; npm installs it only where the addon can run. */
function packAddon() {
  const source = join(folder, place);
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
    files: ["cresset.node"],
  };
  writeFileSync(join(source, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  copyFileSync(join(root, "build", "release", "cresset.node"), join(source, "cresset.node"));
  copyFileSync(join(root, "LICENSE"), join(source, "LICENSE"));
  return pack(source);
}

main(() => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  step("cresset", () => pack(root));
  step(`@cresset/${place}`, packAddon);
});
