"""The interpreter that Weir lives in: Ctrl-C, the GIL, the exit, fork, subinterpreters (L3, S9)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
import weir
from weir.testing import Gate


def run(program: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own, which must come to an end."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **settings},
        check=False,
    )


def expect_clean(done: subprocess.CompletedProcess[str], output: str = "") -> None:
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


WAITS = {
    "a stream": "stream.synchronize()",
    "an event": "event.wait()",
    "a device": "weir.Device('cpu').synchronize()",
}


def test_simulated_devices_stand_for_cuda_devices() -> None:
    done = run(
        """
        import weir
        weir.Device("sim:0")
        for kind in ("cuda", "sim", "cpu"):
            print(*(one.name for one in weir.devices(kind)))
        s = weir.Stream("cuda:1")
        weir.zeros(4, stream=s)
        print(s.device.kind, s.handle, s.record().handle)
        try:
            weir.devices("gpu")
        except weir.ArgumentError as error:
            print(error)
        """,
        WEIR_SIMULATE="cuda:2",
    )
    expect_clean(
        done,
        "cuda:0 cuda:1\ncuda:0 cuda:1 sim:0\ncpu\nsim 0 0\n"
        'there are no devices of the kind "gpu": pass "cpu", "cpu:inline", "cuda", "sim", or nothing for all devices\n',
    )


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_ctrl_c_ends_a_wait(wait: str) -> None:
    done = run(
        f"""
        import os, signal, threading, weir
        from weir.testing import Gate
        stream, gate = weir.Stream(), Gate()
        gate.hold(stream)
        event = stream.record()
        main = threading.main_thread().ident
        threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted")
        gate.open()
        {wait}
        """
    )
    expect_clean(done, "interrupted\n")


def test_other_threads_run_while_one_waits(device: weir.Device) -> None:
    stream = weir.Stream(device)
    gate = Gate()
    gate.hold(stream)
    event = stream.record()
    opened = threading.Thread(target=gate.open)  # needs the GIL to begin
    opened.start()
    event.wait()
    opened.join()


ENQUEUES = {
    "an operation on what the host sees": "x.__iadd__(1)",
    "a copy": "weir.copy(y, x)",
    "a host task": "weir.host_task(print, weir.In(x))",
    "a stream without a queue": "weir.Stream('cpu:inline').wait(event)",
    "a transform": "weir.fft.fft(x)",
}


@pytest.mark.parametrize("call", ENQUEUES.values(), ids=ENQUEUES.keys())
def test_s1_other_threads_run_while_a_call_enqueues(call: str) -> None:
    """These calls return when what they enqueue is over. The thread that opens the gate gets the GIL from such a call
    and from nothing else: if the call kept it, neither would ever end."""
    done = run(
        f"""
        import faulthandler, sys, threading, weir
        from weir.testing import Gate
        faulthandler.dump_traceback_later(60, exit=True)
        stream, gate = weir.Stream(), Gate()
        x, y = weir.zeros(4, stream=stream), weir.zeros(4, stream=stream)
        stream.synchronize()
        view = x.numpy()
        gate.hold(stream)
        event = stream.record()
        begin, opened = threading.Lock(), []
        begin.acquire()
        def open_gate():
            with begin:
                opened.append(True)
                gate.open()
        thread = threading.Thread(target=open_gate)
        thread.start()
        sys.setswitchinterval(10_000)  # no thread gives way to another of its own accord
        with stream:
            begin.release()
            assert not opened or not getattr(sys, "_is_gil_enabled", lambda: True)()
            {call}
            assert opened
        thread.join()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_exit_is_clean_whatever_is_left() -> None:
    expect_clean(
        run(
            """
            import weir
            from weir.testing import Gate
            stream, gate = weir.Stream(), Gate()
            with stream:
                weir.current_stream()
            gate.hold(stream)
            event = stream.record()
            weir.keep_alive([object()], after=event)
            with stream:
                raise SystemExit
            """
        )
    )


def test_objects_may_be_used_at_the_exit() -> None:
    expect_clean(
        run(
            """
            import atexit, weir
            def last():
                stream = weir.Stream("sim:0")
                stream.record().wait()
                print("last")
            atexit.register(last)
            class Late:
                def __del__(self):
                    self.stream.close()
                    print("late")
            late = Late()
            late.stream = weir.Stream()
            late.itself = late
            """
        ),
        "last\nlate\n",
    )


def test_threads_may_be_left_behind_at_the_exit() -> None:
    expect_clean(
        run(
            """
            import threading, weir
            from weir.testing import Gate
            stream, gate = weir.Stream(), Gate()
            gate.hold(stream)
            started = threading.Event()
            def wait():
                event = stream.record()
                started.set()
                event.wait()
            threading.Thread(target=wait, daemon=True).start()
            started.wait()
            """
        )
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_before_the_first_use_is_no_matter() -> None:
    expect_clean(
        run(
            """
            import os, weir
            if (child := os.fork()) == 0:
                weir.Stream().record().wait()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            weir.Stream().record().wait()
            """
        )
    )


def test_pending_work_is_an_error_in_a_forked_child() -> None:
    expect_clean(
        run(
            """
            import os, weir
            from weir.testing import Gate
            stream, gate = weir.Stream(), Gate()
            gate.hold(stream)
            event = stream.record()
            if (child := os.fork()) == 0:
                try:
                    event.wait()
                except weir.StateError as error:
                    os._exit(0 if "fork" in str(error) else 1)
                os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
            gate.open()
            event.wait()
            """,
            PYTHONWARNINGS="ignore::DeprecationWarning",  # from 3.12 on Python warns of forks beside threads
        )
    )


def test_a_subinterpreter_is_refused_politely() -> None:
    done = run(
        """
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import weir
        code = (
            "try:\\n    import weir\\n"
            "except ImportError as error:\\n    print('refused')\\nelse:\\n    print('taken')"
        )
        other = interpreters.create()
        interpreters.run_string(other, code)
        interpreters.destroy(other)  # Python 3.11 hangs at its end otherwise, if there is another thread
        weir.Stream().record().wait()
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr


def test_a_signal_handler_may_use_weir() -> None:
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(weir.Stream().done))
    try:
        stream, gate = weir.Stream(), Gate()
        gate.hold(stream)
        event = stream.record()
        opens = threading.Timer(
            0.0, lambda: (signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1), gate.open())
        )
        opens.start()
        event.wait()
        opens.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [True]


def test_nothing_leaks() -> None:
    expect_clean(
        run(
            """
            import asyncio, weir
            from weir.testing import Gate
            stream = weir.Stream("sim:0", name="x")
            with stream:
                weir.current_stream().record().wait()
            async def main():
                gate = Gate()
                gate.hold(stream)
                event = stream.record()
                event.keeps(stream, event)
                waiting = asyncio.create_task(wait(event))
                await asyncio.sleep(0)
                gate.open()
                await waiting
            async def wait(event):
                await event
            asyncio.run(main())
            """,
            WEIR_LOG="debug",
        )
    )


def test_what_leaks_on_purpose_is_counted() -> None:
    done = run(
        """
        import weir
        from weir.testing import Gate
        stream, gate = weir.Stream(), Gate()
        gate.hold(stream)
        stream.record().keeps(object())
        import builtins
        builtins.kept = gate  # never opened while Python lives
        """,
        WEIR_LOG="debug",
    )
    assert done.returncode == 0
    assert done.stderr.startswith("weir: Python ends while work in streams refers to 1 of its objects")
