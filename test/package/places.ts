// Where the tests of the package find its tarballs, the users' folders and the hosts.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const here = fileURLToPath(new URL(".", import.meta.url));
export const packages = `${root}build/package`;

/** Folders in which the packages are installed as a user would; `plain` has no addon. */
export const users = { plain: `${packages}/plain`, native: `${packages}/native` };
export type User = keyof typeof users;

const installed = `${here}node_modules`;

const permissions = ["--no-prompt", "--allow-read", "--allow-env", "--allow-ffi"];

/** Commands that run a program, by the host's name. */
export const hosts: Record<string, string[]> = {
  [`node ${process.versions.node.split(".")[0]}`]: [process.execPath],
  "node 22": [`${installed}/node22/bin/node`],
  "node 24": [`${installed}/node24/bin/node`],
  deno: [`${installed}/@deno/linux-x64-glibc/deno`, "run", "--quiet", ...permissions],
  bun: [`${installed}/@oven/bun-linux-x64/bin/bun`],
};

const run = promisify(execFile);

/** Runs a command in a user's folder; returns its output, or throws with it in the message. */
export async function runAs(user: User, [command, ...args]: string[], env = {}) {
  const { CRESSET_ADDON: _, ...inherited } = process.env;
  const options = { cwd: users[user], env: { ...inherited, ...env }, timeout: 100_000 };
  return await run(command!, args, options);
}
