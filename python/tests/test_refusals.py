"""What Weir refuses of other packages: the error names the package and the mend, and has the cause (X10)."""

from __future__ import annotations

import sys
import traceback
import types
from typing import Any

import numpy as np
import pytest
import weir
from cuda_driver import is_fake


class Lender:
    """Hands over another array by DLPack alone, from a device that it names."""

    def __init__(self, of: Any, on: tuple[int, int] | None = None) -> None:
        self.of = of
        self.on = on or of.__dlpack_device__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.on

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.of.__dlpack__(**keywords)


class ByInterface:
    """Has the CUDA Array Interface of another array, with some entries replaced."""

    def __init__(self, of: weir.Array, **other: Any) -> None:
        self.said = {**of.__cuda_array_interface__, **other}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.said


def refused(x: object, take: Any = weir.from_dlpack) -> weir.ExchangeError:
    with pytest.raises(weir.ExchangeError) as raised:
        take(x)
    return raised.value


def test_x10_the_cause_is_an_exception_where_c_code_raised_it() -> None:
    error = refused(np.array([None]))
    assert isinstance(error.__cause__, BufferError)
    assert f'BufferError, "{error.__cause__}"' in str(error)
    assert "DLPack only supports" in "".join(traceback.format_exception(error))


def test_x10_memory_that_does_not_fit_its_type_names_the_package() -> None:
    made = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float32)
    assert "what test_refusals hands over by DLPack is refused: " in str(refused(Lender(made)))


def test_x10_a_device_that_does_not_exist_names_the_package(cuda: weir.Device) -> None:
    assert cuda.kind == "cuda"
    assert "what test_refusals hands over by DLPack is refused: " in str(refused(Lender(np.zeros(3), (2, 99))))
    assert "CUDA devices have numbers from 0" in str(refused(Lender(np.zeros(3), (2, -5))))


def test_x10_a_device_that_the_tensor_contradicts_is_refused(cuda: weir.Device) -> None:
    there = weir.zeros(3, device=cuda)
    assert "(2, 0)" in str(refused(Lender(there, (1, 0))))

    class OnTheHost(Lender):
        def __dlpack__(self, **_keywords: Any) -> Any:
            return self.of.__dlpack__()

    assert "says (2, 0), and its tensor is on (1, 0)" in str(refused(OnTheHost(np.zeros(3), (2, 0))))


def test_x1_a_producer_on_a_cuda_device_needs_no_keywords(cuda: weir.Device) -> None:
    class Bare:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self) -> Any:
            return weir.full(3, 2, "float32", device=cuda).__dlpack__(stream=-1)

    assert weir.from_dlpack(Bare()).tolist() == [2, 2, 2]


@pytest.mark.parametrize("by", ["DLPack", "the CUDA Array Interface"])
def test_imports_without_elements_stay_on_their_device(cuda: weir.Device, by: str) -> None:
    of = weir.empty((0, 3), "float32", device=cuda)
    x = weir.asarray(
        Lender(of) if by == "DLPack" else ByInterface(weir.ones(1, device=cuda), shape=(0, 3), data=(0, False))
    )
    assert x.device == cuda
    assert x.shape == (0, 3)
    assert (x + weir.empty((0, 3), x.dtype, device=cuda)).device == cuda


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2"])
def test_x3_what_the_interface_has_no_type_for_has_no_interface(cuda: weir.Device, name: str) -> None:
    x = weir.empty(4, name, device=cuda)
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="use DLPack"):
        _ = x.__cuda_array_interface__


def test_x3_each_entry_that_is_wrong_names_the_package(cuda: weir.Device) -> None:
    of = weir.zeros(4, "float32", device=cuda)
    wrong: list[tuple[str, object]] = [("stream", -1), ("stream", 0), ("version", 0), ("version", "3")]
    if is_fake():  # a real driver may crash
        wrong.append(("stream", 12345))
    for entry, value in wrong:
        error = str(refused(ByInterface(of, **{entry: value}), weir.asarray))
        assert "the __cuda_array_interface__ of a test_refusals array" in error
        assert entry in error


def test_x3_what_the_interface_raises_is_the_cause() -> None:
    class Freed:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise ValueError("freed")

    error = refused(Freed(), weir.asarray)
    assert isinstance(error.__cause__, ValueError)
    assert 'by the CUDA Array Interface: ValueError, "freed"' in str(error)


def test_x10_ctrl_c_is_no_answer() -> None:
    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt if name == "__dlpack__" else AttributeError(name)

    for take in (weir.asarray, weir.from_dlpack, weir.array):
        with pytest.raises(KeyboardInterrupt):
            take(Interrupted())


def test_stream_of_knows_the_device_of_the_memory() -> None:
    if len(weir.devices("cuda")) < 2:
        pytest.skip("needs two CUDA devices")
    of = weir.zeros(4, device="cuda:1")
    for handle in (1, 2, weir.Stream("cuda:1").handle):
        assert weir.stream_of(ByInterface(of, stream=handle)).device.name == "cuda:1"
    with pytest.raises(weir.ExchangeError, match="names stream 0"):
        weir.stream_of(ByInterface(of, stream=0))


