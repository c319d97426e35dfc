"""Kernels for CUDA devices: arguments, launches, order (K1, K2, C4, C10, D1, D2). The driver may be the fake one."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import weir
from cuda_driver import CudaDriver, is_fake
from weir.testing import Gate

AXPY = """
extern "C" __global__ void axpy(const float* x, float* y, float a, long long n) {
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = a * x[i] + y[i];
    }
}
"""
FILL = """
extern "C" __global__ void fill(int* y, int value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        y[i] = value;
    }
}
"""


@pytest.fixture
def axpy(cuda: weir.Device) -> weir.Kernel:
    return weir.Kernel(AXPY, "axpy", "in float* x, inout float* y, float a, int64 n")


@pytest.fixture
def fill(cuda: weir.Device) -> weir.Kernel:
    return weir.Kernel(FILL, "fill", "out int* y, int value, int n", options=["-DUNUSED=1"], device=cuda)


def ones(n: int = 100, dtype: str = "float32") -> weir.Array:
    return weir.ones(n, dtype, device="cuda:0")


def test_a_kernel_says_what_it_is(axpy: weir.Kernel, cuda: weir.Device) -> None:
    assert axpy.name == "axpy"
    assert axpy.device == cuda
    assert axpy.handle != 0
    assert axpy.max_threads_per_block >= 32
    assert repr(axpy).startswith("<weir.Kernel axpy(in float32* x")


def test_k1_a_launch_computes_and_gives_an_event(axpy: weir.Kernel) -> None:
    x, y = ones(), ones()
    event = axpy.launch(4, 32, x, y, 2.0, 100)
    assert isinstance(event, weir.Event)
    event.wait()
    assert y.numpy().tolist() == [3.0] * 100


def test_the_forms_of_a_launch_are_the_same(axpy: weir.Kernel) -> None:
    s = weir.Stream("cuda:0")
    x, y = ones(), ones()
    axpy[4, 32](x, y, 1, 100)
    axpy[(4, 1), (32, 1, 1), s](x, y, 1, 100)
    axpy[4, 32, None, 64](x, y, 1, 100)
    axpy.launch((4,), [32], weir.In(x), weir.InOut(y), 1, 100, stream=s, after=[x.device and s.record()], shared=16)
    assert y.numpy().tolist() == [5.0] * 100


CLUSTER = """
extern "C" __global__ void shape(int* y) {
    unsigned blocks = 0;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
    y[blockIdx.x] = blocks;
}
"""
MEET = """
extern "C" __global__ void meet(unsigned* arrived, int* y) {
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
        y[blockIdx.x] = atomicAdd(arrived, 0);
    }
}
"""


def test_k1_a_launch_in_clusters(fill: weir.Kernel) -> None:
    y = weir.zeros(8, "int32", device="cuda:0")
    if is_fake():  # which compiles no PTX
        fill.launch(8, 32, y, 7, 8, cluster=(2, 1), wait=True)
        assert CudaDriver().last_special_launch() == [2, 1, 1, 0]
        assert y.tolist() == [7] * 8
    else:
        weir.Kernel(CLUSTER, "shape", "out int* y").launch(8, 32, y, cluster=2)
        assert y.tolist() == [2] * 8


def test_k1_blocks_of_a_cooperative_launch_wait_for_each_other(fill: weir.Kernel) -> None:
    if is_fake():  # which runs one block after the other
        y = weir.zeros(8, "int32", device="cuda:0")
        fill.launch(8, 32, y, 7, 8, cooperative=True, wait=True)
        assert CudaDriver().last_special_launch() == [0, 0, 0, 1]
        assert y.tolist() == [7] * 8
    else:
        meet = weir.Kernel(MEET, "meet", "inout uint32* arrived, out int* y")
        blocks = meet.max_cooperative_blocks(128)
        y = weir.zeros(blocks, "int32", device="cuda:0")
        meet.launch(blocks, 128, weir.zeros(1, "uint32", device="cuda:0"), y, cooperative=True)
        assert y.tolist() == [blocks] * blocks


def test_clusters_and_cooperative_grids_that_cannot_be_are_refused(fill: weir.Kernel) -> None:
    y = weir.zeros(8, "int32", device="cuda:0")
    with pytest.raises(weir.ArgumentError, match="its grid has 7 blocks along x; make that a multiple of 2"):
        fill.launch(7, 32, y, 7, 8, cluster=2)
    with pytest.raises(weir.ArgumentTypeError, match="cluster"):
        fill.launch(8, 32, y, 7, 8, cluster="2")
    most = fill.max_cooperative_blocks((16, 16), shared=1 << 10)
    with pytest.raises(weir.ArgumentError, match=f"runs {most} of them at the same time"):
        fill.launch(most + 1, (16, 16), y, 7, 8, cooperative=True, shared=1 << 10)
    with pytest.raises(weir.ArgumentTypeError, match="cooperative"):
        fill.launch(8, 32, y, 7, 8, cooperative="yes")
    assert y.tolist() == [0] * 8


def test_k1_none_is_a_null_pointer(cuda: weir.Device) -> None:
    source = """
