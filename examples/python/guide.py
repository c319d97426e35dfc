"""The code of the page on Python (docs/python.md): each part of the package once."""

import asyncio
import multiprocessing
import pickle

import numpy as np
import weir

# --- arrays
x = weir.arange(12, dtype="float32").reshape(3, 4)
y = (x[:, ::2] * 2 + 1).sum(axis=0)
print(y.shape, y.dtype, y.tolist())

z = weir.array(np.linspace(0, 1, 4), device="sim:0")  # a copy, on an accelerator that is simulated
z[1:3] = 0
print(z.to("cpu").numpy())

view = x.numpy()  # a view: Weir keeps out while it lives
view[0, 0] = 100
del view
print(x.max().item())

# --- streams
load, compute = weir.Stream(name="load"), weir.Stream("cpu", priority=-1)
with compute:
    total = x.sum()  # on `compute`; the current stream is what it was before afterwards
done = compute.record()
load.wait(done)  # device-side; weir.Event, another stream, or a stream of torch, CuPy, Numba
print(done.done or "not yet", load == weir.adopt(load))
load.synchronize()


# --- asyncio
async def main() -> None:
    await compute.record()  # the event loop goes on meanwhile; no thread for each event


asyncio.run(main())

# --- host tasks
log: list[float] = []


def note(values: np.ndarray) -> None:
    log.append(float(values.sum()))


e = weir.host_task(note, weir.In(x), stream=compute)  # after what writes x, on a thread of its own
e.wait()
print(log)

# --- parallel
parts = x[:, :2], x[:, 2:]
with weir.parallel(2) as streams:  # after what the current stream did before; it goes on after both
    for stream, part in zip(streams, parts, strict=True):
        with stream:
            part *= 0.5
print(x.sum().item())

# --- memory
with weir.memory.use(weir.memory.limiting(1 << 20)):
    try:
        weir.empty(1 << 20)
    except weir.OutOfMemory as error:
        print(type(error).__name__)
print(sorted(weir.memory.stats("cpu")))

# --- transforms
with weir.fft.FFT(weir.ones(8)) as transform:
    transform.plan()
    print(transform.execute().shape)

# --- errors


def fails() -> None:
    raise ValueError("no such file")


failed = weir.host_task(fails)
try:
    failed.wait()
except weir.OperationError as error:
    print(error.label, type(error.__cause__).__name__)

# --- labels
with weir.label("window"):
    x *= 2
weir.fill(x[0], 1, label="first row")
failed = weir.host_task(fails, label="load")
try:
    failed.wait(timeout=60)  # seconds; False if it is not over by then
except weir.OperationError as error:
    print(error.label)

# --- pickling, by value
print(pickle.loads(pickle.dumps(x)).shape)

# --- fork
table = weir.arange(1000, dtype="float64")


def share_of(i: int) -> float:
    return float(table[i::4].sum())


for device in weir.devices():
    device.synchronize()  # nothing may be pending at the fork
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(share_of, range(4)))
