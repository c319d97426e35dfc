#!/usr/bin/env python3
"""Check that the sources include each other in one direction only.

Every folder of src/ is a layer. A public header include/weir/X.hpp belongs to the layer that PUBLIC_HEADERS names.
The verifier of evidence logs, tools/verify/, may include nothing of this repository but itself (rule V4).
Prints each include that goes against the direction, and exits with 1 if there is one.

Usage: check_layers.py [ROOT]
"""

import re
import sys
from pathlib import Path

# Which layers a layer may include, besides itself. From the bottom up.
_CORE = ["base", "frontier", "order", "observe", "backend", "runtime", "memory", "array"]
MAY_INCLUDE = {
    "base": [],
    "frontier": ["base"],
    "order": ["base", "frontier"],
    "observe": ["base", "frontier", "order"],
    "backend": ["base", "frontier", "order", "observe"],
    "runtime": ["base", "frontier", "order", "observe", "backend"],
    "memory": ["base", "frontier", "order", "observe", "backend", "runtime"],
    "array": ["base", "frontier", "order", "observe", "backend", "runtime", "memory"],
    "exchange": _CORE,
    "calls": _CORE,
    # Check and trace observe: they see what is reported to observers, and the runtime does not know them.
    "check": ["base", "frontier", "order", "observe"],
    "trace": ["base", "frontier", "order", "observe"],
    # What programs do with other libraries, reported to observers.
    "watch": _CORE,
    # The interface for C, defined on the one for C++.
    "c_api": [*_CORE, "exchange", "calls", "check", "trace"],
    # The header that includes all others, and the command.
    "umbrella": [*_CORE, "exchange", "calls", "check", "trace"],
    "cli": [*_CORE, "exchange", "calls", "check", "trace", "umbrella"],
}

# Folders of src/backend/ that are no kind of device.
_INTERFACES = ["capability"]
# The files that may name a kind of device. All other code asks a device's driver for what it needs.
MAY_NAME_BACKENDS = [
    "src/runtime/devices/devices.cpp", "src/runtime/devices/simulated.cpp", "src/cli/info.cpp", "src/cli/info_cuda.cpp",
]