extern "C" __global__ void add(const float* x, const float* bias, float* y) {
    y[0] = x[0] + (bias != nullptr ? bias[0] : 100);
}
"""
    add = weir.Kernel(source, "add", "in float* x, in float* bias, out float* y")
    x, bias, y = ones(1), ones(1), ones(1)
    add[1, 1](x, bias, y)
    assert y.tolist() == [2]
    add[1, 1](x, None, y)
    assert y.tolist() == [101]


SUM = """
struct point { double x; float weight; short tag[3]; };
struct pair { int of[2]; };
extern "C" __global__ void sum(double* y, point p, pair q) { y[0] = p.x * p.weight + p.tag[2] + q.of[0] + q.of[1]; }
"""
POINT = np.dtype([("x", "f8"), ("weight", "f4"), ("tag", "i2", 3)], align=True)


class Pair(ctypes.Structure):
    _fields_ = [("of", ctypes.c_int32 * 2)]


def test_k1_structures_are_passed_by_value(cuda: weir.Device) -> None:
    total = weir.Kernel(SUM, "sum", "out double* y, struct point p, struct pair q")
    assert "struct point p" in repr(total)
    y = weir.zeros(1, "float64", device=cuda)
    p = np.array((1.5, 2, (3, 4, 5)), POINT)
    q = Pair((10, 20))
    s = weir.Stream("cuda:0")
    with Gate() as gate:  # what is changed after the call is not what the kernel gets
        gate.hold(s)
        total[1, 1, s](y, p[()], q)
        p["x"], q.of[0] = 100, 100
    assert y.tolist() == [1.5 * 2 + 5 + 30]
    total[1, 1](y, p, struct.pack("ii", 1, 2))
    assert y.tolist() == [100 * 2 + 5 + 3]


def test_structures_that_cannot_be_are_refused(cuda: weir.Device) -> None:
    total = weir.Kernel(SUM, "sum", "out double* y, struct point p, struct pair q")
    y = weir.zeros(1, "float64", device=cuda)
    p = np.zeros((), POINT)
    for wrong in (3, None, y):
        with pytest.raises(weir.ArgumentTypeError) as refused:
            total[1, 1](y, p, wrong)
        assert 'argument 3 of the kernel sum is "struct pair q", and got ' in str(refused.value)
        assert "pass a structure of ctypes, a record of NumPy" in str(refused.value)
    with pytest.raises(weir.ArgumentError, match="a structure of 4 bytes, and the parameter has 8"):
        total[1, 1](y, p, b"1234")
    with pytest.raises(weir.ArgumentError, match="has 2 parameters, and the kernel sum has 3"):
        weir.Kernel(SUM, "sum", "out double* y, struct point p")
    assert y.tolist() == [0]


def test_none_is_no_number(axpy: weir.Kernel) -> None:
    x, y = ones(), ones()
    with pytest.raises(
        weir.ArgumentTypeError, match='argument 3 of the kernel axpy is "float32 a", and got None: pass a number'
    ):
        axpy[4, 32](x, y, None, 100)
    assert y.tolist() == [1] * 100


SHARED = """
import ctypes, os, threading, weir
fake = ctypes.CDLL(os.environ["WEIR_CUDA_DRIVER"])
source = 'extern "C" __global__ void fill(int* y, int value) { y[0] = value; }'
fill = weir.Kernel(source, "fill", "out int* y, int value")
y = weir.zeros(1, "int32", device="cuda:0")
weir.Device("cuda:0").synchronize()
fake.weir_fake_stop_any(b"cuFuncSetAttribute")
thread = threading.Thread(target=lambda: LAUNCH)
thread.start()
while not fake.weir_fake_is_stopped():
    pass
