"""What a case can end with."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(str, enum.Enum):
    """How a case ended."""

    PASS = "pass"
    COPIED = "copied"  # the memory is not shared, which the protocols allow
    REFUSED = "refused"  # an exception that the protocol has for this
    RACE = "race"
    WRONG = "wrong"  # values, addresses or ownership
    WRONG_ERROR = "wrong error"
    BLOCKED = "blocked"  # it waited for work that only later code unblocks
    CRASH = "crash"
    NOT_OFFERED = "not offered"


# What counts as a finding: exit status 1.
FINDINGS = (Verdict.RACE, Verdict.WRONG, Verdict.WRONG_ERROR, Verdict.BLOCKED, Verdict.CRASH)


@dataclass(frozen=True)
class Outcome:
    """What a case found, in a word and in a sentence."""

    verdict: Verdict
    note: str = ""
    # Of cases with a negative control: whether the control, which does without what the case is about, went wrong.
    # If it did not, a pass says little. None: the case has no control.
    control_failed: bool | None = None


@dataclass(frozen=True)
class Result:
    """The outcome of one case with one producer and one consumer. An empty name: the suite's own."""

    case: str
    device: str
    producer: str
    consumer: str
    outcome: Outcome

    @property
    def is_finding(self) -> bool:
        return self.outcome.verdict in FINDINGS
