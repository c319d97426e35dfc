"""weir.torch: the operators that are taken by their types are reported like all others (rule V1). No GPU is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import weir
import weir.torch
from torch_device import Device, needs_torch, torch

pytestmark = needs_torch

A, B = 16, 32  # streams
OF_CUDNN = {"cudnn_convolution", "cudnn_batch_norm", "cudnn_batch_norm_backward"}  # by test_torch_watch_cuda.py


def f(*shape: int) -> Any:
    return torch.rand(*shape) + 0.5


def two() -> list[Any]:
    return [f(4), f(4)]


CASES: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "add_Tensor": ("add.Tensor", lambda: [f(8), f(8)]),
    "add__Tensor": ("add_.Tensor", lambda: [f(8), f(8)]),
    "sub_Tensor": ("sub.Tensor", lambda: [f(8), f(8)]),
    "mul_Tensor": ("mul.Tensor", lambda: [f(8), f(8)]),
    "mul__Tensor": ("mul_.Tensor", lambda: [f(8), f(8)]),
    "div_Tensor": ("div.Tensor", lambda: [f(8), f(8)]),
    "neg": ("neg", lambda: [f(8)]),
    "exp": ("exp", lambda: [f(8)]),
    "sqrt": ("sqrt", lambda: [f(8)]),
    "rsqrt": ("rsqrt", lambda: [f(8)]),
    "pow_Tensor_Scalar": ("pow.Tensor_Scalar", lambda: [f(8), 3]),
    "where_self": ("where.self", lambda: [torch.tensor([True, False]), f(2), f(2)]),
    "sigmoid": ("sigmoid", lambda: [f(8)]),
    "tanh": ("tanh", lambda: [f(8)]),
    "relu": ("relu", lambda: [f(8)]),
    "relu_": ("relu_", lambda: [f(8)]),
    "gelu": ("gelu", lambda: [f(8)]),
    "silu": ("silu", lambda: [f(8)]),
    "threshold_backward": ("threshold_backward", lambda: [f(8), f(8), 0]),
    "gelu_backward": ("gelu_backward", lambda: [f(8), f(8)]),
    "mm": ("mm", lambda: [f(2, 3), f(3, 2)]),
    "bmm": ("bmm", lambda: [f(2, 2, 3), f(2, 3, 2)]),
    "addmm": ("addmm", lambda: [f(2), f(2, 3), f(3, 2)]),
    "_convolution": (
        "_convolution",
        lambda: [
            f(1, 2, 4, 4),
            f(3, 2, 3, 3),
            f(3),
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            False,
            False,
            False,
            False,
        ],
    ),
    "convolution": (
        "convolution",
        lambda: [f(1, 2, 4, 4), f(3, 2, 3, 3), f(3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1],
    ),
    "convolution_backward": (
        "convolution_backward",
        lambda: [
            f(1, 3, 2, 2),
            f(1, 2, 4, 4),
            f(3, 2, 3, 3),
            [3],
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            [True, True, True],
        ],
    ),
    "native_layer_norm": ("native_layer_norm", lambda: [f(2, 4), [4], f(4), f(4), 1e-5]),
    "native_layer_norm_backward": (
        "native_layer_norm_backward",
        lambda: [f(2, 4), f(2, 4), [4], f(2, 1), f(2, 1), f(4), f(4), [True, True, True]],
    ),
    "_softmax": ("_softmax", lambda: [f(2, 4), 1, False]),
    "_softmax_backward_data": ("_softmax_backward_data", lambda: [f(2, 4), f(2, 4), 1, torch.float32]),
    "_log_softmax": ("_log_softmax", lambda: [f(2, 4), 1, False]),
    "_log_softmax_backward_data": (
        "_log_softmax_backward_data",
        lambda: [f(2, 4), f(2, 4), 1, torch.float32],
    ),
    "nll_loss_forward": ("nll_loss_forward", lambda: [f(2, 4), torch.tensor([0, 1]), f(4), 1, -100]),
    "nll_loss_backward": (
        "nll_loss_backward",
        lambda: [f(1)[0], f(2, 4), torch.tensor([0, 1]), f(4), 1, -100, f(1)[0]],
    ),
    "embedding": ("embedding", lambda: [f(4, 2), torch.tensor([0, 1])]),
    "copy_": ("copy_", lambda: [f(8), f(8)]),
    "clone": ("clone", lambda: [f(8)]),
    "fill__Scalar": ("fill_.Scalar", lambda: [f(8), 1]),
    "zero_": ("zero_", lambda: [f(8)]),
    "sum": ("sum", lambda: [f(8)]),
    "sum_dim_IntList": ("sum.dim_IntList", lambda: [f(2, 4), [1]]),
    "mean_dim": ("mean.dim", lambda: [f(2, 4), [1]]),
    "cat": ("cat", lambda: [two()]),
    "index_Tensor": ("index.Tensor", lambda: [f(8), [torch.tensor([0, 2])]]),
    "index_select": ("index_select", lambda: [f(8), 0, torch.tensor([0, 2])]),
    "_foreach_add__List": ("_foreach_add_.List", lambda: [two(), two()]),
    "_foreach_add__Scalar": ("_foreach_add_.Scalar", lambda: [two(), 1]),
    "_foreach_mul__Scalar": ("_foreach_mul_.Scalar", lambda: [two(), 2]),
    "_foreach_lerp__Scalar": ("_foreach_lerp_.Scalar", lambda: [two(), two(), 0.5]),
    "_foreach_addcmul__Scalar": ("_foreach_addcmul_.Scalar", lambda: [two(), two(), two(), 1]),
}


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device()
    yield made
    made.end()


def operator(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for each in value for one in tensors(each)] if isinstance(value, list | tuple) else []


def operands(name: str, arguments: list[Any]) -> list[tuple[Any, bool]]:
    """All tensors among the arguments, and whether the schema says that they are written."""
    found = []
    for argument, value in zip(operator(name)._schema.arguments, arguments, strict=False):
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        found += [(one, is_written) for one in tensors(value)]
    return found


def kinds(device: Device, name: str, arguments: list[Any], then: Callable[[Any], object], waits: bool) -> set[str]:
    """Of the races between the operator on one stream and what `then(results)` does on another."""
    with weir.torch.check() as report:
        device.on(A)
        results = operator(name)(*arguments)
        if waits:
            device.wait(B, A)
        device.on(B)
        then(results)
        device.synchronize()
    return {race.kind for race in report}


def test_each_has_a_case() -> None:
    text = (Path(weir.__file__).parent / "_torch_hooks" / "operators.hpp").read_text()
    names = set(re.findall(r"\bops::(\w+)", text))
    assert names == set(CASES) | OF_CUDNN


@pytest.mark.parametrize(("name", "make"), CASES.values(), ids=CASES)
def test_v1_all_that_it_reads_and_writes_is_reported(device: Device, name: str, make: Callable[[], list[Any]]) -> None:
    for i, (_, is_written) in enumerate(operands(name, make())):
        for waits in (False, True):
            arguments = make()
            operand = operands(name, arguments)[i][0]
            found = kinds(device, name, arguments, lambda _, it=operand: it.zero_(), waits)
            assert found == (set() if waits else {"WAW" if is_written else "WAR"}), f"operand {i}"


@pytest.mark.parametrize(("name", "make"), CASES.values(), ids=CASES)
def test_v1_all_that_it_makes_is_reported(device: Device, name: str, make: Callable[[], list[Any]]) -> None:
    given = make()
    made = len(tensors(operator(name)(*given)))
    is_new = not any(is_written for _, is_written in operands(name, given))
    for i in range(made if is_new else 0):
        for waits in (False, True):
            found = kinds(device, name, make(), lambda results, i=i: tensors(results)[i].zero_(), waits)
            assert found == (set() if waits else {"WAW"}), f"result {i}"
