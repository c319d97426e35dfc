"""`python -m weir`, which is the command `weir`."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import NoReturn

_MISSING = """\
weir: this package was built without the command: CMake did not find CLI11, fmt or stb when it was built.
Build it again where they are installed (Debian, Ubuntu: libcli11-dev libfmt-dev libstb-dev nlohmann-json3-dev), or
install the Debian package of weir, which has the command.
"""


def main() -> NoReturn:
    """Becomes the command, with the same arguments. `check` runs in this process; `conformance` is another package."""
    if sys.argv[1:2] == ["conformance"]:
        os.execv(sys.executable, [sys.executable, "-m", "weir_conformance", *sys.argv[2:]])
    if sys.argv[1:2] == ["check"]:
        raise SystemExit(importlib.import_module("weir._check_command").main(sys.argv[2:]))
    program = Path(__file__).with_name("bin") / "weir"
    if not os.access(program, os.X_OK):
        sys.stderr.write(_MISSING)
        raise SystemExit(2)
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
