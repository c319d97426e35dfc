"""A plugin for pytest, loaded by itself where Weir is installed.

`@pytest.mark.weir_check` fails a test in which operations race, with the report as the failure's text;
`@pytest.mark.weir_check(assume="manual")` judges it as if Weir inserted no waits. On a class or a module it holds for
all tests there.

`--weir-simulate` has programs that say "cuda:0" run on simulated devices, on machines without a GPU.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_SIMULATED = "cuda:2"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("weir").addoption(
        "--weir-simulate",
        nargs="?",
        const=_SIMULATED,
        metavar="cuda:N",
        help=f"run what says cuda:0, ... on N simulated devices (default: {_SIMULATED}), as WEIR_SIMULATE does",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "weir_check(assume=None): fail if operations race; assume='manual': as if Weir inserted no waits"
    )
    wanted = config.getoption("--weir-simulate")
    if wanted is None:
        return
    import weir

    kind, _, number = wanted.partition(":")
    if kind != "cuda" or not number.isdecimal():
        raise pytest.UsageError(f"--weir-simulate={wanted}: pass cuda:N, or nothing for {_SIMULATED}")
    try:
        weir.testing.simulate_cuda(int(number))
    except weir.Error as error:
        raise pytest.UsageError(
            f"--weir-simulate={wanted}: {error}. A conftest.py or a plugin may use Weir too early: "
            f"set WEIR_SIMULATE={wanted} in the environment then"
        ) from None
    os.environ["WEIR_SIMULATE"] = wanted  # for the processes that tests start


def _assumption(marker: pytest.Mark) -> Literal["manual"] | None:
    assume = marker.kwargs.get("assume")
    if marker.args or set(marker.kwargs) - {"assume"} or assume not in (None, "manual"):
        given = ", ".join([*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())])
        raise pytest.UsageError(f'weir_check got {given}: pass nothing, or assume="manual"')
    return "manual" if assume else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    marker = item.get_closest_marker("weir_check")
    if marker is None:
        return (yield)
    import weir

    with weir.check(assume=_assumption(marker)) as report:
        result = yield
    if len(report) != 0:
        pytest.fail(str(report), pytrace=False)
    return result
