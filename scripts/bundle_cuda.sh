#!/usr/bin/env bash
# Packs what proves the CUDA backend on a machine with a GPU that has neither this checkout nor a network: the test programs that use a
# CUDA device, and what the Python package is built from there. Usage: bundle_cuda.sh BUILD RESULT (a folder; the archive comes into it)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath "$1")
result=$(realpath -m "$2")
stage=$result/weir-cuda

rm -rf "$result"
mkdir -p "$stage/programs" "$stage/lib" "$stage/source"

# The programs of tests that use a CUDA device know where the fake driver is, which they use where WEIR_CUDA_DRIVER names no other.
mapfile -t programs < <(find "$build/tests" -maxdepth 3 -type f -perm -100 -regex '.*/\(unit\|conformance\|property\|gpu\)-[^/]*' -print0 |
    xargs -0 grep -l 'libweir_fake_cuda\.so')
programs+=("$build/tests/gpu/gpu-stream_ordered")
for program in "${programs[@]}"; do
    strip -o "$stage/programs/$(basename "$program")" "$program"
done
for library in "$build"/src/libweir.so.*; do
    if [ -L "$library" ]; then
        cp -P "$library" "$stage/lib/"
    else
        strip --strip-unneeded -o "$stage/lib/$(basename "$library")" "$library"
    fi
done
strip --strip-debug -o "$stage/source/libweir.a" "$build/src/libweir.a"

# What the Python package and its tests are made of.
git ls-files -z -- CMakeLists.txt CMakePresets.json cmake include src python docs examples README.md scripts |
    xargs -0 cp --parents -t "$stage/source"
git rev-parse HEAD >"$stage/commit"
cp scripts/run_cuda_bundle.sh "$stage/run"
tar -C "$result" -c weir-cuda | xz -T0 --lzma2=preset=2,dict=128MiB >"$result/weir-cuda.tar.xz"
rm -rf "$stage"
size=$(($(stat -c %s "$result/weir-cuda.tar.xz") / 1048576))
echo "$result/weir-cuda.tar.xz: ${#programs[@]} programs, $size MiB"
[ $size -lt 50 ] || {
    echo "bundle_cuda.sh: the archive is larger than 50 MiB" >&2
    exit 1
}
