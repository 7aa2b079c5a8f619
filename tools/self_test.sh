#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The self-test of the native core with every compiler that is installed: GCC and Clang for this
# machine, Debian's cross compiler for aarch64 under qemu, and Clang for Windows under Wine.
# Arguments choose among gcc, clang, aarch64 and windows; a chosen one that is missing is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
export WINEDEBUG=-all WINEPREFIX=$PWD/build/self-test/wine

run() { # name, command that runs the program, arguments for cmake
  local name=$1 runner=$2 folder=build/self-test/$1
  shift 2
  echo "== $name: $runner"
  if ! { cmake -S . -B "$folder" -DSPLATCERT_SELF_TEST=ON "$@" && cmake --build "$folder"; } \
    >"$folder.log" 2>&1; then
    tail -n 30 "$folder.log" >&2
    exit 1
  fi
  $runner "$(ls "$folder"/self_test "$folder"/self_test.exe 2>/dev/null)"
}
needs() { # name, commands
  local name=$1 tool
  shift
  for tool in "$@"; do
    command -v "$tool" >/dev/null && continue
    [ "$all" = yes ] || { echo "== $name: $tool is not installed" >&2; exit 1; }
    echo "== $name: skipped, $tool is not installed"
    return 1
  done
}

all=no
[ $# -gt 0 ] || { all=yes; set -- gcc clang aarch64 windows; }
mkdir -p build/self-test
PATH=$PATH:/usr/lib/wine
for name in "$@"; do
  case $name in
  gcc)
    if needs gcc g++; then run gcc env -DCMAKE_CXX_COMPILER=g++; fi
    ;;
  clang)
    if needs clang clang++; then run clang env -DCMAKE_CXX_COMPILER=clang++; fi
    ;;
  aarch64)
    if needs aarch64 aarch64-linux-gnu-g++ qemu-aarch64; then
      run aarch64 qemu-aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_EXE_LINKER_FLAGS=-static
    fi
    ;;
  windows)
    if needs windows clang++ x86_64-w64-mingw32-g++-posix wine64; then
      libraries=$(dirname "$(x86_64-w64-mingw32-g++-posix -print-libgcc-file-name)")
      linker=$(command -v x86_64-w64-mingw32-ld)
      headers="-isystem $libraries/include/c++ -isystem $libraries/include/c++/x86_64-w64-mingw32"
      run windows wine64 -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_SYSTEM_NAME=Windows \
        -DCMAKE_SYSTEM_PROCESSOR=AMD64 -DCMAKE_CXX_COMPILER_TARGET=x86_64-w64-mingw32 \
        -DCMAKE_CXX_FLAGS="$headers" -DCMAKE_CXX_STANDARD_LIBRARIES="-lstdc++ -lpthread" \
        -DCMAKE_EXE_LINKER_FLAGS="-static -fuse-ld=$linker -L$libraries -B$libraries"
    fi
    ;;
  *)
    echo "self_test.sh: $name is not one of gcc, clang, aarch64, windows" >&2
    exit 2
    ;;
  esac
done
