#!/usr/bin/env bash
# Builds the wheel as pip does, installs it in an environment of its own, and uses it from another folder.
# Usage: wheel_test.sh PYTHON SOURCE LIBRARY. Not optimised, since that takes most of the time, and other tests run what is.
set -euo pipefail
python=$1 source=$2 library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$source" \
    --config-settings="cmake.define.WEIR_PREBUILT_LIBRARY=$library" --config-settings="cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0" \
    --config-settings="build-dir=$folder/build"
cd "$folder"
unset PYTHONPATH
"$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata

import weir

assert importlib.metadata.version("weir-streams") == weir.__version__, weir.__version__
files = [str(file) for file in importlib.metadata.files("weir-streams")]
for wanted in ("weir/py.typed", "weir/_weir/__init__.pyi", "weir/_torch_hooks/hooks.cpp", "weir/_torch_hooks/hooks.h", "bin/weir"):
    assert any(file.endswith(wanted) for file in files), (wanted, files)
assert any(one.value == "weir.pytest_plugin" for one in importlib.metadata.entry_points(group="pytest11"))
stream = weir.Stream("sim:0")
stream.record().wait()
PYTHON
