"""Whether array libraries hand memory to each other without races: a suite for any producer and any consumer.

The package imports nothing of Weir, so that it tests other libraries alone, too:
``python -m weir_conformance torch cupy``. Weir is a library to test like all others. docs/conformance.md says what each
case does and what its outcomes mean.
"""

from weir_conformance._clients import Client, NotOffered, Unknown
from weir_conformance._outcome import Outcome, Result, Verdict
from weir_conformance._runner import run

__all__ = ["Client", "NotOffered", "Outcome", "Result", "Unknown", "Verdict", "run"]
