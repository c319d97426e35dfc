"""The demonstration in Python: the samples of the command, bit for bit, its races and its waits."""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import sys
import wave
from pathlib import Path

import pytest
import weir

ROOT = Path(__file__).parents[2]
COMMAND = Path(weir.__file__).with_name("bin") / "weir"


def write_music(path: Path, seconds: float, rate: int, channels: int) -> Path:
    """A tone with a click four times a second."""
    samples: list[int] = []
    for i in range(int(seconds * rate)):
        sample = math.sin(2 * math.pi * 440 * i / rate) + (1 if i % (rate // 4) < 8 else 0)
        samples += [int(32767 * 0.3 * sample)] * channels
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return path


def run(*command: object) -> str:
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def samples_of(path: Path) -> list[int]:
    with wave.open(str(path)) as file:
        return [one[0] for one in struct.iter_unpack("<h", file.readframes(file.getnframes()))]


def test_the_three_acts_on_a_cuda_device(tmp_path: Path, cuda: weir.Device) -> None:
    """The command's kernels: as many races and waits as on the host, and its samples but for rounding."""
    music = write_music(tmp_path / "music.wav", 2, 8000, 1)
    said = {}
    for device in ("cpu", cuda.name):
        said[device] = run(sys.executable, ROOT / "examples" / "python" / "demo.py", music, tmp_path / device, device)
        assert "act 3  ordered by Weir: bit for bit the result of act 2" in said[device]
        assert "act 2  ordered by hand: right; check finds 0 races" in said[device]
    for figure in (r"check finds (\d+) pairs of lines", r"the fewest waits: (\d+)"):
        assert re.findall(figure, said["cpu"]) == re.findall(figure, said[cuda.name]), figure
    ours, theirs = (samples_of(tmp_path / device / "act3-by-weir.wav") for device in (cuda.name, "cpu"))
    assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) <= 1
    assert max(ours) > 1000


@pytest.mark.parametrize(("seconds", "rate", "channels"), [(5, 8000, 1), (2, 22050, 2)])
def test_the_three_acts_are_those_of_the_command(tmp_path: Path, seconds: float, rate: int, channels: int) -> None:
    music = write_music(tmp_path / "music.wav", seconds, rate, channels)
    ours = tmp_path / "python"
    said = run(sys.executable, ROOT / "examples" / "python" / "demo.py", music, ours)
    assert "act 3  ordered by Weir: bit for bit the result of act 2" in said
    results = {name: (ours / f"{name}.wav").read_bytes() for name in ("act1-broken", "act2-by-hand", "act3-by-weir")}
    assert results["act2-by-hand"] == results["act3-by-weir"] != results["act1-broken"]
    assert "<html" in (ours / "timeline.html").read_text()

    if not os.access(COMMAND, os.X_OK):
        pytest.skip("this build has no command to compare with")
    theirs = tmp_path / "command"
    their_words = run(COMMAND, "demo", music, "--output", theirs)
    for name, samples in results.items():
        assert samples == (theirs / f"{name}.wav").read_bytes(), name
    races = re.search(r"(\d+) pairs of lines race", their_words)
    waits = re.search(r"fewest waits possible +\d+ +\d+ +(\d+)", their_words)
    assert races is not None
    assert waits is not None
    assert f"check finds {races[1]} pairs of lines" in said
    assert f"the fewest waits: {waits[1]}\n" in said
    kinds = [re.findall(r"^\[\d+\] (\S+) race", (one / "act1-check.txt").read_text(), re.M) for one in (ours, theirs)]
    assert kinds[0] == kinds[1]
    run(COMMAND, "verify", ours / "evidence.weirlog", "--strict")
