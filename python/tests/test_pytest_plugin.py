"""The plugin for pytest, by pytest."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
    import pytest
    import weir

    def run(mended):
        load, compute = weir.Stream(name="load"), weir.Stream(name="compute")
        x, y = weir.zeros(4, stream=load), weir.zeros(4, stream=compute)
        weir.fill(x, 1, stream=load)
        if mended:
            compute.wait(load)
        weir.copy(y, x, stream=compute)
        load.wait(compute)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Runs tests in a process of their own, with the plugin."""
    monkeypatch.delenv("WEIR_SIMULATE", raising=False)

    def run_tests(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(text)
        plugin = ("-p", "weir.pytest_plugin", "-p", "no:cacheprovider")
        return pytester.runpytest_subprocess(*plugin, *options, timeout=120)

    return run_tests


def test_a_race_fails_the_test_with_the_report(run) -> None:  # type: ignore[no-untyped-def]
    result = run(
        PROGRAM
        + """
    @pytest.mark.weir_check(assume="manual")
    def test_race():
        run(mended=False)

    @pytest.mark.weir_check(assume="manual")
    def test_mended():
        run(mended=True)

    @pytest.mark.weir_check
    def test_ordered_by_weir():
        run(mended=False)

    @pytest.mark.weir_check
    def test_ordered_by_nobody():
        with weir.ordering("manual"):
            run(mended=False)

    def test_without_the_mark():
        with weir.ordering("manual"):
            run(mended=False)
    """
    )
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*weir check: 1 race found*", "*RAW race on memory*", "*e = load.record()  # after *"])


def test_a_failure_of_the_test_itself_comes_first(run) -> None:  # type: ignore[no-untyped-def]
    result = run(
        PROGRAM
        + """
    @pytest.mark.weir_check(assume="manual")
    def test_race():
        run(mended=False)
        assert 1 == 2
    """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])


def test_a_mark_of_a_module(run) -> None:  # type: ignore[no-untyped-def]
    result = run(
        PROGRAM
        + """
    pytestmark = pytest.mark.weir_check(assume="manual")

    class TestAll:
        def test_race(self):
            run(mended=False)
    """,
        "--strict-markers",
    )
    result.assert_outcomes(failed=1)


@pytest.mark.parametrize("arguments", ['"manual"', 'assume="auto"', "mode=3"])
def test_a_wrong_mark(run, arguments: str) -> None:  # type: ignore[no-untyped-def]
    result = run(
        f"""
    import pytest

    @pytest.mark.weir_check({arguments})
    def test_it():
        pass
    """
    )
    assert result.ret != 0
    assert "weir_check got" in result.stdout.str() + result.stderr.str()


def test_programs_that_say_cuda_run_on_simulated_devices(run) -> None:  # type: ignore[no-untyped-def]
    text = """
    import os
    import pytest
    import weir

    def test_it():
        assert os.environ["WEIR_SIMULATE"] == {wanted!r}
        x = weir.zeros(4, device="cuda:0")
        x += 1
        assert x.numpy().tolist() == [1.0] * 4
        weir.Device("cuda:{last}")
        with pytest.raises(weir.Error):
            weir.Device("cuda:{count}")
    """
    run(text.format(wanted="cuda:2", last=1, count=2), "--weir-simulate").assert_outcomes(passed=1)
    run(text.format(wanted="cuda:1", last=0, count=1), "--weir-simulate=cuda:1").assert_outcomes(passed=1)


def test_simulating_too_late_is_an_error(run, pytester: pytest.Pytester) -> None:  # type: ignore[no-untyped-def]
    pytester.makeconftest("import weir\nweir.devices()")
    result = run("def test_it(): pass", "--weir-simulate")
    assert result.ret != 0
    assert "set WEIR_SIMULATE=cuda:2 in the environment" in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize("wanted", ["sim:1", "cuda", "cuda:0", "cuda:x"])
def test_simulating_nonsense_is_an_error(run, wanted: str) -> None:  # type: ignore[no-untyped-def]
    result = run("def test_it(): pass", f"--weir-simulate={wanted}")
    assert result.ret != 0
    assert f"--weir-simulate={wanted}" in result.stdout.str() + result.stderr.str()
