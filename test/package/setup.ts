// Before the tests: installs hosts and bundlers, packs Cresset, installs the tarballs as users do.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { here, packages, root, users } from "./places.js";

const npm = (cwd: string, ...args: string[]) =>
  execFileSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    stdio: ["ignore", "ignore", "inherit"],
  });

function installHosts(): void {
  const record = `${here}node_modules/.package-lock.json`;
  const lock = `${here}package-lock.json`;
  if (existsSync(record) && statSync(record).mtimeMs >= statSync(lock).mtimeMs) return;
  npm(here, "ci", "--ignore-scripts");
}

/** Installs tarballs in a fresh folder, without asking the registry for anything. */
function installAs(folder: string, tarballs: string[]): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/package.json`, `{ "name": "user", "private": true }\n`);
  npm(folder, "install", "--offline", ...tarballs.map((name) => `${packages}/${name}`));
  cpSync(`${here}programs`, folder, { recursive: true });
}

export default function setup(): void {
  installHosts();
  execFileSync(process.execPath, ["tools/pack.mjs"], { cwd: root, stdio: "ignore" });
  const tarballs = readdirSync(packages).filter((name) => name.endsWith(".tgz"));
  installAs(
    users.plain,
    tarballs.filter((name) => /^cresset-\d/.test(name)),
  );
  installAs(users.native, tarballs);
}