def test_x7_exports_do_not_need_a_torch_that_is_only_half_imported(
    cuda: weir.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another thread sees it that imports it now."""
    x = weir.zeros(4, device=cuda)
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    x.__dlpack__(stream=-1)
    assert hasattr(x, "__cuda_array_interface__")
    with weir.borrow(x):
        pass


def of_torch(**says: Any) -> Any:
    """A tensor of a torch without an exchange table, which hands over an array of NumPy's."""
    elements = np.arange(3.0, dtype="float32")
    has = {
        "__module__": "torch",
        "__dlpack_device__": lambda _: (1, 0),
        "__dlpack__": lambda _, **keywords: elements.__dlpack__(**keywords),
        "requires_grad": False,
        "is_neg": lambda _: False,
        **says,
    }
    return type("Tensor", (), has)()


def test_x1_the_negative_bit_is_refused_without_an_exchange_table_as_well() -> None:
    assert weir.asarray(of_torch()).tolist() == [0, 1, 2]
    for take in (weir.asarray, weir.array, weir.from_dlpack):
        assert "resolve_neg()" in str(refused(of_torch(is_neg=lambda _: True), take))


@pytest.mark.parametrize(
    ("says", "mend"),
    [
        ({"requires_grad": True}, "x.detach()"),
        ({"is_conj": lambda _: True}, "x.resolve_conj()"),
        ({"is_sparse": True}, "x.to_dense()"),
        ({"is_quantized": True}, "x.dequantize()"),
        ({}, "a plain copy of numbers"),
    ],
)
def test_x10_the_mend_for_a_tensor_of_torch_is_its_own(says: dict[str, Any], mend: str) -> None:
    def raises(_: object, **_keywords: Any) -> Any:
        raise BufferError("no")

    assert mend in str(refused(of_torch(__dlpack__=raises, **says)))


def test_explain_says_who_shares_the_memory() -> None:
    class Named(Lender):
        pass

    shared, given = weir.asarray(Named(np.arange(3.0))), weir.asarray(Named(np.arange(3.0)), exclusive=True)
    assert weir.explain(shared).shared_with == [
        "test_refusals: operations that conflict are over when their calls return"
    ]
    assert "shared with:\n    test_refusals: operations that conflict" in str(weir.explain(shared))
    assert weir.explain(given).shared_with == []
    assert "shared with nobody: the package has let go of it" in str(weir.explain(given))
    assert weir.explain(weir.zeros(3)).shared_with == []
    assert "shared" not in str(weir.explain(weir.zeros(3)))


def test_explain_says_what_orders_operations_on_a_cuda_device(cuda: weir.Device) -> None:
    theirs = weir.Stream(cuda)
    x = weir.asarray(ByInterface(weir.zeros(4, device=cuda), stream=theirs.handle))
    assert any(
        line.endswith("operations and its current stream wait for each other") for line in weir.explain(x).shared_with
    )


def test_the_number_of_classes_in_a_program_changes_nothing() -> None:
    unaligned = np.frombuffer(bytearray(17), np.uint8)[1:].view(np.float32)
    base = np.arange(4.0)
    assert weir.asarray(unaligned).tolist() == [0] * 4
    classes = []
    for _ in range(400):

        class Local:
            def __dlpack__(self, **keywords: Any) -> Any:
                return base.__dlpack__(**keywords)

            def __dlpack_device__(self) -> tuple[int, int]:
                return (1, 0)

        classes.append(Local)
        assert weir.asarray(Local()).tolist() == [0, 1, 2, 3]
    assert weir.asarray(unaligned).tolist() == [0] * 4
    assert weir.explain(weir.asarray(base)).protocol == "buffer protocol"


def test_types_and_devices_of_torch_and_jax_are_known_by_their_names() -> None:
    def named(kind: str, module: str, text: str, **has: Any) -> Any:
        return type(kind, (), {"__module__": module, "__str__": lambda _: text, **has})()

    assert weir.zeros(2, named("dtype", "torch", "torch.float16")).dtype == "float16"
    assert weir.zeros(2, named("_ScalarMeta", "jax._src.numpy", "", dtype=np.dtype("int16"))).dtype == "int16"
    assert weir.zeros(2, device=named("device", "torch", "cpu")).device.name == "cpu"
    with pytest.raises(weir.ArgumentTypeError, match="a dtype of NumPy, torch or JAX"):
        weir.zeros(2, named("dtype", "other", "float16"))
    with pytest.raises(weir.ArgumentTypeError, match=r"pass a weir\.Device or a name"):
        weir.zeros(2, device=named("device", "other", "cpu"))


def test_a_list_that_changes_while_its_numbers_are_read_is_refused() -> None:
    numbers: list[Any] = []

    class Clears:
        def __float__(self) -> float:
            numbers.clear()
            return 1.0

        def __index__(self) -> int:
            numbers.clear()
            return 1

    numbers.extend([Clears(), 2.0, 3.0])
    with pytest.raises(weir.Error):
        weir.array(numbers)
