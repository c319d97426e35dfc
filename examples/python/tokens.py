"""A pool of slots that Weir does not know: a token for each, and a slot is used again only after its last use."""

import itertools

import weir


class Slot:
    """Stands for what a library hands out: a communicator, a part of a ring, a file."""

    def __init__(self, number: int) -> None:
        self.data = bytearray(256)
        self.token = weir.Token(f"slot {number}")


slots = itertools.cycle([Slot(number) for number in range(3)])
receive, process = weir.Stream(name="receive"), weir.Stream(name="process")
sums: list[int] = []


def fill(slot: Slot, value: int) -> None:
    slot.data[:] = bytes([value]) * 256


def drain(slot: Slot) -> None:
    sums.append(sum(slot.data))


for value in range(100):
    slot = next(slots)
    # Writes the slot: after the last use of it, which is on the other stream.
    weir.host_task(fill, slot, value, writes=slot.token, stream=receive)
    # Reads the slot: after it was filled, and beside the filling of the others.
    weir.host_task(drain, slot, reads=slot.token, stream=process)
process.synchronize()
assert sums == [256 * value for value in range(100)]

# The same without Weir's ordering is a race, and the report calls the slot by its name.
with weir.check() as report, weir.ordering("manual"):
    slot = next(slots)
    weir.host_task(fill, slot, 1, writes=slot.token, stream=receive)
    weir.host_task(drain, slot, reads=slot.token, stream=process)
print(report)
assert 'RAW race on token "slot 1"' in str(report)
