#include "numpy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dtypes.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::python::numpy {

namespace {

/// What is asked for often, once NumPy is there. Lives for ever.
struct known_names {
    nb::object module;
    nb::object ndarray;
    nb::object generic;
    nb::object dtype;
    /// By weir::dtype; null for bfloat16, which ml_dtypes has.
    std::array<PyObject*, 15> dtypes{};
};

/// Made without a lock, since an import may let other threads run: of two, one is kept.
std::atomic<const known_names*> names{nullptr};
std::atomic<PyObject*> bfloat16_dtype{nullptr};

const known_names& remember(nb::object module) {
    auto made = std::make_unique<known_names>();
    made->module = module;
    made->ndarray = module.attr("ndarray");
    made->generic = module.attr("generic");
    made->dtype = module.attr("dtype");
    for (const weir::dtype one : all_dtypes()) {
        if (one != weir::dtype::bfloat16) {
            made->dtypes[static_cast<std::size_t>(one)] =
                made->dtype(nb::str(name_of(one).data(), name_of(one).size())).release().ptr();
        }
    }
    const known_names* expected = nullptr;
    if (names.compare_exchange_strong(expected, made.get())) {
        return *made.release();
    }
    return *expected;
}

/// Null if nobody has imported it yet, so that no object can be one of its.
const known_names* loaded() noexcept {
    if (const known_names* const known = names.load()) {
        return known;
    }
    PyObject* const modules = PyImport_GetModuleDict();
    PyObject* const module = PyDict_GetItemString(modules, "numpy");
    if (module == nullptr || module == Py_None || PyObject_HasAttrString(module, "dtype") == 0) {
        return nullptr;
    }
    try {
        return &remember(nb::borrow(module));
    } catch (...) {  // it is only half imported
        PyErr_Clear();
        return nullptr;
    }
}

bool is(nb::handle object, const nb::object& type) noexcept {
    return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr())) != 0;
}

nb::object find_module(const char* name) {
    nb::object module = nb::steal(PyImport_ImportModule(name));
    if (!module.is_valid()) {
        if (PyErr_ExceptionMatches(PyExc_ImportError) == 0) {
            nb::raise_python_error();
        }
        PyErr_Clear();
    }
    return module;
}

nb::object bfloat16_of_ml_dtypes() {
    if (PyObject* const known = bfloat16_dtype.load()) {
        return nb::borrow(known);
    }
    const nb::object module = find_module("ml_dtypes");
    if (!module.is_valid()) {
        throw missing_library(
            "NumPy has bfloat16 from the package ml_dtypes, which is not installed: pip install ml_dtypes, or convert "
            "with astype(\"float32\")");
    }
    nb::object made = import("bfloat16").attr("dtype")(module.attr("bfloat16"));
    PyObject* expected = nullptr;
    if (bfloat16_dtype.compare_exchange_strong(expected, made.ptr())) {
        static_cast<void>(nb::object(made).release());
    }
    return made;
}

/// What the buffer protocol says of an array's memory; bfloat16, of which it cannot speak, goes as uint16.
class memory_view {
public:
    memory_view(nb::handle object, weir::dtype type)
        : view_(nb::steal(PyMemoryView_FromObject(
              (type == weir::dtype::bfloat16 ? object.attr("view")("uint16") : nb::borrow(object)).ptr()))) {
        if (!view_.is_valid()) {
            nb::raise_python_error();
        }
    }
    [[nodiscard]] const Py_buffer& buffer() const noexcept { return *PyMemoryView_GET_BUFFER(view_.ptr()); }
    [[nodiscard]] const nb::object& object() const noexcept { return view_; }
    [[nodiscard]] shape extents() const {
        const std::vector<std::int64_t> copy(buffer().shape, buffer().shape + buffer().ndim);
        return shape(copy);
    }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return {static_cast<const std::byte*>(buffer().buf), static_cast<std::size_t>(buffer().len)};
    }

private:
    nb::object view_;
};

/// An array of NumPy's in C order with the elements of an array or a scalar of NumPy's.
nb::object packed(nb::handle object) { return import("arrays").attr("asarray")(object, nb::arg("order") = "C"); }

}  // namespace

bool is_array(nb::handle object) noexcept {
    const known_names* const known = loaded();
    return known != nullptr && is(object, known->ndarray);
}

