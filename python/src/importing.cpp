// Arrays of other packages as arrays of Weir: from_dlpack and asarray (rules X1, X3, X5, X6, X9).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "buffers.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "importing.hpp"
#include "interpreter.hpp"
#include "notes.hpp"
#include "numpy.hpp"
#include "packages.hpp"
#include "reference.hpp"
#include "scopes.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/giving_back.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"
#include "weir/launch.hpp"
#include "weir/token.hpp"

namespace weir::python {

namespace {

/// The memory of an array of NumPy's, by its buffer; no object where that does not say all, or while code looks on that may leave notes.
nb::object from_buffer(nb::handle x, const array_class& known, bool exclusive, calling_line& where) {
    if (!known.is_plain_numpy || notes::wanted()) {
        return {};
    }
    scopes::follow();
    std::optional<array> made = numpy::shared(x, exclusive ? nullptr : known.of, where.of_hosts());
    if (!made) {
        return {};
    }
    note_exchange(made->buffer(), {exchange_protocol::buffer});
    return new_object<array>(*std::move(made));
}

/// The memory that an object lends by the buffer protocol; no object where it lends none that can be shared, and for what is a value to
/// Python: a number of NumPy's, and bytes, which NumPy takes for a text.
nb::object from_lent(nb::handle x, bool exclusive, calling_line& where) {
    if (PyBytes_Check(x.ptr()) != 0 || numpy::is_scalar(x)) {
        return {};
    }
    const std::optional<lent_buffer> memory = lent_buffer::of(x);
    if (!memory) {
        return {};
    }
    scopes::follow();
    const bool let_go = exclusive && memory->memory().readonly == 0;
    std::optional<array> made = memory->shared(let_go ? nullptr : package_of(x), where.of_hosts());
    if (!made) {
        return {};
    }
    note_exchange(made->buffer(), {exchange_protocol::buffer});
    return new_object<array>(*std::move(made));
}

/// Whether the exception that is being handled says that an array cannot be exchanged in the way that was tried, whether its package
/// raised it or Weir. Needs the GIL, in a catch block.
bool is_refusal() noexcept {
    try {
        throw;
    } catch (const nb::python_error& raised) {
        return raised.matches(PyExc_BufferError);
    } catch (const exchange_error&) {
        return true;
    } catch (...) {
        return false;
    }
}

/// The array that was imported. If it is on a CUDA device, first gives memory back that consumers are done with: so a loop that passes
/// arrays from package to package has no more of them than are in use.
array after_giving_back(array made) {
    if (made.device().kind() == device_kind::cuda && weir::detail::has_released()) {
        without_gil([] { weir::detail::give_back_released(); });
        drain();
    }
    return made;
}

/// The same memory by DLPack; by the CUDA Array Interface where the package does not hand over by DLPack.
array from_producer_or_interface(nb::handle x, bool exclusive, std::optional<bool> copied, calling_line& where) {
    try {
        return from_dlpack_producer(x, exclusive, copied, where);
    } catch (...) {
        if (!is_refusal() || !has_cuda_array_interface(x)) {
            throw;
        }
    }
    return from_interface(x, exclusive, where.get());
}

/// The same memory as that of an array whose class is known; no object where only a copy can have the elements.
nb::object from_known(nb::handle x, const array_class& known, bool exclusive, std::optional<bool> copied,
                      calling_line& where) {
    if (nb::object made = from_buffer(x, known, exclusive, where); made.is_valid()) {
        return made;
    }
    if (known.is_plain_numpy) {
        switch (numpy::sharing_of(x)) {
            case numpy::sharing::none:
                return {};
            case numpy::sharing::by_integers: {
                scopes::follow();
                array made = numpy::shared_as_integers(x, exclusive, known.of, where.of_hosts());
                note_exchange(made.buffer(), {exchange_protocol::buffer});
                return new_object<array>(std::move(made));
            }
            case numpy::sharing::by_dlpack:
                break;
        }
    }
    try {
        return new_object<array>(after_giving_back(from_producer_or_interface(x, exclusive, copied, where)));
    } catch (...) {
        // Before version 2 NumPy's capsules cannot say that memory is read-only.
        if (!known.is_plain_numpy || !is_refusal()) {
            throw;
        }
        nb::object made = from_lent(x, exclusive, where);
        if (!made.is_valid()) {
            throw;
        }
        return made;
    }
}

/// The same memory as an array of another device, if that reaches it (rule X9).
std::optional<array> view_for(const array& x, const device& other) {
    const std::vector<device> reached = released([&] { return x.devices(); });
    return std::find(reached.begin(), reached.end(), other) != reached.end() ? std::optional(x.view_on(other))
                                                                             : std::nullopt;
}

/// The same memory, by whichever protocol of arrays the object has; no object where it has none, or where only a copy can have the
/// elements.
nb::object from_array_of_package(nb::handle x, bool exclusive, std::optional<bool> copied, calling_line& where) {
    if (const std::shared_ptr<const array_class> known = array_class_of(x)) {
        return from_known(x, *known, exclusive, copied, where);
    }
    if (nb::isinstance<array>(x)) {
        return nb::borrow(x);
    }
    if (has_arrow(x)) {
        return nb::cast(from_arrow_producer(x, copied, where.get()));
    }
    if (has_dlpack(x)) {
        return nb::cast(after_giving_back(from_producer_or_interface(x, exclusive, copied, where)));
    }
    if (has_cuda_array_interface(x)) {
        return nb::cast(after_giving_back(from_interface(x, exclusive, where.get())));
    }
    return {};
}

/// What is left to do to an array that was imported: another device, another type, a copy.
nb::object finished(nb::object imported_array, std::optional<dtype> type, std::optional<device> on,
                    std::optional<bool> copies, nb::handle on_stream, calling_line& where) {
    if (!type && !on && !copies.value_or(false) && on_stream.is_none()) {
        return imported_array;
    }
    const auto& x = nb::cast<const array&>(imported_array);
    const bool moves = on && *on != x.device();
    if (moves && !on_stream.is_none()) {
        throw argument_error(
            "stream= together with another device: a copy to another device has streams of two devices; leave stream "
            "out");
    }
    const device target = on.value_or(x.device());
    const std::optional<stream> given =
        on_stream.is_none() ? std::nullopt : std::optional(stream_from(on_stream, target));
    const bool converts = type && *type != x.dtype();
    if (moves && !converts && !copies.value_or(false)) {
        if (std::optional<array> seen = view_for(x, *on)) {
            return nb::cast(*std::move(seen));
        }
    }
    if (!moves && !converts && !copies.value_or(false)) {
        return imported_array;
    }
    if (copies == false) {
        throw copy_error(
            x.to_string() +
            (moves ? " is on another device than " + std::string(on->name()) : " has another element type") +
            ": it has to be copied, and copy=False forbids that");
    }
    const stream used = given ? *given : stream_between(target, x.device());
    const exchange_record how = last_exchange(x.buffer());
    const source_location from = where.get();
    array made = released([&] { return to(weir::on(used, from), x, target, type.value_or(x.dtype())); });
    if (!how.went_out && made.device_data() != x.device_data()) {
        note_exchange(made.buffer(), {how.by, false, how.by != exchange_protocol::none, moves && target == cpu()});
    }
    return nb::cast(std::move(made));
}

nb::object from_dlpack(nb::handle x, nb::handle on, nb::handle copy, nb::handle on_stream) {
    calling_line where;
    const std::optional<device> wanted = wanted_device(on);
    const std::optional<bool> copied = copy_wanted(copy);
    nb::object made;
    if (nb::isinstance<array>(x)) {
        made = nb::borrow(x);
    } else if (PyCapsule_CheckExact(x.ptr()) != 0 || array_class_of(x) != nullptr || has_dlpack(x)) {
        made = nb::cast(from_dlpack_producer(x, false, copied, where));
    } else {
        throw argument_type_error(
            "a " + std::string(nb::inst_name(x).c_str()) +
            " has no __dlpack__ and __dlpack_device__: pass an array of a package that has them, or "
            "call weir.asarray, which knows other protocols");
    }
    return finished(std::move(made), std::nullopt, wanted, copied, on_stream, where);
}

nb::object asarray(nb::handle x, nb::handle type, nb::handle on, nb::handle copy, nb::handle on_stream,
                   nb::handle exclusively, calling_line& where) {
    const std::optional<dtype> element = type.is_none() ? std::nullopt : std::optional(dtype_from(type));
    const std::optional<device> wanted = wanted_device(on);
    const std::optional<bool> copied = copy_wanted(copy);
    const bool exclusive = flag_from(exclusively, "exclusive");
    nb::object made;
    if (is_exactly<array>(x)) {
        made = nb::borrow(x);
        object_of<array>(x)->expect_usable(detail::key);
    } else if (nb::object shared = from_array_of_package(x, exclusive, copied, where); shared.is_valid()) {
        made = std::move(shared);
    } else if (nb::object lent = from_lent(x, exclusive, where); lent.is_valid()) {
        made = std::move(lent);
    } else if (copied == false) {
        throw copy_error("a " + std::string(nb::inst_name(x).c_str()) +
                         " is no array whose memory can be shared: it has to be copied, and copy=False forbids that");
    } else {
        const stream used =
            !on_stream.is_none() ? stream_from(on_stream, wanted) : current_in_context(wanted.value_or(cpu()));
        array elements = made_from(x, element, used, where.get());
        note_exchange(elements.buffer(), {exchange_protocol::elements, false, true, false});
        return nb::cast(std::move(elements));
    }
    return finished(std::move(made), element, wanted, copied, on_stream, where);
}

[[noreturn]] void refuse_to_copy(const std::string& what) {
    throw copy_error(what +
                     " whose elements have to be copied, since they are not aligned, not whole elements apart, or of a "
                     "type that Weir has in another form: pass weir.asarray(x), which is a copy");
}

}  // namespace

nb::object as_array(nb::handle x, const source_location& where) {
    calling_line known(where);
    return asarray(x, nb::none(), nb::none(), nb::none(), nb::none(), nb::bool_(false), known);
}

nb::object shared_array(nb::handle x, const source_location& where, bool buffers) {
    calling_line known_place(where);
    if (is_exactly<array>(x)) {
        return nb::borrow(x);
    }
    nb::object made = from_array_of_package(x, false, false, known_place);
    if (!made.is_valid() && numpy::is_array(x)) {
        refuse_to_copy("an array of NumPy");
    }
    return made.is_valid() || !buffers ? made : from_lent(x, false, known_place);
}

nb::object readable_array(nb::handle x, const source_location& where) {
    const bool is_column = !is_exactly<array>(x) && array_class_of(x) == nullptr && has_arrow(x);
    return is_column ? nb::cast(from_arrow_producer(x, std::nullopt, where)) : shared_array(x, where);
}

nb::object array_of_package(nb::handle x, const source_location& where) {
    calling_line known_place(where);
    try {
        return from_array_of_package(x, false, std::nullopt, known_place);
    } catch (...) {
        // Some packages give their elements to NumPy only: JAX those of an array on several devices.
        if (!is_refusal() || has_arrow(x) || !numpy::gets_elements(x)) {
            throw;
        }
    }
    return {};
}

nb::object shared_array_for(const char* what, nb::handle x, const source_location& where) {
    nb::object found = shared_array(x, where);
    if (nb::isinstance<token>(x)) {
        throw argument_type_error(std::string(what) + " got " + nb::repr(x).c_str() +
                                  ", which has no elements: pass an array here; a token is declared with In(t), Out(t) "
                                  "or InOut(t), or in reads= or writes= of host_task and Kernel.launch");
    }
    if (!found.is_valid() && PyBytes_Check(x.ptr()) == 0 && !numpy::is_scalar(x) && lent_buffer::of(x)) {
        refuse_to_copy(std::string(what) + " got a " + nb::inst_name(x).c_str());
    }
    if (!found.is_valid()) {
        throw argument_type_error(std::string(what) + " got " + repr_of(x) +
                                  ", which is no array of Weir, nor of a package that shares memory by DLPack: "
                                  "weir.array(x) makes one of a list");
    }
    nb::cast<const array&>(found).expect_usable(detail::key);
    return found;
}

void bind_importing(nb::module_& m) {
    m.def("_stream_of_interface", stream_of_interface, nb::arg("x"),
          nb::sig("def _stream_of_interface(x: object) -> Stream"));
    m.def(
        "from_dlpack", from_dlpack, nb::arg("x").none(), nb::kw_only(), nb::arg("device").none() = nb::none(),
        nb::arg("copy").none() = nb::none(), nb::arg("stream").none() = nb::none(),
        nb::sig(
            "def from_dlpack(x: Any, /, *, device: Device | str | tuple[int, int] | None = None, copy: bool | None = "
            "None, stream: Any = None) -> Array"),
        "The array that another package hands over by DLPack, or what is in a capsule: the same memory, unless another "
        "`device` is asked for or `copy` is true. An array of Weir is returned as it is.\n\n"
        "The array stays tied to its package (a live import): each operation starts after what the package has put "
        "into "
        "its current stream, and what the package does later starts after the operation. Packages without streams, "
        "such "
        "as NumPy, are done when their calls return, so an operation on their memory is over when its call returns. "
        "What "
        "is read-only there cannot be written: ArgumentError. The memory is kept until the last operation on it is "
        "over.\n\n"
        "`copy=False` never copies: CopyError where it would have to. `stream`: where a copy on the same device is "
        "made; "
        "where nothing is copied it changes nothing. Raises ArgumentTypeError for what does not speak "
        "DLPack, ExchangeError for what it says wrong, and for what its package raises, as the cause.");
    m.def(
        "asarray",
        [](nb::handle x, nb::handle type, nb::handle on, nb::handle copy, nb::handle on_stream,
           nb::handle exclusively) {
            calling_line where;
            return asarray(x, type, on, copy, on_stream, exclusively, where);
        },
        nb::arg("x").none(), nb::kw_only(), nb::arg("dtype").none() = nb::none(), nb::arg("device").none() = nb::none(),
        nb::arg("copy").none() = nb::none(), nb::arg("stream").none() = nb::none(), nb::arg("exclusive").none() = false,
        nb::sig(
            "def asarray(x: Any, /, *, dtype: Any = None, device: Device | str | tuple[int, int] | None = None, copy: "
            "bool | None = None, stream: Any = None, exclusive: bool = False) -> Array"),
        "An array of Weir with the elements of `x`: `x` itself if it is one, the same memory where `x` can share it "
        "(the buffer protocol, DLPack, Arrow, the CUDA Array Interface), else a copy, as weir.array makes it. "
        "`weir.explain` says which it was.\n\n"
        "Shared memory stays tied to its package, as weir.from_dlpack says. `exclusive=True` promises that the package "
        "does not touch it any more while Weir has it: then operations need not wait for it, nor block.\n\n"
        "`stream`: where a copy on the same device is made; where nothing is copied it changes nothing. What the "
        "package "
        "of `x` raises is the cause of an ExchangeError.\n\n"
        ">>> import numpy as np\n>>> x = weir.asarray(np.arange(3.0))\n>>> (x + 1).tolist()\n[1.0, 2.0, 3.0]\n");
}

}  // namespace weir::python
