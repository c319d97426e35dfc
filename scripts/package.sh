#!/usr/bin/env bash
# Makes the Debian package of a build whose libraries and commands are built. Usage: package.sh BUILD RESULT
set -euo pipefail
: "${CMAKE:=cmake}"
build=$(realpath "$1")
result=$(realpath -m "$2")

# CPack would build everything first, tests too: it gets a finished installation instead.
stage=$result/stage
rm -rf "$result"
mkdir -p "$result"
DESTDIR=$stage "$CMAKE" --install "$build" --prefix /usr --strip >"$result/install.log"
find "$stage" -name '*.a' -exec strip --strip-debug '{}' +
"$(dirname "$(command -v "$CMAKE")")/cpack" --config "$build/CPackConfig.cmake" -B "$result" \
    -D CPACK_INSTALL_CMAKE_PROJECTS= -D "CPACK_INSTALLED_DIRECTORIES=$stage;/" >"$result/cpack.log" 2>&1 || {
    cat "$result/cpack.log" >&2
    exit 1
}
rm -rf "$stage" "$result/_CPack_Packages"
