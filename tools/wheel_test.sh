#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a wheel into an empty environment and runs the demo and a verification there, with nothing
# on the path but that environment: no compiler, no cmake, no source tree.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -eq 1 ] && [ -f "$1" ] || {
  echo "usage: wheel_test.sh WHEEL; make wheel builds one" >&2
  exit 2
}
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv clean
clean/bin/python -m pip --disable-pip-version-check -q install -c "$root/constraints.txt" torch
clean/bin/python -m pip --disable-pip-version-check -q install -c "$root/constraints.txt" \
  --only-binary :all: "$wheel"

alone() { env -i HOME="$folder" PATH="$folder/clean/bin" LC_ALL=C.UTF-8 "$@"; }
alone python - <<'PYTHON'
import shutil
import splatcert

found = [tool for tool in ("cc", "gcc", "g++", "clang", "cmake", "make", "ld") if shutil.which(tool)]
assert not found, f"on the path: {found}"
print("wheel    ", splatcert.__version__, "in", splatcert.__path__[0])
PYTHON
alone splatcert demo --quick -o demo
alone splatcert verify demo/certificate
