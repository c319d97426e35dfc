# shellcheck shell=bash
# Sourced by ../run: finds the tools, configures and builds.

# find_cmake: sets CMAKE and CTEST to the first ones of version 3.25 or newer; fails if there are none.
find_cmake() {
    local candidate version
    while read -r candidate; do
        version=$("$candidate" --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
        if [ -n "$version" ] && [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ]; then
            CMAKE=$candidate
            # shellcheck disable=SC2034  # used by ../run
            CTEST=$(dirname "$candidate")/ctest
            return
        fi
    done < <(type -aP cmake)
    return 1
}

# build_packages: the packages that every build needs and this machine lacks.
build_packages() {
    find_cmake || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v "${CXX:-g++}" >/dev/null || echo g++
    command -v ccache >/dev/null || echo ccache
    echo nlohmann-json3-dev
    echo libeigen3-dev
}

# build PRESET PARTS TARGET...: configures where needed, and builds the targets. PARTS are some of CLI TESTS BENCH
# EXAMPLES PYTHON; the last one for the interpreter of build/test-venv. A fresh build folder gets these alone, so that a word needs no packages but its own; later words add theirs.
build() {
    local preset=$1 parts=$2 folder=build/$1 part settings=()
    shift 2
    find_cmake || fail "no cmake of version 3.25 or newer"
    # What a configuration left behind that failed does not count.
    [ -f "$folder/build.ninja" ] || settings=("-DWEIR_BUILD_"{CLI,TESTS,BENCH,EXAMPLES}"=OFF")
    for part in $parts; do
        [ ${#settings[@]} -eq 0 ] && grep -qs "^WEIR_BUILD_$part:BOOL=ON" "$folder/CMakeCache.txt" ||
            settings+=("-DWEIR_BUILD_$part=ON")
        [ "$part" != PYTHON ] || [ ${#settings[@]} -eq 0 ] ||
            settings+=("-DPython_EXECUTABLE=$PWD/build/test-venv/bin/python")
    done
    [ ${#settings[@]} -eq 0 ] || "$CMAKE" --preset "$preset" "${settings[@]}"
    "$CMAKE" --build "$folder" --parallel "$(nproc)" --target "$@"
}
