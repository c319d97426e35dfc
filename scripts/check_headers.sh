#!/usr/bin/env bash
# Compiles each public header alone, with every compiler that is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

compilers=(g++)
clang=$(command -v clang++-14 || command -v clang++ || true)
[ -z "$clang" ] || compilers+=("$clang")

status=0
for compiler in "${compilers[@]}"; do
    # The interface for C, in both languages.
    "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror -Iinclude -include weir.h -x c++ /dev/null || status=1
    # Of what only nvcc can compile, examples/CMakeLists.txt takes care.
    find include -name '*.hpp' ! -name cuda_launch.hpp -print0 |
        xargs -0 -r -P "$(nproc)" -I '{}' "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror \
            -Iinclude -include '{}' -x c++ /dev/null || status=1
done
for compiler in gcc "${clang/clang++/clang}"; do
    [ -z "$compiler" ] || ! command -v "$compiler" >/dev/null ||
        "$compiler" -std=c11 -fsyntax-only -Wall -Wextra -Werror -pedantic -Iinclude -include weir.h -x c /dev/null || status=1
done
exit $status
