#!/usr/bin/env bash
# Runs the tests of an archive made by `./run bundle-cuda` on this machine's CUDA device: tar xf weir-cuda.tar.xz && weir-cuda/run [PART...]
# PARTS: programs (conformance, unit tests, random programs), python (builds the package with this machine's python3, which needs nanobind,
# and runs its tests), sanitizer (compute-sanitizer over a short form). All by default; the last one is left out where the tool is missing.
# Logs are in weir-cuda/logs; the last line sums up: N passed, N failed, N skipped.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
logs=$here/logs
mkdir -p "$logs"
export WEIR_CUDA_DRIVER=${WEIR_CUDA_DRIVER:-libcuda.so.1} CUDA_DEVICE_MAX_CONNECTIONS=32
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} WEIR_CACHE_DIR=$here/kernels
JOBS=${JOBS:-4}
passed=0 failed=0 skipped=0

# one PROGRAM [ARGUMENT...]: runs a program with tests of GoogleTest; its log and its status are kept.
one() {
    local name=${1##*/} start=$SECONDS status=0
    timeout -k 10 "${LIMIT:-400}" "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
    printf '%4d s  status %3d  %s\n' $((SECONDS - start)) $status "$name" | tee "$logs/$name.status"
}
export -f one
export logs

count() { grep -cE "$1" "$2" || true; }

programs() {
    local log
    # unit-fake_cuda holds the tests of the fake driver.
    find "$here/programs" -type f ! -name 'gpu-*' ! -name unit-fake_cuda -printf '%f\n' | sort |
        xargs -P "$JOBS" -I '{}' bash -c "one '$here/programs/{}'"
    for log in "$logs"/{unit,conformance,property}-*.log; do
        local bad
        bad=$(count '^\[  FAILED  \] .*\([0-9]+ ms\)$' "$log")
        passed=$((passed + $(count '^\[       OK \]' "$log")))
        skipped=$((skipped + $(count '^\[  SKIPPED \] .*\([0-9]+ ms\)$' "$log")))
        # A program that ends early counts as one failure.
        [ "$bad" -gt 0 ] || grep -q 'status   0' "${log%.log}.status" || bad=1
        failed=$((failed + bad))
        [ "$bad" -eq 0 ] || {
            echo "FAILED $(basename "$log" .log)"
            grep -vE '^\[ +(OK|RUN|SKIPPED) +\]|^\[[-=]+\]|^ *$' "$log" | tail -n 25 | cut -c1-220
        }
    done
}

# one_file FILE: runs the tests of a file of the Python package's; its log is kept.
one_file() {
    timeout -k 10 400 python3 -m pytest -q -rs -p no:cacheprovider "$1" >"$logs/python-$(basename "$1" .py).log" 2>&1 </dev/null
}
export -f one_file

# number WORD LINE: the number that stands before the word in pytest's last line.
number() { grep -oE "[0-9]+ $1" <<<"$2" | grep -oE '^[0-9]+' || echo 0; }

python() {
    local build=$here/build log counts bad
    python3 -m nanobind --version >/dev/null || return 1
    if ! cmake -S "$here/source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 \
        -DWEIR_PREBUILT_LIBRARY="$here/source/libweir.a" -DWEIR_BUILD_{CLI,TESTS,BENCH,EXAMPLES}=OFF -DWEIR_BUILD_PYTHON=ON -DWEIR_INSTALL=OFF \
        -DWEIR_WERROR=OFF -DPython_EXECUTABLE="$(command -v python3)" >"$logs/python-build.log" 2>&1 ||
        ! cmake --build "$build" --target weir-python >>"$logs/python-build.log" 2>&1; then
        tail -n 20 "$logs/python-build.log"
        return 1
    fi
    # Each file in a process of its own, as CTest runs them.
    rm -f "$logs"/python-test_*.log
    # Those for a GPU alone one at a time: their controls, which show what goes wrong without Weir, need the device for themselves.
    local which jobs=$JOBS
    for which in -v -e; do
        (cd "$here/source" && printf '%s\n' python/tests/test_*.py | grep "$which" _cuda |
            WEIR_TEST_DEVICE=cuda:0 PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1 xargs -P "$jobs" -I '{}' bash -c 'one_file {}')
        jobs=1
    done
    for log in "$logs"/python-test_*.log; do
        counts=$(tail -n 1 "$log")
        bad=$(($(number failed "$counts") + $(number error "$counts")))
        # A file whose tests end early counts as one failure.
        [ "$bad" -gt 0 ] || grep -qE '^[0-9]+ (passed|skipped).* in ' <<<"$counts" || bad=1
        passed=$((passed + $(number passed "$counts")))
        failed=$((failed + bad))
        skipped=$((skipped + $(number skipped "$counts")))
        [ "$bad" -eq 0 ] || {
            echo "FAILED $(basename "$log" .log): $counts"
            grep -E '^(FAILED|ERROR|E  )|^python/.*: [A-Za-z]*Error' "$log" | head -n 12 | cut -c1-220
        }
    done
    grep -hE '^SKIPPED ' "$logs"/python-test_*.log | sed 's/^SKIPPED \[[0-9]*\] [^ ]* //' | sort | uniq -c | sort -rn | head -n 12
    return 0
}

# sanitizer_run NAME COMMAND...
sanitizer_run() {
    local name=$1
    shift
    if timeout -k 10 300 compute-sanitizer --error-exitcode 9 "$@" >"$logs/sanitizer-$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "compute-sanitizer $name: 0 errors"
    else
        failed=$((failed + 1))
        echo "FAILED compute-sanitizer $name (status $?)"
        grep -vE '^\[ +(OK|RUN) +\]' "$logs/sanitizer-$name.log" | tail -n 15 | cut -c1-200
    fi
}

sanitizer() {
    command -v compute-sanitizer >/dev/null || {
        echo "compute-sanitizer is not installed: it is left out"
        skipped=$((skipped + 1))
        return
    }
    local tool at=$here/programs
    for tool in memcheck initcheck; do
        sanitizer_run "$tool-arrays" --tool $tool "$at/unit-array-cuda" --gtest_filter='-*Death*:*death*'
    done
    sanitizer_run memcheck-kernels --tool memcheck --report-api-errors no "$at/unit-kernel" \
        --gtest_filter='-*Death*:*death*:D1Kernels.*:S6Kernels.*:KernelsWithTokens.*:*ThatWaitsForAnotherStream*'
    sanitizer_run order --tool memcheck --track-stream-ordered-races all --report-api-errors no "$at/gpu-stream_ordered"
    # The control: an early free, which has to be found.
    if compute-sanitizer --error-exitcode 9 --tool memcheck --track-stream-ordered-races all --report-api-errors no \
        "$at/gpu-stream_ordered" early >"$logs/sanitizer-early.log" 2>&1; then
        failed=$((failed + 1))
        echo "FAILED compute-sanitizer: an early free was not found"
    fi
}

[ $# -gt 0 ] || set -- programs python sanitizer
echo "commit $(cat "$here/commit")"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
for part; do
    start=$SECONDS
    printf '\n===== %s\n' "$part"
    case $part in
    programs | python | sanitizer) "$part" || failed=$((failed + 1)) ;;
    *)
        echo "there is no part $part"
        exit 2
        ;;
    esac
    echo "$part: $((SECONDS - start)) s"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
