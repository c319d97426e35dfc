"""The suite for any producer and consumer reports wrong clients, and passes right ones (weir_conformance)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cuda_driver import CudaDriver

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "python"


COMMAND = [sys.executable, "-m", "weir_conformance"]


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(HERE), str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, **more}


def ran(*arguments: str, **more: str) -> tuple[int, str, str]:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment(**more))
    return done.returncode, done.stdout, done.stderr


def outcomes(tmp_path: Path, case: str, *libraries: str) -> dict[tuple[str, str], str]:
    file = tmp_path / "results.json"
    status, _, errors = ran(*libraries, "--case", case, "--json", str(file))
    assert status in (0, 1), errors
    found = json.loads(file.read_text())
    assert status == int(any(one["outcome"] not in ("pass", "copied", "refused", "not offered") for one in found))
    return {(one["producer"], one["consumer"]): one["outcome"] for one in found}


def test_weir_and_numpy_have_no_findings(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    ran("weir", "numpy", "--json", str(file))
    found = json.loads(file.read_text())
    assert len(found) > 60
    wrong = [one for one in found if one["outcome"] not in ("pass", "copied", "refused", "not offered")]
    # NumPy reads a null address.
    assert [one for one in wrong if (one["case"], one["consumer"]) != ("B10 null data", "numpy")] == []


def test_weir_offers_everything_but_read_only_arrays(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    ran("weir", "--json", str(file))
    missing = [one["case"] for one in json.loads(file.read_text()) if one["outcome"] == "not offered"]
    assert missing == ["read-only"]


def client(name: str) -> str:
    return f"conformance_clients:{name}"


@pytest.mark.parametrize(
    ("case", "producer", "consumer", "expected"),
    [
        ("same memory", "numpy", client("Copies"), "copied"),
        ("values", "numpy", client("Crashes"), "crash"),
        ("values", "numpy", client("CrashesAtTheEnd"), "crash"),
        ("values", "numpy", client("WrongErrors"), "wrong error"),
        ("read-only", "numpy", client("WritesAnyway"), "wrong"),
        ("owned once", "", client("TakesAnything"), "wrong"),
        ("B6 newer major", "", client("TakesAnything"), "wrong"),
        ("B10 null data", "", client("TakesAnything"), "wrong"),
        ("B9 read-only flag", "", client("WritesAnyway"), "wrong"),
        ("A2 late producer", "weir", client("DoesNotOrder"), "race"),
        ("A1 producer goes on", "weir", client("DoesNotOrder"), "race"),
        ("A6 both dropped", client("ReusesTooEarly"), client("ReusesTooEarly"), "race"),
    ],
)
def test_it_finds_what_is_wrong(tmp_path: Path, case: str, producer: str, consumer: str, expected: str) -> None:
    libraries = list(dict.fromkeys(name for name in (producer, consumer) if name))
    assert outcomes(tmp_path, case, *libraries)[producer, consumer] == expected


def test_findings_are_exit_status_1_and_are_printed() -> None:
    status, said, _ = ran(client("Crashes"), "--case", "values", "--findings")
    assert status == 1
    assert "SIGSEGV" in said
    assert "1 crash" in said


def test_tables_name_producers_and_consumers(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    assert ran("weir", "numpy", "--case", "values", "--markdown", str(file))[0] == 0
    assert file.read_text().splitlines()[2:] == [
        "| producer | weir | numpy |",
        "|---|---|---|",
        "| weir | pass | pass |",
        "| numpy | pass | pass |",
    ]


def test_a_case_that_does_not_end_is_a_result(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert ran(client("NeverEnds"), "--case", "values", "--limit", "1", "--json", str(file))[0] == 1
    assert [(one["outcome"], one["note"]) for one in json.loads(file.read_text())] == [
        ("blocked", "it did not end in 1 s")
    ]


def test_results_are_there_before_the_run_is_over(tmp_path: Path) -> None:
    """So that a run that is ended by others has said what it found."""
    file = tmp_path / "results.json"
    with subprocess.Popen(
        [*COMMAND, client("WaitsInTheThirdCase"), "--jobs", "1", "--json", str(file)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert [line.split("  ")[0] for line in lines] == ["case", "values", "same memory"]
        assert process.poll() is None, "the third case never ends"
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert {"values", "same memory"} <= {one["case"] for one in json.loads(file.read_text())}


@pytest.mark.parametrize(
    ("name", "where"), [("SaysWhereItWasImported", "imported before"), ("InitialisesCuda", "imported here")]
)
def test_libraries_are_imported_once_unless_that_initialises_cuda(
    driver: CudaDriver, tmp_path: Path, name: str, where: str
) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(Path(os.environ["WEIR_CUDA_DRIVER"]).read_bytes())
    file = tmp_path / "results.json"
    path = os.pathsep.join([str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])
    _, said, errors = ran(client(name), "--device", "cuda", "--json", str(file), LD_LIBRARY_PATH=path)
    found = json.loads(file.read_text())
    asked = [one for one in found if one["case"] in ("values", "same memory", "B1 stream=None")]
    assert [(one["outcome"], one["note"]) for one in asked] == [("not offered", where)] * 3, said + errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nunpy"], "no library 'nunpy'"),
        ([client("NotThere")], "is not installed"),
        ([client("Missing")], "no Missing in the module"),
        ([client("NOT_A_CLIENT")], "not derived from"),
        (["no_such_module:X"], "no_such_module"),
        (["numpy", "--case", "Z9"], "no case begins with Z9"),
    ],
)
def test_wrong_use_is_exit_status_2(arguments: list[str], message: str) -> None:
    status, _, errors = ran(*arguments)
    assert (status, message in errors) == (2, True), errors


def test_it_does_not_need_weir_in_its_processes() -> None:
    """Other projects test libraries against each other with it."""
    program = "import sys, weir_conformance as w; w.run(['numpy'], cases=['values']); assert 'weir' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)


def test_the_command_lists_its_cases() -> None:
    status, said, _ = ran("--list")
    assert status == 0
    assert "A6 both dropped" in said


def test_the_command_weir_runs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "weir", "conformance", "--list"], capture_output=True, text=True, check=True
    )
    assert "A6 both dropped" in done.stdout


def test_a_class_of_ones_own_is_a_library(tmp_path: Path) -> None:
    assert outcomes(tmp_path, "values", "conformance_client:Mine") == {("conformance_client:Mine",) * 2: "pass"}


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_file_that_cannot_be_written_is_wrong_use_before_the_run(tmp_path: Path, option: str) -> None:
    status, said, errors = ran("numpy", "--case", "values", option, str(tmp_path / "no" / "such" / "folder"))
    assert (status, said) == (2, "")
    assert errors.count("\n") == 1
    assert errors.startswith("weir conformance: ")
    assert "No such file or directory" in errors


def test_a_closed_pipe_ends_the_run_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, "numpy", "--case", "values"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=environment(),
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")


def test_libraries_without_arrays_on_the_device_are_wrong_use() -> None:
    status, said, errors = ran("numpy", "--device", "cuda")
    assert (status, said) == (2, "")
    assert "nothing to test: none of numpy has arrays on cuda" in errors


def test_a_run_in_which_nothing_is_offered_has_tested_nothing() -> None:
    status, said, errors = ran("weir", "--case", "read-only")
    assert status == 2
    assert "not offered" in said
    assert "nothing was tested" in errors
