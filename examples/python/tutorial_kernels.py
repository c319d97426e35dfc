import weakref

import numpy as np
import weir
from weir.testing import Gate

scale = weir.elementwise("T x, T a", "T y", "y = a * x")
stream = weir.Stream(name="work")


def doubled():
    x = weir.ones(8, stream=stream)
    y = scale(x, 2.0, stream=stream)  # returns at once
    return y  # x goes, perhaps before the kernel has read it


y = doubled()
print(y.tolist())  # reading waits for what writes y, and for nothing else

with Gate() as gate:
    gate.hold(stream)  # stands for other work in the stream
    scale(y, 2.0, stream=stream)
    done = stream.record()  # an event: a place in the stream
    print(done.done)
done.synchronize()
print(done.done)


class Library:
    """Stands for a library that is given an address, works later in a stream, and keeps nothing."""

    def __init__(self):
        self.found = []

    def work_later(self, address, owner):
        """The work. Here it looks whether the memory still has its owner, instead of reading what may be freed."""
        weir.host_task(lambda: self.found.append(owner() is not None), stream=stream)


library = Library()


def memory_was_there(keep):
    """Whether the library finds its memory, if the last name of the array goes right after the call."""
    with Gate() as gate:
        gate.hold(stream)
        values = np.arange(4.0)
        library.work_later(values.ctypes.data, weakref.ref(values))
        keep(values)
        del values
    stream.synchronize()
    return library.found[-1]


def nothing(values):
    pass


def event_keeps(values):
    stream.record().keeps(values)


def keep_after(values):
    weir.keep_alive([values], after=stream.record())


print("nothing:", memory_was_there(nothing))
print("event.keeps:", memory_was_there(event_keeps))
print("keep_alive:", memory_was_there(keep_after))

values = np.arange(4.0)
library.work_later(values.ctypes.data, weakref.ref(values))
stream.synchronize()  # the name is still there
del values
print("wait:", library.found[-1])

total: list[float] = []
values = np.arange(4.0)
weir.host_task(lambda seen: total.append(float(seen.sum())), weir.In(weir.asarray(values)), stream=stream)
del values  # Weir knows the operand, and keeps it
stream.synchronize()
print("declared:", total)

first, second = weir.Stream(name="first"), weir.Stream(name="second")
a = weir.full(4, 1.0, stream=first)
b = scale(a, 10.0, stream=second)  # waits, on the device, for what fills a
with weir.parallel(2) as (left, right):  # two more streams, behind this one's work; afterwards it is behind theirs
    c = scale(b[:2], 3.0, stream=left)
    d = scale(b[2:], 5.0, stream=right)
print(c.tolist(), d.tolist())


def fails(values):
    raise ValueError("no disk")


e = weir.host_task(fails, weir.Out(a), stream=first)
late = scale(a, 2.0, stream=second)  # does not run: a is not valid
try:
    late.numpy()
except weir.OperationError as error:
    print(repr(error.__cause__))
weir.fill(a, 7.0, stream=first)  # a new value: valid again
print(a.tolist())
