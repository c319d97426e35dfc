"""The first use of a CUDA device in a new process: how long opening it takes, and then the first x + y and the first sum, beside
CuPy and torch where they are installed. Cold: no folder of compiled kernels; warm: the second process with the same folder.

Usage: python_first_use.py
"""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile

PREAMBLE = """
import json, time
def timed(work):
    start = time.perf_counter()
    result = work()
    return result, 1000 * (time.perf_counter() - start)
times = {}
"""

PROGRAMS = {
    "weir": """
import weir
_, times["open"] = timed(lambda: weir.Device("cuda:0").create_stream())
def ready():
    weir.synchronize()
x = weir.zeros(1000, "float32", device="cuda:0"); ready()
def add(): x + x; ready()
def total(): x.sum(); ready()
""",
    "cupy": """
import cupy
_, times["open"] = timed(lambda: cupy.cuda.Stream())
def ready(): cupy.cuda.runtime.deviceSynchronize()
x = cupy.zeros(1000, "float32"); ready()
def add(): x + x; ready()
def total(): x.sum(); ready()
""",
    "torch": """
import torch
_, times["open"] = timed(lambda: torch.cuda.Stream())
def ready(): torch.cuda.synchronize()
x = torch.zeros(1000, device="cuda"); ready()
def add(): x + x; ready()
def total(): x.sum(); ready()
""",
}
PROGRAMS["weir, WEIR_PREPARE=0"] = PROGRAMS["weir"]

ENDING = """
for name, work in (("first x + x", add), ("first sum", total), ("next x + x", add)):
    _, times[name] = timed(work)
print(json.dumps(times))
"""

COLUMNS = ("open", "first x + x", "first sum", "next x + x")
PROCESSES = 5


def measured(name, folder):
    environment = {**os.environ, "WEIR_CACHE_DIR": folder, "CUPY_CACHE_DIR": folder, "CUDA_CACHE_PATH": folder}
    environment["WEIR_PREPARE"] = "0" if name.endswith("=0") else "1"
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + PROGRAMS[name] + ENDING],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    try:
        import weir

        weir.Device("cuda:0")
    except weir.DeviceError as error:
        print(f"no CUDA device, so nothing to measure: {error}")
        return
    print(f"{'milliseconds':>22} {'':>5} " + " ".join(f"{one:>12}" for one in COLUMNS))
    for name in PROGRAMS:
        if importlib.util.find_spec(name.split(",")[0]) is None:
            print(f"{name:>22} is not installed")
            continue
        cold, warm = [], []
        for _ in range(PROCESSES):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(measured(name, folder))
                warm.append(measured(name, folder))
        for state, runs in (("cold", cold), ("warm", warm)):
            numbers = (statistics.median(one[column] for one in runs) for column in COLUMNS)
            print(f"{name:>22} {state:>5} " + " ".join(f"{one:12.3f}" for one in numbers), flush=True)


if __name__ == "__main__":
    main()
