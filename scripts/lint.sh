#!/usr/bin/env bash
# Checks format, style, layers, the API reference and scripts; called by `./run lint`. Goes on after a failure, and says
# at the end what failed. Usage: lint.sh [CHECK...], each of: layers shell format headers includes cppcheck tidy
# reference python; all of them by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Each check stands left of "||" below, where the shell does not stop at errors: checks return their failures.

# The tool of LLVM 14 where it is installed, else the distribution's own version.
llvm() { command -v "$1-14" || command -v "$1"; }

# files PATTERN...: what git tracks or would track.
files() { git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
done; }

check_layers() { python3 scripts/check_layers.py; }

check_shell() { files run .ci/run 'scripts/*.sh' | xargs shellcheck --external-sources; }

# Prints the places only; what to do about them is one command.
check_format() {
    local format
    format=$(llvm clang-format) && "$format" --version >/dev/null || return 1
    ! files '*.cpp' '*.hpp' '*.h' | xargs -r "$format" --dry-run 2>&1 | grep -E '^[^ ]+:[0-9]+:[0-9]+: ' || {
        echo "to mend: git ls-files '*.cpp' '*.hpp' '*.h' | xargs $(basename "$format") -i"
        return 1
    }
}

check_headers() { scripts/check_headers.sh; }

check_includes() { python3 scripts/check_includes.py; }

check_tidy() {
    "${CMAKE:-cmake}" --preset lint -DCMAKE_CXX_COMPILER="$(llvm clang++)" --log-level=WARNING >/dev/null ||
        return 1
    python3 scripts/tidy.py "$(llvm clang-tidy)" build/lint
}

check_cppcheck() {
    cppcheck --quiet --error-exitcode=1 --std=c++20 --language=c++ --enable=warning,performance,portability \
        --suppressions-list=scripts/cppcheck.txt --template='{file}:{line}: {severity}: {message} [{id}]' \
        -j "$(nproc)" -I include -I src -I tools src tools
}

# Public declarations without a comment and comments that Doxygen does not understand (the Doxyfile makes each warning an
# error), and links of the Markdown sources that lead nowhere.
check_reference() {
    local status=0
    mkdir -p build
    doxygen docs/Doxyfile || status=1
    python3 scripts/check_links.py || status=1
    return $status
}

# Format, style and types of the Python package: of its sources, and of what the extension module says in its stub.
check_python() {
    local bin=build/test-venv/bin status=0
    "$bin/ruff" check || status=1
    "$bin/ruff" format --check || {
        echo "to mend: $bin/ruff format"
        status=1
    }
    MYPYPATH=build/release/python "$bin/mypy" --strict -p weir -p weir_conformance || status=1
    # Examples have no types, so that they read well; what they call has.
    MYPYPATH=build/release/python "$bin/mypy" --check-untyped-defs examples/python/*.py || status=1
    return $status
}

failed=()
[ $# -gt 0 ] || set -- layers shell format headers includes cppcheck tidy reference python
for check in "$@"; do
    printf '==> %s\n' "$check"
    start=$SECONDS
    "check_$check" || failed+=("$check")
    printf '%s: %d s\n' "$check" $((SECONDS - start))
done
[ ${#failed[@]} -eq 0 ] || printf 'lint: failed: %s\n' "${failed[*]}"
echo "$(($# - ${#failed[@]})) passed, ${#failed[@]} failed, 0 skipped"
[ ${#failed[@]} -eq 0 ]
