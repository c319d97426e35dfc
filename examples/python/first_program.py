"""The program of the page "Streams without races, in ten minutes"."""

import ctypes

import numpy as np
import weir

load = weir.Stream(name="load")
compute = weir.Stream(name="compute")

with load:
    x = weir.arange(1_000_000, dtype="float64")
with compute:
    y = x * 2

print("the last one is", y.numpy()[-1])

# Events.
with load:
    x += 1
e = load.record()
print("over already?", e.done in (True, False))
e.wait()
print("over now?", e.done)

# By hand.
with weir.ordering("manual"):
    with load:
        x += 1
    e = load.record()
    compute.wait(e)
    with compute:
        y = x * 2
    e = compute.record()
    e.wait()

# A race.
with weir.check(assume="manual") as report:
    with load:
        x += 1
    with compute:
        y = x * 2
print(report)

# Mended.
with weir.check(assume="manual") as report:
    with load:
        x += 1
    e = load.record()
    compute.wait(e)
    with compute:
        y = x * 2
print(report)


# What a stream still needs.
def add_up(total, address, size):
    """Runs in a stream. It gets an address, and Weir does not know the array that lies there."""
    total[0] = sum((ctypes.c_double * size).from_address(address))


total = weir.zeros(1)


def start_and_wait():
    table = np.arange(1000.0)
    weir.host_task(add_up, total, table.ctypes.data, table.size, wait=True)


def start_with_an_owning_event():
    table = np.arange(1000.0)
    event = weir.host_task(add_up, total, table.ctypes.data, table.size)
    return event.keeps(table)


def start_and_keep_alive():
    table = np.arange(1000.0)
    event = weir.host_task(add_up, total, table.ctypes.data, table.size)
    weir.keep_alive([table], after=event)


start_and_wait()
print("the sum is", total.item())

event = start_with_an_owning_event()
event.wait()
print("the sum is", total.item())

start_and_keep_alive()
print("the sum is", total.item())

# What happened.
with weir.trace("timeline.html"):
    with load:
        x += 1
    with compute:
        y = x * 2
    compute.synchronize()

with load:
    x += 1
with compute:
    y = x * 2
print(weir.explain(y))
compute.synchronize()