# The layer of each public header. Its first line says the same: "// What it is. Layer: base."
PUBLIC_HEADERS = {
    "weir.hpp": "umbrella",
    "access.hpp": "base",
    "error.hpp": "base",
    "float16.hpp": "base",
    "export.hpp": "base",
    "source_location.hpp": "base",
    "detail/fork_section.hpp": "base",
    "detail/intrusive.hpp": "base",
    "detail/launch_shape.hpp": "base",
    "detail/mutex.hpp": "base",
    "detail/integer.hpp": "base",
    "detail/passkey.hpp": "base",
    "detail/operation.hpp": "base",
    "detail/rare.hpp": "base",
    "detail/simulation.hpp": "base",
    "detail/site.hpp": "base",
    "detail/task.hpp": "base",
    "detail/cuda_launch.hpp": "array",
    "detail/launch_arguments.hpp": "array",
    "detail/host_copy.hpp": "array",
    "detail/acting.hpp": "base",
    "detail/internal_memory.hpp": "array",
    "detail/observed.hpp": "observe",
    "detail/footprint.hpp": "order",
    "detail/ordered_program.hpp": "watch",
    "detail/watched_program.hpp": "watch",
    "detail/interruption.hpp": "backend",
    "ordering.hpp": "order",
    "completion.hpp": "runtime",
    "detail/current_stream.hpp": "runtime",
    "detail/label_scope.hpp": "runtime",
    "detail/submission.hpp": "runtime",
    "device.hpp": "runtime",
    "event.hpp": "runtime",
    "stream.hpp": "runtime",
    "token.hpp": "runtime",
    "native_queue.hpp": "runtime",
    "parallel.hpp": "runtime",
    "package.hpp": "runtime",
    "detail/package_order.hpp": "runtime",
    "sharing.hpp": "memory",
    "testing.hpp": "runtime",
    "stats.hpp": "runtime",
    "watchdog.hpp": "runtime",
    "buffer.hpp": "memory",
    "capture.hpp": "memory",
    "memory.hpp": "memory",
    "memory_resource.hpp": "memory",
    "cuda_memory_resource.hpp": "memory",
    "detail/giving_back.hpp": "memory",
    "detail/raw_memory.hpp": "memory",
    "pmr.hpp": "memory",
    "poisoning.hpp": "array",
    "arithmetic.hpp": "array",
    "array.hpp": "array",
    "dtype.hpp": "array",
    "explain.hpp": "array",
    "index_function.hpp": "array",
    "indexing.hpp": "array",
    "scalar.hpp": "array",
    "shape.hpp": "array",
    "strided_span.hpp": "array",
    "elementwise.hpp": "array",
    "reduction_kernel.hpp": "array",
    "kernel.hpp": "array",
    "kernel_argument.hpp": "array",
    "launch.hpp": "array",
    "on.hpp": "array",
    "operands.hpp": "array",
    "random.hpp": "array",
    "reduction.hpp": "array",
    "reduction_kernel.hpp": "array",
    "arrow.hpp": "exchange",
    "borrow.hpp": "exchange",
    "dlpack.hpp": "exchange",
    "exchange_table.hpp": "exchange",
    "native_event.hpp": "exchange",
    "pin.hpp": "exchange",
    "calls.hpp": "calls",
    "fft.hpp": "calls",
    "linalg.hpp": "calls",
    "sparse.hpp": "calls",
    "check.hpp": "check",
    "trace.hpp": "trace",
    "wait_log.hpp": "trace",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>[<"])(?P<path>[^>"]+)[>"]')
STATED_LAYER = re.compile(r"^//.*\bLayer: (\w+)")
SUFFIXES = {".hpp", ".h", ".cpp", ".cu", ".inl"}


def layer_of(path, root):
    """The layer of a file, or None if it belongs to none."""
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        return None
    if parts == ("include", "weir.h"):
        return "c_api"
    if parts[:2] == ("include", "weir"):
        return PUBLIC_HEADERS.get("/".join(parts[2:]))
    if parts[0] == "src" and len(parts) > 2:
        return parts[1] if parts[1] in MAY_INCLUDE else None
    return None


def backend_of(path, root):
    """The kind of device to whose folder in src/backend/ a file belongs, or None."""
    parts = path.relative_to(root).parts
    is_in_folder = len(parts) > 3 and parts[:2] == ("src", "backend") and parts[2] not in _INTERFACES
    return parts[2] if is_in_folder else None


def resolve(text, quoted, including, root):
    """The file of this repository that an include names, or None for others' headers."""
    folders = [root / "src", root / "include"]
    if quoted:
        folders.insert(0, including.parent)
    for folder in folders:
        path = (folder / text).resolve()
        if path.is_file() and path.is_relative_to(root):
            return path
    return None


def check_file(path, root):
    """Yield a message for each include in the file that the tables do not allow."""
    name = path.relative_to(root)
    layer = layer_of(path, root)
    if layer is None:
        yield f"{name}:1: belongs to no layer: add it to the tables of scripts/check_layers.py"
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        stated = STATED_LAYER.match(line)
        if stated and stated[1] != layer:
            yield f"{name}:{number}: says layer {stated[1]}, but the tables say {layer}"
        match = INCLUDE.match(line)
        if not match:
            continue
        included = resolve(match["path"], match["open"] == '"', path, root)
        if included is None:
            if match["open"] == '"' or match["path"].startswith("weir/"):
                yield f"{name}:{number}: {line.strip()}: no such file in this repository"
            continue
        kind = backend_of(included, root)
        if kind not in (None, backend_of(path, root)) and name.as_posix() not in MAY_NAME_BACKENDS:
            yield (f"{name}:{number}: {line.strip()}: only {', '.join(MAY_NAME_BACKENDS)} name the backend {kind}: "
                   "ask the driver for a capability")
            continue
        target = layer_of(included, root)
        if target == layer or target in MAY_INCLUDE[layer]:
            continue
        yield f"{name}:{number}: {line.strip()}: {layer} may not include {target or 'a file without a layer'}"


def check_verifier_file(path, root):
    """Yield a message for each include by which the verifier would share code with what it audits."""
    home = root / "tools" / "verify"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        beside = (path.parent / match["path"]).resolve()
        is_own = match["open"] == '"' and beside.is_file() and beside.is_relative_to(home)
        is_ours = match["open"] == '"' or match["path"].startswith("weir/") or resolve(match["path"], False, path, root)
        if is_ours and not is_own:
            yield f"{path.relative_to(root)}:{number}: {line.strip()}: the verifier shares no code with Weir"


def check_tree(root):
    """All messages for the tree, and the number of files that were read."""
    root = root.resolve()
    verifier = [path for path in sorted((root / "tools" / "verify").rglob("*")) if path.suffix in SUFFIXES]
    files = [
        path
        for folder in (root / "src", root / "include")
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES
    ]
    messages = [message for path in files for message in check_file(path, root)]
    messages += [message for path in verifier for message in check_verifier_file(path, root)]
    return messages, len(files) + len(verifier)


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    messages, count = check_tree(root)
    for message in messages:
        print(message)
    print(f"layers: {count} files, {len(messages)} mistakes")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
