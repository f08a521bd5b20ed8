#!/usr/bin/env bash
# The one list of Debian packages that Cresset is built with; installs what is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache clang-format
  libdnnl-dev libhwy-dev libeigen3-dev libgtest-dev xz-utils
  emscripten node-acorn chromium
)

command -v dpkg-query >/dev/null || {
  echo "system-packages: expected a Debian system; install these by hand: ${packages[*]}" >&2
  exit 1
}

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "Cresset's build needs Debian packages that are missing here. Please run:" >&2
  echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends "${missing[@]}"
echo "installed: ${missing[*]}"