fake.weir_fake_go_on(None)
thread.join()
assert y.tolist() == [7]
"""


@pytest.mark.parametrize(
    "launch",
    ["fill.launch(1, 1, y, 7, shared=100 << 10)", "fill[1, 1, None, 100 << 10](y, 7)"],
    ids=["launch", "index"],
)
def test_s1_a_launch_that_asks_the_driver_for_shared_memory_lets_other_threads_run(
    driver: CudaDriver, launch: str
) -> None:
    """Another process, which would hang: the driver is stopped until another thread of Python has seen that."""
    subprocess.run([sys.executable, "-c", SHARED.replace("LAUNCH", launch)], check=True, timeout=120)


def test_d2_waiting_and_not_waiting_give_the_same(fill: weir.Kernel) -> None:
    y, z = ones(100, "int32"), ones(100, "int32")
    event = fill.launch(4, 32, y, 7, 100, wait=True)
    assert event.done
    fill.launch(4, 32, z, 7, 100)
    assert (y.numpy() == z.numpy()).all()


def test_o1_launches_on_several_streams_are_ordered_by_what_they_declare(fill: weir.Kernel, axpy: weir.Kernel) -> None:
    first, second, third = (weir.Stream("cuda:0") for _ in range(3))
    x, y, z = ones(), ones(), ones()
    zeros = weir.zeros(100, "float32", device="cuda:0")
    weir.Device("cuda:0").synchronize()
    with Gate() as gate:
        gate.hold(first)
        axpy[4, 32, first](zeros, x, 0, 100)
        after = axpy[4, 32, second](x, y, 2, 100)
        beside = axpy[4, 32, third](zeros, z, 2, 100)  # shares only what it reads
        beside.wait()
        assert not after.done
    after.wait()
    assert y.numpy().tolist() == [3.0] * 100


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_o1_a_launch_reads_what_another_stream_writes(axpy: weir.Kernel, mode: str) -> None:
    """The control, left to its own order, runs before the write that is held."""
    first, second = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    x, y = ones(), ones()
    weir.Device("cuda:0").synchronize()
    with Gate() as gate, weir.ordering(mode):
        gate.hold(first)
        weir.fill(x, 7, stream=first)
        after = axpy[4, 32, second](x, y, 2, 100)
        if mode == "manual":
            after.wait()
        else:
            assert not after.done
    weir.Device("cuda:0").synchronize()
    assert y.numpy().tolist() == [15.0 if mode == "auto" else 3.0] * 100


def test_c4_launches_of_one_kernel_do_not_share_arguments(fill: weir.Kernel) -> None:
    streams = [weir.Stream("cuda:0") for _ in range(4)]
    arrays = [ones(50, "int32") for _ in range(4)]
    with Gate() as gate:
        for i, (s, y) in enumerate(zip(streams, arrays, strict=True)):
            gate.hold(s)
            fill[1, 32, s](y, i, 50)
    for i, y in enumerate(arrays):
        assert y.numpy().tolist() == [i] * 50


def test_c10_a_launcher_that_is_kept_honours_its_stream(fill: weir.Kernel) -> None:
    held, free = weir.Stream("cuda:0"), weir.Stream("cuda:0")
    on_held, on_free = fill[1, 32, held], fill[1, 32, free]
    x, y = ones(50, "int32"), ones(50, "int32")
    weir.Device("cuda:0").synchronize()
    with Gate() as gate:
        gate.hold(held)
        event = on_held(x, 1, 50)
        on_free(y, 2, 50).wait()
        assert not event.done
    event.wait()


def test_s7_without_a_stream_it_is_the_current_one(fill: weir.Kernel) -> None:
    x = ones(50, "int32")
    weir.Device("cuda:0").synchronize()
    with weir.Stream("cuda:0") as s, Gate() as gate:
        gate.hold(s)
        event = fill[1, 32](x, 1, 50)
        assert not event.done
    with weir.Stream("cpu"):  # of another device: says nothing
        fill[1, 32](x, 2, 50).wait()


def test_d1_events_order_launches_in_chains_and_diamonds(fill: weir.Kernel) -> None:
    streams = [weir.Stream("cuda:0") for _ in range(4)]
    arrays = [ones(50, "int32") for _ in range(4)]
    weir.Device("cuda:0").synchronize()
    with Gate() as gate:
        gate.hold(streams[0])
        first = fill.launch(1, 32, arrays[0], 1, 50, stream=streams[0])
        left = fill.launch(1, 32, arrays[1], 1, 50, stream=streams[1], after=[first])
        right = fill.launch(1, 32, arrays[2], 1, 50, stream=streams[2], after=first)
        free = weir.Stream("cuda:0")
        fill.launch(1, 32, ones(50, "int32"), 1, 50, stream=free, after=[]).wait()
        last = fill.launch(1, 32, arrays[3], 1, 50, stream=streams[3], after=[left, right])
        assert not any(event.done for event in (first, left, right, last))
    last.wait()
    assert all(event.done for event in (first, left, right))


def test_numbers_are_converted_as_the_signature_says(cuda: weir.Device) -> None:
    types = {
        "bool": ("bool", True),
        "signed char": ("int8", -128),
        "short": ("int16", -32768),
        "int": ("int32", 2**31 - 1),
        "long long": ("int64", -(2**63)),
        "unsigned char": ("uint8", 255),
        "unsigned short": ("uint16", 65535),
        "unsigned int": ("uint32", 2**32 - 1),
        "unsigned long long": ("uint64", 2**64 - 1),
        "float": ("float32", 1.5),
        "double": ("float64", -1e300),
    }
    for cpp, (dtype, value) in types.items():
        store = weir.Kernel(
            f'extern "C" __global__ void store({cpp}* y, {cpp} value) {{ y[0] = value; }}',
            "store",
            f"out {dtype}* y, {dtype} value",
        )
        y = weir.zeros(1, dtype, device=cuda)
        for given in (value, np.dtype(dtype).type(value)):
            store[1, 1](y, given)
            assert y.numpy(copy=True)[0] == value, (dtype, given)


def test_many_parameters_are_passed_in_their_order(cuda: weir.Device) -> None:
    count = 40
    source = "".join(
        [
            'extern "C" __global__ void store(long long* y',
            *(f", int a{i}" for i in range(count)),
            ") {",
            *(f" y[{i}] = a{i};" for i in range(count)),
            " }",
        ]
    )
    store = weir.Kernel(source, "store", "out int64* y" + "".join(f", int a{i}" for i in range(count)))
    y = weir.zeros(count, "int64", device=cuda)
    store[1, 1](y, *range(100, 100 + count))
    assert y.numpy().tolist() == list(range(100, 100 + count))


def test_any_array_is_taken_for_a_pointer_to_void(cuda: weir.Device) -> None:
    clear = weir.Kernel(
        'extern "C" __global__ void clear(void* y, long long n) { for (int i = 0; i < n; ++i) ((char*)y)[i] = 0; }',
        "clear",
        "inout void* y, int64 n",
    )
    for dtype in ("int8", "complex128"):
        y = ones(10, dtype)
        clear[1, 1](y, y.nbytes)
        assert not y.numpy(copy=True).any()


REFUSED: dict[str, tuple[Callable[[weir.Kernel, weir.Array, weir.Array], object], type[Exception], str]] = {
    "too few": (lambda k, x, y: k[1, 1](x, y, 1.0), weir.ArgumentError, "has 4 parameters, and got 3"),
    "too many": (lambda k, x, y: k[1, 1](x, y, 1.0, 1, 1), weir.ArgumentError, "has 4 parameters, and got 5"),
    "a text": (
        lambda k, x, y: k[1, 1](x, y, "1", 1),
        weir.ArgumentTypeError,
        'argument 3 .* "float32 a".* pass a number',
    ),
    "a fraction": (
        lambda k, x, y: k[1, 1](x, y, 1, 1.5),
        weir.ArgumentTypeError,
        'argument 4 .* "int64 n".* an integer',
    ),
    "out of range": (lambda k, x, y: k[1, 1](x, y, 1, 2**63), weir.ArgumentError, "out of range"),
    "too large": (lambda k, x, y: k[1, 1](x, y, 1e39, 1), weir.ArgumentError, "out of range"),
    "too large a whole": (lambda k, x, y: k[1, 1](x, y, 10**400, 1), weir.ArgumentError, "out of range"),
    "no array": (lambda k, x, y: k[1, 1](x, 1, 1, 1), weir.ArgumentTypeError, "pass a weir.Array"),
    "numpy": (lambda k, x, y: k[1, 1](np.ones(3), y, 1, 1), weir.ArgumentTypeError, "pass a weir.Array"),
    "other elements": (
        lambda k, x, y: k[1, 1](x.astype("float64"), y, 1, 1),
        weir.ArgumentTypeError,
        r"array of float64: pass a weir.Array of float32, x.astype\(dtype\) converts one",
    ),
    "another use": (lambda k, x, y: k[1, 1](weir.Out(x), y, 1, 1), weir.ArgumentError, r"weir.In\(x\)"),
    "strides": (lambda k, x, y: k[1, 1](x[::2], y, 1, 1), weir.ArgumentError, r"x.copy\(\)"),
    "the host's": (lambda k, x, y: k[1, 1](x.to("cpu"), y, 1, 1), weir.ArgumentError, "cannot reach"),
    "another stream": (lambda k, x, y: k[1, 1, weir.Stream("cpu")](x, y, 1, 1), weir.ArgumentError, "works on cuda:0"),
    "no stream": (lambda k, x, y: k[1, 1, "s"](x, y, 1, 1), weir.ArgumentTypeError, "no stream"),
    "no blocks": (lambda k, x, y: k[0, 1](x, y, 1, 1), weir.ArgumentError, "at least 1"),
    "negative": (lambda k, x, y: k[1, -1](x, y, 1, 1), weir.ArgumentError, "blocks of -1 x 1 x 1 threads"),
    "four axes": (lambda k, x, y: k[(1, 1, 1, 1), 1](x, y, 1, 1), weir.ArgumentError, "one to three"),
    "no number": (lambda k, x, y: k["1", 1](x, y, 1, 1), weir.ArgumentTypeError, "grid is '1'"),
    "one index": (lambda k, x, y: k[1](x, y, 1, 1), weir.ArgumentError, r"k\[grid, block\]"),
    "shared": (lambda k, x, y: k.launch(1, 1, x, y, 1, 1, shared=-1), weir.ArgumentError, "shared is -1"),
    "after": (lambda k, x, y: k.launch(1, 1, x, y, 1, 1, after=3), weir.ArgumentTypeError, "after= got 3"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_cannot_be_is_refused_and_nothing_is_enqueued(which: str, axpy: weir.Kernel) -> None:
    call, error, message = REFUSED[which]
    s = weir.Stream("cuda:0")
    with s:
        x, y = ones(), ones()
        s.synchronize()
        with pytest.raises(error, match=message) as told:
            call(axpy, x, y)
    assert "::" not in str(told.value), "the message names a call of C++"
    assert y.ready
    assert y.numpy().tolist() == [1.0] * 100


def test_what_does_not_compile_is_told_with_its_line(cuda: weir.Device) -> None:
    with pytest.raises(weir.ArgumentError, match="nonsense"):
        weir.Kernel('extern "C" __global__ void f() { nonsense; }', "f", "")
    with pytest.raises(weir.ArgumentError, match="inn float"):
        weir.Kernel('extern "C" __global__ void f(float* x) { }', "f", "inn float* x")
    with pytest.raises(weir.ArgumentError, match="cpu"):
        weir.Kernel('extern "C" __global__ void f() { }', "f", "", device="cpu")


def test_a_kernel_may_be_dropped_before_its_launch_has_run(fill: weir.Kernel) -> None:
    s = weir.Stream("cuda:0")
    y = ones(50, "int32")
    kernel = weir.Kernel(FILL, "fill", "out int* y, int value, int n")
    alive = weakref.ref(kernel)
    with Gate() as gate:
        gate.hold(s)
        kernel[1, 32, s](y, 9, 50)
        del kernel
        assert alive() is None
        weir.Kernel(AXPY, "axpy", "in float* x, inout float* y, float a, int64 n")
    assert y.numpy().tolist() == [9] * 50


def test_a_launcher_takes_no_keywords_and_says_what_does(fill: weir.Kernel) -> None:
    x = ones(4, "int32")
    with pytest.raises(weir.ArgumentTypeError, match=r"k\.launch\(grid, block"):
        fill[1, 32](x, 7, 4, wait=True)  # type: ignore[call-arg]
    assert x.tolist() == [1, 1, 1, 1]
    assert isinstance(fill[1, 32].__call__(x, 7, 4), weir.Event)
    assert x.tolist() == [7, 7, 7, 7]
    with pytest.raises(weir.ArgumentError, match="3 parameters, and got 1"):
        fill[1, 32].__call__(x)


TRAPS = """
import weir
trap = weir.Kernel(
    'extern "C" __global__ void trap(float* x, int n) { if (n > 0) { __trap(); } }', "trap", "inout float* x, int n"
)
x = weir.ones(32, "float32", device="cuda:0")
trap.launch(1, 32, x, 0, wait=True)
pending = [weir.ones(1000, "float32", device="cuda:0") for _ in range(10)]
trap.launch(1, 32, x, 1)
"""


def run_traps(then: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: nothing runs on the device any more. It must end."""
    command = [sys.executable, "-c", TRAPS + textwrap.dedent(then)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_kernel_that_traps_is_an_error_that_says_what_to_do(cuda: weir.Device) -> None:
    done = run_traps(
        """
        try:
            x.numpy()
        except weir.Error as error:
            print(error)
        print(weir.ones(3, "float32", device="cpu").numpy().tolist())
        """
    )
    assert done.returncode == 0, done.stderr
    assert "An earlier kernel failed" in done.stdout
    assert done.stdout.endswith("[1.0, 1.0, 1.0]\n")


def test_where_nobody_catches_that_the_interpreter_ends_with_it(cuda: weir.Device) -> None:
    done = run_traps("x.numpy()")
    assert done.returncode == 1, done.stderr
    assert "start it again, with compute-sanitizer to find the kernel" in done.stderr.splitlines()[-1]


def test_where_nobody_looks_the_interpreter_ends(cuda: weir.Device) -> None:
    assert run_traps("").returncode == 0
