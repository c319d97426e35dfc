"""The child of a fork (L3): it goes on with the CPU if the parent was at rest, else its calls raise and never hang."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# What each program below begins with: `child(body)` gives what `body()` returns in a forked child, "refused: ..." if it
# raised StateError there. The child ends as programs do, by way of the interpreter's exit.
START = """
import os, sys, threading
import numpy as np
import weir
from weir.testing import Gate

def child(body):
    sys.stdout.flush()  # else the child prints again what waits to be printed
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        import signal
        signal.alarm(100)  # one that hangs is killed
        try:
            said = repr(body())
        except weir.StateError as error:
            said = f"refused: {error}"
        os.write(write, said.encode())
        sys.exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    assert os.waitpid(pid, 0)[1] == 0, said
    return said
"""


def run(program: str, **settings: str) -> str:
    """What the program prints, which must end well and say nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        # From 3.12 on Python warns of forks beside threads.
        env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning", **settings},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.strip()


def test_the_child_goes_on_with_what_there_is() -> None:
    said = run(
        """
        stream = weir.Stream()
        with stream:
            x = weir.ones(1000)
            y = x + x
        stream.synchronize()
        before = stream.record()
        before.wait()
        def body():
            assert before.done
            ran = []
            with stream:
                z = x * 4.0
            weir.host_task(lambda: ran.append(1), stream=stream).wait()
            other = weir.Stream()
            with other, weir.check() as report:
                f = weir.fft.fft(weir.ones(8))
            assert not report.races
            return ran, float(y.numpy()[5]), float(z.numpy()[999]), complex(f.numpy()[0])
        print(child(body))
        print(child(lambda: child(body)))
        y += 1.0
        print(y.numpy()[5])
        """
    )
    assert said.splitlines()[0] == "([1], 2.0, 4.0, (8+0j))"
    assert "([1], 2.0, 4.0, (8+0j))" in said.splitlines()[1]
    assert said.splitlines()[2] == "3.0"


def test_pools_of_multiprocessing() -> None:
    said = run(
        """
        import multiprocessing
        data = weir.arange(100, dtype="float64")
        total = float(data.sum().numpy())
        def part(i):
            return float((data * float(i)).sum().numpy())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(part, range(6)) == [total * i for i in range(6)])
        print(float(data.sum().numpy()) == total)
        """
    )
    assert said.splitlines() == ["True", "True"]


def test_pending_work_is_refused_with_the_mend() -> None:
    said = run(
        """
        stream, gate = weir.Stream(name="at work"), Gate()
        gate.hold(stream)
        x = weir.ones(10, stream=stream)
        print(child(lambda: weir.ones(3)))
        print(child(lambda: x.numpy()))
        print(child(lambda: None))
        gate.open()
        print(x.numpy()[0])
        print(child(lambda: float(x.numpy()[0])))
        """
    ).splitlines()
    for line in said[:2]:
        assert "refused: " in line and 'work was pending at the fork (in the stream "at work" of cpu)' in line
        assert "spawn" in line and "synchronize()" in line
    assert said[2:] == ["None", "1.0", "1.0"]


def test_host_tasks_of_the_parent_do_not_run_in_the_child() -> None:
    said = run(
        """
        stream, gate, ran = weir.Stream(), Gate(), []
        gate.hold(stream)
        weir.host_task(lambda: ran.append(1), stream=stream)
        print(child(lambda: ran))
        gate.open()
        stream.synchronize()
        print(ran, child(lambda: ran))
        """
    )
    assert said.splitlines() == ["[]", "[1] [1]"]


@pytest.mark.parametrize("device", ["sim:0", "cuda:0"])
def test_other_devices_stay_with_the_parent(device: str) -> None:
    said = run(
        f"""
        try:
            gpu = weir.Device({device!r})
        except weir.DeviceError:
            print("none")
            sys.exit(0)
        x = weir.ones(10, device=gpu)
        gpu.synchronize()
        print(child(lambda: x.numpy()))
        print(child(lambda: weir.Stream(gpu)))
        print(child(lambda: float(weir.ones(3).numpy()[0])))
        print(x.numpy()[0])
        """
    ).splitlines()
    if said == ["none"]:
        pytest.skip("there is no CUDA driver here, and WEIR_CUDA_DRIVER names none")
    for line in said[:2]:
        assert f"refused: {device} cannot be used in this process" in line and "spawn" in line
    assert said[2:] == ["1.0", "1.0"]


def test_work_on_the_cpu_leaves_cuda_to_the_child(tmp_path: Path) -> None:
    said = run(
        f"""
        with weir.Stream(), weir.check(), weir.trace({str(tmp_path / "run.json")!r}):
            x = weir.ones(8)
            f = weir.fft.fft(x, execution="cpu")
            weir.explain(f)
            with weir.ordering("manual"):
                x += 1.0
            weir.memory.stats()
            for device in weir.devices("cpu") + weir.devices("cpu:inline"):
                device.synchronize()
        def on_cuda():
            try:
                return float(weir.ones(8, device="cuda:0").numpy().sum())
            except weir.DeviceError as none:
                return str(none)
        print(child(on_cuda))
        """
    )
    if "there is no device" in said:
        pytest.skip("there is no CUDA driver here, and WEIR_CUDA_DRIVER names none")
    assert said == "8.0"


def test_beside_threads_that_are_at_work() -> None:
    said = run(
        """
        over = threading.Event()
        def work():
            with weir.Stream():
                while not over.is_set():
                    assert float((weir.ones(100) * 2.0).numpy()[0]) == 2.0
        threads = [threading.Thread(target=work) for _ in range(2)]
        for one in threads:
            one.start()
        x = weir.ones(10)
        ends = [child(lambda: float((x + x).numpy()[0])) for _ in range(40)]
        over.set()
        for one in threads:
            one.join()
        print(all(end == "2.0" or end.startswith("refused: ") for end in ends) or ends)
        print(child(lambda: float((x + x).numpy()[0])))
        """
    )
    assert said.splitlines() == ["True", "2.0"]


def test_asyncio_in_the_child() -> None:
    said = run(
        """
        import asyncio
        async def main():
            stream = weir.Stream()
            x = weir.ones(4, stream=stream)
            await stream.record()
            return float(x.numpy()[0])
        print(asyncio.run(main()))
        print(child(lambda: asyncio.run(main())))
        """
    )
    assert said.splitlines() == ["1.0", "1.0"]
