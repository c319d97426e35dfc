#include "numpy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attributes.hpp"
#include "buffers.hpp"
#include "dtypes.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/stream.hpp"

namespace weir::python::numpy {

namespace {

/// Objects of NumPy that are needed often, once NumPy is there. Lives for ever.
struct known_names {
    nb::object module;
    nb::object ndarray;
    nb::object generic;
    nb::object dtype;
    struct pair {
        weir::dtype ours;
        PyObject* theirs = nullptr;
        std::uintptr_t beyond_alignment = 0;  ///< the bits that the address of an aligned element has not
    };
    /// Of the types that NumPy has itself.
    std::array<pair, 14> dtypes{};
};

/// Made without a lock, since an import may let other threads run: of two, one is kept.
std::atomic<const known_names*> names{nullptr};
/// By the code of the type; of ml_dtypes only one type has a given code, but for integers.
std::array<std::atomic<PyObject*>, 18> ml_dtypes_by_code{};

const known_names& remember(nb::object module) {
    auto made = std::make_unique<known_names>();
    made->module = module;
    made->ndarray = module.attr("ndarray");
    made->generic = module.attr("generic");
    made->dtype = module.attr("dtype");
    auto next = made->dtypes.begin();
    for (const weir::dtype one : arithmetic_dtypes()) {
        if (one != weir::dtype::bfloat16) {
            const std::string name = name_of(one);
            *next++ = {one, made->dtype(nb::str(name.data(), name.size())).release().ptr(), alignment_of(one) - 1};
        }
    }
    const known_names* expected = nullptr;
    if (names.compare_exchange_strong(expected, made.get())) {
        return *made.release();
    }
    return *expected;
}

/// Null if the program has not imported NumPy yet: then no object can be one of its.
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

nb::object dtype_of_ml_dtypes(weir::dtype type) {
    std::atomic<PyObject*>& entry = ml_dtypes_by_code.at(static_cast<std::size_t>(type.code()));
    if (PyObject* const known = is_integer(type) ? nullptr : entry.load()) {
        return nb::borrow(known);
    }
    const std::string name = name_of(type);
    const nb::object module = find_module("ml_dtypes");
    if (!module.is_valid()) {
        throw missing_library("NumPy has " + name +
                              " from the package ml_dtypes, which is not installed: pip install ml_dtypes" +
                              (has_arithmetic(type) ? ", or convert with astype(\"float32\")" : ""));
    }
    if (PyObject_HasAttrString(module.ptr(), name.c_str()) == 0) {
        throw argument_type_error("the installed ml_dtypes has no " + name + ": pip install --upgrade ml_dtypes");
    }
    nb::object made = import(name.c_str()).attr("dtype")(module.attr(name.c_str()));
    PyObject* expected = nullptr;
    if (!is_integer(type) && entry.compare_exchange_strong(expected, made.ptr())) {
        static_cast<void>(nb::object(made).release());
    }
    return made;
}

/// The integers that elements of a type of ml_dtypes are viewed as; elements that are not whole bytes have a byte each there.
const char* integers_for(weir::dtype type) noexcept { return type == weir::dtype::bfloat16 ? "uint16" : "uint8"; }

/// The memory of an array. The protocol has no words for types of ml_dtypes: they go as integers.
lent_buffer memory_of(nb::handle object, weir::dtype type) {
    return lent_buffer(is_of_ml_dtypes(type) ? nb::object(object.attr("view")(integers_for(type)))
                                             : nb::borrow(object));
}

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
    for (const known_names::pair& one : names.load()->dtypes) {
        if (one.ours == type) {
            return nb::borrow(one.theirs);
        }
    }
    if (!is_of_ml_dtypes(type)) {
        throw argument_type_error("neither NumPy nor ml_dtypes has an element type like " + name_of(type) +
                                  ": take the bytes with bytes(x)");
    }
    return dtype_of_ml_dtypes(type);
}

bool is_of_ml_dtypes(weir::dtype type) noexcept {
    const auto all = all_dtypes();
    const bool in_numpy = has_arithmetic(type) && type != weir::dtype::bfloat16;
    return !in_numpy && std::find(all.begin(), all.end(), type) != all.end();
}

void unpack(weir::dtype type, const std::byte* from, std::size_t count, std::byte* to) noexcept {
    const auto bits = static_cast<unsigned>(bits_of(type));
    const unsigned mask = (1U << bits) - 1;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = i * bits;
        const unsigned shift = first % 8;
        unsigned value = std::to_integer<unsigned>(from[first / 8]) >> shift;
        if (shift + bits > 8) {
            value |= std::to_integer<unsigned>(from[first / 8 + 1]) << (8 - shift);
        }
        to[i] = static_cast<std::byte>(value & mask);
    }
}

