// The host's views of arrays: the buffer protocol, and NumPy's arrays by way of it (rules O6, X7).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "arrays.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/host_copy.hpp"
#include "weir/error.hpp"
#include "weir/explain.hpp"

namespace weir::python {

namespace {

/// What a Py_buffer points to, until it is released.
struct exported {
    std::vector<Py_ssize_t> shape;
    std::vector<Py_ssize_t> strides;
    std::optional<host_access> access;
};

/// Null for bfloat16 and all types without arithmetic, which the protocol has no format for.
const char* format_of(dtype type) noexcept {
    struct format {
        dtype type;
        const char* text;
    };
    constexpr format formats[] = {{dtype::bool_, "?"},      {dtype::int8, "b"},       {dtype::int16, "h"},
                                  {dtype::int32, "i"},      {dtype::int64, "l"},      {dtype::uint8, "B"},
                                  {dtype::uint16, "H"},     {dtype::uint32, "I"},     {dtype::uint64, "L"},
                                  {dtype::float16, "e"},    {dtype::float32, "f"},    {dtype::float64, "d"},
                                  {dtype::complex64, "Zf"}, {dtype::complex128, "Zd"}};
    for (const format& one : formats) {
        if (one.type == type) {
            return one.text;
        }
    }
    return nullptr;
}

bool is_fortran_order(const array& x) { return x.t().is_contiguous(); }

/// Throws exchange_error if memory of `x` cannot be had as the consumer asks for it.
void expect_exportable(const array& x, int flags) {
    const auto asks = [flags](int what) { return (flags & what) == what; };
    const std::string name = x.to_string();
    if (!x.buffer().host_reachable(detail::key)) {
        throw exchange_error(name + " is memory that the host does not reach: x.numpy() copies it");
    }
    if (!has_whole_bytes(x.dtype())) {
        throw exchange_error(name +
                             ": its elements are not whole bytes, which the buffer protocol has no words for; "
                             "x.numpy() unpacks them, bytes(x) copies them");
    }
    if (asks(PyBUF_FORMAT) && format_of(x.dtype()) == nullptr) {
        throw exchange_error(name + ": the buffer protocol has no " + std::string(name_of(x.dtype())) +
                             "; x.numpy() gives an array with the element type of ml_dtypes");
    }
    if (asks(PyBUF_WRITABLE) && !may_write(x)) {
        throw exchange_error(name + (x.has_own_elements()
                                         ? " is memory that its package shares for reading only: take a copy"
                                         : " cannot be written, since elements share memory: take a copy"));
    }
    const bool needs_c = asks(PyBUF_C_CONTIGUOUS) || !asks(PyBUF_STRIDES);
    const bool needs_fortran = asks(PyBUF_F_CONTIGUOUS) && !x.is_contiguous();
    const bool needs_any = asks(PyBUF_ANY_CONTIGUOUS) && !x.is_contiguous();
    if ((needs_c && !x.is_contiguous()) || ((needs_fortran || needs_any) && !is_fortran_order(x)) ||
        (asks(PyBUF_F_CONTIGUOUS) && !is_fortran_order(x))) {
        throw exchange_error(name + ": its elements do not lie in the order that is asked for: take a copy");
    }
}

int get_buffer(PyObject* self, Py_buffer* to, int flags) noexcept {
    to->obj = nullptr;
    try {
        if (!nb::inst_ready(self)) {
            throw exchange_error("an array that was never made");
        }
        const array& x = *nb::inst_ptr<array>(nb::handle(self));
        expect_exportable(x, flags);
        auto made = std::make_unique<exported>();
        made->shape.assign(x.shape().extents().begin(), x.shape().extents().end());
        made->strides.assign(x.strides().begin(), x.strides().end());
        // A consumer that asks only for bytes, and not for writing them, does not write.
        const bool writes = flags != PyBUF_SIMPLE && may_write(x);
        note_exchange(x.buffer(), {exchange_protocol::buffer, true, false, has_pending(x, writes)});
        waiting([&, where = here()] {
            // A consumer that may write gets a read access, too: elements that a failed operation was to write are not shown (rule K4).
            host_access reads(detail::key, x.buffer(), x.used(detail::key), order::access_mode::read, where);
            if (writes) {
                made->access.emplace(detail::key, x.buffer(), x.used(detail::key), order::access_mode::write, where);
            } else {
                made->access.emplace(std::move(reads));
            }
        });
        const auto asks = [flags](int what) { return (flags & what) == what; };
        to->buf = x.data();
        to->len = static_cast<Py_ssize_t>(x.nbytes());
        to->readonly = writes ? 0 : 1;
        to->itemsize = static_cast<Py_ssize_t>(size_of(x.dtype()));
        to->format = asks(PyBUF_FORMAT) ? const_cast<char*>(format_of(x.dtype())) : nullptr;
        to->ndim = static_cast<int>(x.dimensions());
        to->shape = asks(PyBUF_ND) ? made->shape.data() : nullptr;
        to->strides = asks(PyBUF_STRIDES) ? made->strides.data() : nullptr;
        to->suboffsets = nullptr;
        to->internal = made.release();
        to->obj = Py_NewRef(self);
        return 0;
    } catch (...) {
        raise_handled();
        return -1;
    }
}

void release_buffer(PyObject* /*self*/, Py_buffer* from) noexcept {
    const std::unique_ptr<exported> ends(static_cast<exported*>(from->internal));
}

/// A copy in NumPy's memory.
nb::object copied(const array& x) {
    const nb::object numpy = numpy::import("numpy()");
    const nb::object type = numpy::dtype_of(x.dtype());
    nb::object made(numpy.attr("empty")(nb::cast(x).attr("shape"), type));
    const nb::object memory =
        nb::steal(PyMemoryView_FromObject(nb::object(made.attr("reshape")(-1).attr("view")("uint8")).ptr()));
    if (!memory.is_valid()) {
        nb::raise_python_error();
    }
    auto* const to = static_cast<std::byte*>(PyMemoryView_GET_BUFFER(memory.ptr())->buf);
    note_exchange(x.buffer(), {exchange_protocol::elements, true, true, has_pending(x, false)});
    if (has_whole_bytes(x.dtype())) {
        waiting([&, where = here()] { detail::copy_to_host(x, to, where); });
        return made;
    }
    std::vector<std::byte> bytes(x.nbytes());
    waiting([&, where = here()] { detail::copy_to_host(x, bytes.data(), where); });
    numpy::unpack(x.dtype(), bytes.data(), static_cast<std::size_t>(x.size()), to);
    return made;
}

/// A view, which waits for what conflicts, and which counts as a host access as long as NumPy has it.
nb::object viewed(nb::handle self, const array& x) {
    x.expect_usable(detail::key);
    const nb::object numpy = numpy::import("numpy()");
    nb::object source = nb::borrow(self);
    const bool as_integers = numpy::is_of_ml_dtypes(x.dtype());
    const nb::object type = numpy::dtype_of(x.dtype());
    if (as_integers) {
        source = nb::cast(array(x.buffer(), size_of(x.dtype()) == 2 ? dtype::uint16 : dtype::uint8, x.shape(),
                                x.strides(), static_cast<std::size_t>(x.data() - x.buffer().data())));
    }
    const nb::object memory = nb::steal(PyMemoryView_FromObject(source.ptr()));
    if (!memory.is_valid()) {
        nb::raise_python_error();
    }
    nb::object made(numpy.attr("asarray")(memory));
    return as_integers ? nb::object(made.attr("view")(type)) : made;
}

nb::object to_numpy(nb::handle self, nb::handle copy) {
    const auto& x = nb::cast<const array&>(self);
    const std::optional<bool> wanted = copy_wanted(copy);
    // Elements that are not whole bytes are unpacked for NumPy.
    const bool is_reachable = x.buffer().host_reachable(detail::key) && has_whole_bytes(x.dtype());
    if (wanted == false && !is_reachable) {
        throw copy_error(x.to_string() +
                         " is memory that the host does not reach, so that numpy() has to copy it, and copy=False "
                         "forbids that: leave copy out");
    }
    return wanted.value_or(!is_reachable) ? copied(x) : viewed(self, x);
}

nb::object to_numpy_as(nb::handle self, nb::handle type, nb::handle copy) {
    const auto& x = nb::cast<const array&>(self);
    if (type.is_none() || numpy::from_dtype(numpy::import("arrays").attr("dtype")(type)) == x.dtype()) {
        return to_numpy(self, copy);
    }
    if (copy_wanted(copy) == false) {
        throw copy_error("elements of " + std::string(name_of(x.dtype())) + " become " + repr_of(type) +
                         " only by a copy, and copy=False forbids that: leave copy out");
    }
    return to_numpy(self, nb::none()).attr("astype")(type);
}

}  // namespace

std::optional<bool> copy_wanted(nb::handle copy) {
    if (copy.is_none()) {
        return std::nullopt;
    }
    return flag_from(copy, "copy", "True, False or None");
}

PyType_Slot* buffer_slots() noexcept {
    static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                  {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                  {0, nullptr}};
    return slots;
}

void bind_host_access(nb::class_<array>& cls) {
    cls.def(
           "numpy", to_numpy, nb::kw_only(), nb::arg("copy").none() = nb::none(),
           nb::sig("def numpy(self, *, copy: bool | None = None) -> Any"),
           "The elements as an array of NumPy: a view where the host reaches the memory, else a copy. A view of memory "
           "that can only be read is read-only, too. Blocks until "
           "exactly what conflicts is over (of a copy: what writes the elements); Ctrl-C ends the wait. While a view "
           "lives, calls that enqueue what conflicts with it return when that is over. `copy=True` always copies, "
           "`copy=False` never does: CopyError where it would have to.")
        .def("__array__", to_numpy_as, nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none(),
             nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any"),
             "The same, of another element type if one is given.");
}

}  // namespace weir::python
