"""Tests of a program with streams, for pytest. Run as a program, it runs itself under pytest."""

import sys

import pytest
import weir
from weir.testing import Gate


class Program:
    """Doubles what it is given, on a stream of its own. What it gives the other stream comes from `load`."""

    def __init__(self):
        self.load = weir.Stream(name="load")
        self.compute = weir.Stream(name="compute")
        self.x = weir.zeros(4, stream=self.load)
        self.load.synchronize()

    def run(self):
        weir.fill(self.x, 3, stream=self.load)
        with self.compute:
            return self.x * 2


@pytest.mark.weir_check
def test_nothing_races():
    Program().run()


def test_the_result_is_right_although_load_is_late():
    program = Program()
    with Gate() as gate:
        gate.hold(program.load)
        y = program.run()
        assert not y.ready
    assert y.numpy().tolist() == [6, 6, 6, 6]


def test_this_test_would_notice():
    program = Program()
    with Gate() as gate, weir.ordering("manual"):
        gate.hold(program.load)
        y = program.run()
        program.compute.synchronize()
    assert y.numpy().tolist() == [0, 0, 0, 0], "what was there before"


@pytest.mark.xfail(reason="without Weir's waits it races, and says so", strict=True)
@pytest.mark.weir_check(assume="manual")
def test_what_weir_does_for_it():
    Program().run()


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "weir.pytest_plugin", "-p", "no:cacheprovider", __file__]))