std::vector<std::byte> packed_bits(weir::dtype type, std::span<const std::byte> from) {
    const auto bits = static_cast<unsigned>(bits_of(type));
    const unsigned mask = (1U << bits) - 1;
    std::vector<std::byte> made(bytes_for(type, from.size()));
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::size_t first = i * bits;
        const unsigned shifted = (std::to_integer<unsigned>(from[i]) & mask) << (first % 8);
        made[first / 8] |= static_cast<std::byte>(shifted & 0xffU);
        if (shifted > 0xffU) {
            made[first / 8 + 1] |= static_cast<std::byte>(shifted >> 8U);
        }
    }
    return made;
}

weir::dtype from_dtype(nb::handle type) {
    const known_names& known = *names.load();
    const nb::object exact = is(type, known.dtype) ? nb::borrow(type) : known.dtype(type);
    for (const known_names::pair& one : known.dtypes) {
        if (one.theirs == exact.ptr()) {
            return one.ours;
        }
    }
    const auto name = nb::cast<std::string>(exact.attr("name"));
    if (!nb::cast<bool>(exact.attr("isnative"))) {
        throw argument_type_error("elements of " + repr_of(exact) +
                                  " have another byte order than this machine: convert them in NumPy with "
                                  "x.astype(x.dtype.newbyteorder(\"=\"))");
    }
    return dtype_from_name(name);
}

array copied(nb::handle object, const stream& on_stream, const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const lent_buffer source = memory_of(packed(object), type);
    const shape extents = source.extents();
    return released([&] {
        array made = empty(extents, type, on_stream, where);
        if (has_whole_bytes(type)) {
            copy_from_host(on(on_stream, where), made, source.bytes());
        } else {
            copy_from_host(on(on_stream, where), made, packed_bits(type, source.bytes()));
        }
        return made;
    });
}

namespace {

/// The elements of an array of NumPy's as they are now, in C order, as Weir stores them. Needs the GIL to be made and destroyed.
class host_elements {
public:
    explicit host_elements(nb::handle object)
        : type_(from_dtype(object.attr("dtype"))),
          source_(memory_of(packed(object), type_)),
          extents_(source_.extents()) {
        if (!has_whole_bytes(type_)) {
            packed_ = packed_bits(type_, source_.bytes());
        }
    }
    [[nodiscard]] weir::dtype type() const noexcept { return type_; }
    [[nodiscard]] const shape& extents() const noexcept { return extents_; }
    /// Waits until no operation uses the memory of `to`, an array of the CPU in C order with the same type and shape, and writes it.
    /// Called without the GIL.
    void write(const array& to, const source_location& where) const {
        if (to.size() == 0) {
            return;
        }
        const std::span<const std::byte> bytes = has_whole_bytes(type_) ? source_.bytes() : packed_;
        const host_access changes(detail::key, to.buffer(), to.used(detail::key), order::access_mode::write, where);
        std::copy(bytes.begin(), bytes.end(), to.data());
    }

private:
    weir::dtype type_;
    lent_buffer source_;
    shape extents_;
    std::vector<std::byte> packed_;  ///< only of elements that are not whole bytes
};

/// The stream whose memory copies of operands are. It gets no work, so the pool does not give it memory that others still use as long
/// as there is other memory: the calling thread would wait for that use. Lives for ever.
const stream& stream_of_copies() {
    // Without it, the child of a fork could wait for a thread that makes the stream, and that the child does not have.
    const weir::detail::fork_section whole;
    static const auto* const one = new stream(cpu(), {.name = "copies of NumPy's arrays"});
    return *one;
}

}  // namespace

array taken(nb::handle object, const source_location& where) {
    const host_elements elements(object);
    return released([&] {
        array made = weir::detail::internal(empty(elements.extents(), elements.type(), stream_of_copies(), where));
        elements.write(made, where);
        return made;
    });
}

void take_again(nb::handle object, const array& into, const source_location& where) {
    const host_elements elements(object);
    if (elements.extents() != into.shape() || elements.type() != into.dtype()) {
        throw argument_error("the operand has become " + name_of(elements.type()) + " " +
                             elements.extents().to_string() + ", and was " + name_of(into.dtype()) + " " +
                             into.shape().to_string() + ": call reset_operand() with one like that");
    }
    waiting([&] { elements.write(into, where); });
}

