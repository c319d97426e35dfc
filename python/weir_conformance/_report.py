"""Results as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence

from weir_conformance._outcome import Result, Verdict

_OWN = "(ctypes)"
_UNPROVED = "pass (control passed, too)"


def _word(result: Result) -> str:
    outcome = result.outcome
    unproved = outcome.verdict is Verdict.PASS and outcome.control_failed is False
    return _UNPROVED if unproved else outcome.verdict.value


class Lines:
    """A line for each result, in columns whose widths do not depend on results."""

    def __init__(self, cases: Sequence[str], devices: Sequence[str], sides: Sequence[str]) -> None:
        outcomes = [*(each.value for each in Verdict), _UNPROVED]
        sides = ["producer", "consumer", *(each or _OWN for each in sides)]
        columns = (["case", *cases], ["device", *devices], sides, sides, outcomes)
        self._widths = [max(len(text) for text in column) for column in columns]

    @property
    def head(self) -> str:
        return self._line("case", "device", "producer", "consumer", "outcome").rstrip()

    def of(self, result: Result) -> str:
        producer, consumer = result.producer or _OWN, result.consumer or _OWN
        line = self._line(result.case, result.device, producer, consumer, _word(result))
        return f"{line}  {' '.join(result.outcome.note.split())}".rstrip()

    def _line(self, *texts: str) -> str:
        return "  ".join(text.ljust(width) for text, width in zip(texts, self._widths, strict=True))


def as_markdown(results: Sequence[Result]) -> str:
    """A table for each case: producers down, consumers across."""
    lines: list[str] = []
    for case, device in dict.fromkeys((each.case, each.device) for each in results):
        mine = [each for each in results if (each.case, each.device) == (case, device)]
        producers = list(dict.fromkeys(each.producer for each in mine))
        consumers = list(dict.fromkeys(each.consumer for each in mine))
        found = {(each.producer, each.consumer): each for each in mine}
        lines += ["", f"**{case}** ({device})", ""]
        lines.append("| producer | " + " | ".join(each or "" for each in consumers) + " |")
        lines.append("|---|" + "---|" * len(consumers))
        for producer in producers:
            cells = [_word(found[producer, consumer]) for consumer in consumers]
            lines.append(f"| {producer or _OWN} | " + " | ".join(cells) + " |")
    return "\n".join(lines[1:]) + "\n"


def as_json(results: Sequence[Result]) -> str:
    """All that is known."""
    return json.dumps(
        [
            {
                "case": each.case,
                "device": each.device,
                "producer": each.producer,
                "consumer": each.consumer,
                "outcome": each.outcome.verdict.value,
                "note": each.outcome.note,
                "control_failed": each.outcome.control_failed,
            }
            for each in results
        ],
        indent=1,
    )
