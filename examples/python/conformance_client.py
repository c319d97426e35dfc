"""A library of one's own for the conformance suite: weir conformance conformance_client:Mine."""

from typing import Any

import weir_conformance


class Mine(weir_conformance.Client):
    name = module = "numpy"

    def full(self, count: int, value: float) -> Any:
        return self.library.full(count, value, "float32")


print(Mine("cpu").full(3, 7))  # a try; then: weir conformance conformance_client:Mine
