"""weir.torch and races that inference servers and training code have had (rule V1), on a GPU."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

import pytest
import weir
import weir.torch
from torch_races import RACES, TorchRace, torch

pytestmark = pytest.mark.skipif(torch is None or not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def idle_device() -> Iterator[None]:
    """Nothing of another test runs on the device."""
    torch.cuda.synchronize()
    yield
    torch.cuda.synchronize()


def code(access: weir.Access) -> str:
    return linecache.getline(access.file, access.line)


@pytest.mark.parametrize("race", [pytest.param(one, id=one.name) for one in RACES])
def test_v1_a_race_of_practice_is_found_with_both_lines(race: TorchRace) -> None:
    with weir.torch.check() as report:
        race.racy()
    found = [(one.kind, code(one.first), code(one.second)) for one in report]
    assert [one for one in found if one[0] == race.kind and race.first in one[1] and race.second in one[2]], found
    assert {kind for kind, _, _ in found} <= {race.kind, *race.also}, found


@pytest.mark.parametrize("race", [pytest.param(one, id=one.name) for one in RACES])
def test_v1_a_mended_program_has_no_race_and_the_right_value(race: TorchRace) -> None:
    with weir.torch.check() as report:
        found = race.mended()
    assert len(report) == 0, str(report)
    assert found == race.right


@pytest.mark.parametrize("race", [pytest.param(one, id=one.name) for one in RACES if one.shows_without_waits])
def test_v1_control_without_its_waits_the_value_is_wrong(race: TorchRace) -> None:
    assert race.mended() == race.right  # also loads the kernels
    assert race.racy() != race.right


@pytest.mark.parametrize("race", [pytest.param(one, id=one.name) for one in RACES])
def test_o1_a_racy_program_that_is_kept_in_order_has_the_right_value(race: TorchRace) -> None:
    assert race.mended() == race.right  # also loads the kernels
    with weir.torch.safe() as safe:
        found = race.racy()
    assert found == race.right
    assert safe.waits != 0 or race.kind == "host"