bool is_scalar(nb::handle object) noexcept {
    const known_names* const known = loaded();
    return known != nullptr && is(object, known->generic);
}

bool is_dtype(nb::handle object) noexcept {
    const known_names* const known = loaded();
    if (known == nullptr) {
        return false;
    }
    return is(object, known->dtype) || (PyType_Check(object.ptr()) != 0 &&
                                        PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object.ptr()),
                                                         reinterpret_cast<PyTypeObject*>(known->generic.ptr())) != 0);
}

nb::object find() {
    if (const known_names* const known = names.load()) {
        return known->module;
    }
    nb::object module = find_module("numpy");
    if (module.is_valid()) {
        static_cast<void>(remember(module));
    }
    return module;
}

nb::object import(const char* what_for) {
    nb::object module = find();
    if (!module.is_valid()) {
        throw missing_library(std::string("NumPy is not installed, which is needed for ") + what_for +
                              ": pip install numpy");
    }
    return module;
}

nb::object dtype_of(weir::dtype type) {
    static_cast<void>(import("element types"));
    if (type == weir::dtype::bfloat16) {
        return bfloat16_of_ml_dtypes();
    }
    return nb::borrow(names.load()->dtypes[static_cast<std::size_t>(type)]);
}

weir::dtype from_dtype(nb::handle type) {
    const known_names& known = *names.load();
    const nb::object exact = is(type, known.dtype) ? nb::borrow(type) : known.dtype(type);
    for (std::size_t i = 0; i < known.dtypes.size(); ++i) {
        if (known.dtypes[i] == exact.ptr()) {
            return static_cast<weir::dtype>(i);
        }
    }
    const auto name = nb::cast<std::string>(exact.attr("name"));
    if (!nb::cast<bool>(exact.attr("isnative"))) {
        throw argument_type_error("elements of " + std::string(nb::repr(exact).c_str()) +
                                  " have another byte order than this machine: convert them in NumPy with "
                                  "x.astype(x.dtype.newbyteorder(\"=\"))");
    }
    return dtype_from_name(name);
}

array copied(nb::handle object, const stream& on_stream, const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const memory_view source(packed(object), type);
    const shape extents = source.extents();
    return released([&] {
        array made = empty(extents, type, on_stream, where);
        copy_from_host(on(on_stream, where), made, source.bytes());
        return made;
    });
}

array taken(nb::handle object, const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const memory_view source(packed(object), type);
    const shape extents = source.extents();
    const std::span<const std::byte> bytes = source.bytes();
    return released([&] {
        constexpr std::align_val_t alignment{256};  // as memory of the pool has
        const auto free = [](std::byte* memory) { ::operator delete(memory, alignment); };
        std::unique_ptr<std::byte, decltype(free)> kept(
            static_cast<std::byte*>(::operator new(bytes.size(), alignment)), free);
        std::byte* const first = kept.get();
        std::copy(bytes.begin(), bytes.end(), first);
        return array(buffer::wrap(first, bytes.size(), cpu(), std::move(kept), where), type, extents);
    });
}

scalar number(nb::handle object) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const memory_view source(packed(object), type);
    return scalar::load(type, source.bytes().data());
}

array wrapped(nb::handle object, const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const memory_view target(object, type);
    const Py_buffer& memory = target.buffer();
    if (memory.readonly != 0) {
        throw argument_error("the NumPy array is read-only: pass one that can be written");
    }
    const shape extents = target.extents();
    const std::vector<std::int64_t> strides(memory.strides, memory.strides + memory.ndim);
    std::int64_t below = 0;
    std::int64_t above = memory.itemsize;
    for (int axis = 0; axis < memory.ndim; ++axis) {
        const auto place = static_cast<std::size_t>(axis);
        (strides[place] < 0 ? below : above) += (extents[place] - 1) * strides[place];
    }
    if (extents.elements() == 0) {
        return {buffer(), type, extents};
    }
    auto* const first = static_cast<std::byte*>(memory.buf) + below;
    const auto bytes = static_cast<std::size_t>(above - below);
    reference kept{nb::object(target.object())};
    return released([&] {
        return array(buffer::wrap(first, bytes, cpu(), std::move(kept), where), type, extents, strides,
                     static_cast<std::size_t>(-below));
    });
}

}  // namespace weir::python::numpy