scalar number(nb::handle object) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const lent_buffer source = memory_of(packed(object), type);
    return scalar::load(type, source.bytes().data());
}

bool is_plain(nb::handle type) noexcept {
    const known_names* const known = loaded();
    if (known == nullptr) {
        return false;
    }
    auto* const itself = reinterpret_cast<PyTypeObject*>(type.ptr());
    auto* const base = reinterpret_cast<PyTypeObject*>(known->ndarray.ptr());
    if (PyType_IsSubtype(itself, base) == 0) {
        return false;
    }
    const PyBufferProcs* const own = itself->tp_as_buffer;
    if (own == nullptr || own->bf_getbuffer != base->tp_as_buffer->bf_getbuffer || own->bf_releasebuffer != nullptr) {
        return false;
    }
    static const attribute_name deciding[] = {attribute_name("__dlpack__"), attribute_name("__dlpack_device__"),
                                              attribute_name("dtype")};
    return std::all_of(std::begin(deciding), std::end(deciding), [&](const attribute_name& name) {
        return attribute_of(type, name).is(attribute_of(known->ndarray, name));
    });
}

std::optional<array> shared(nb::handle object, std::shared_ptr<package> from, const source_location& where) {
    static const attribute_name type_name("dtype");
    const nb::object type = attribute_of(object, type_name);
    const auto& types = names.load()->dtypes;
    const auto* const known = std::find_if(types.begin(), types.end(),
                                           [&](const known_names::pair& one) { return one.theirs == type.ptr(); });
    if (known == types.end()) {
        return std::nullopt;
    }
    Py_buffer memory;
    if (PyObject_GetBuffer(object.ptr(), &memory, PyBUF_STRIDES) != 0) {
        PyErr_Clear();
        return std::nullopt;
    }
    nb::object owner = nb::steal(memory.obj);  // releasing a buffer of such a class does no more
    if (memory.readonly != 0 || (reinterpret_cast<std::uintptr_t>(memory.buf) & known->beyond_alignment) != 0) {
        return std::nullopt;
    }
    return shared_memory(memory, known->ours, std::move(owner), std::move(from), where);
}

bool gets_elements(nb::handle object) {
    if (!nb::hasattr(object, "__array__") || !find().is_valid()) {
        return false;
    }
    try {
        const nb::object made(find().attr("asarray")(object));
        return nb::cast<std::string_view>(made.attr("dtype").attr("kind")) != "O";
    } catch (const nb::python_error&) {
        return false;
    }
}

sharing sharing_of(nb::handle object) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    if (!has_whole_bytes(type)) {
        return sharing::none;  // Weir packs them, NumPy has a byte for each
    }
    const lent_buffer lent = memory_of(object, type);
    const Py_buffer& memory = lent.memory();
    bool fits = reinterpret_cast<std::uintptr_t>(memory.buf) % alignment_of(type) == 0;
    for (int axis = 0; axis < memory.ndim; ++axis) {
        fits = fits && (memory.shape[axis] < 2 || memory.strides[axis] % memory.itemsize == 0);
    }
    if (!fits) {
        return sharing::none;
    }
    return is_of_ml_dtypes(type) ? sharing::by_integers : sharing::by_dlpack;
}

array shared_as_integers(nb::handle object, bool exclusive, std::shared_ptr<package> from,
                         const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    const lent_buffer lent = memory_of(object, type);
    const bool let_go = exclusive && lent.memory().readonly == 0;
    std::optional<array> made =
        shared_memory(lent.memory(), type, lent.object(), let_go ? nullptr : std::move(from), where);
    if (!made) {
        throw exchange_error(
            "an array of NumPy with " + std::to_string(lent.memory().ndim) +
            " dimensions, or with strides of its own along one that has a single element: pass a copy");
    }
    return *std::move(made);
}

array wrapped(nb::handle object, const source_location& where) {
    const weir::dtype type = from_dtype(object.attr("dtype"));
    if (!has_whole_bytes(type)) {
        throw argument_type_error("NumPy has a byte for each element of " + name_of(type) +
                                  ", Weir packs them: copy into an array of Weir, and take its numpy()");
    }
    const lent_buffer target = memory_of(object, type);
    const Py_buffer& memory = target.memory();
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
