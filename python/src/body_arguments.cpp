#include "body_arguments.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "arithmetic.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/error.hpp"
#include "weir/token.hpp"

namespace weir::python {

namespace {

/// What the compiler found out of how a body uses one of its arrays; weir/_numba_uses.py has the same numbers.
enum found_use : unsigned {
    reads = 1,    ///< it reads elements
    writes = 2,   ///< it writes elements
    unclear = 4,  ///< it may do anything
    covers = 8,   ///< each index writes the element of its own place
    whole = 16,   ///< it writes every element: a C function declares that
};

std::string start_of(const body_signature& what) { return std::string("the kernel ") + what.label + ": "; }

}  // namespace

body_arguments::body_arguments(const body_signature& of, nb::handle given) : of_(of), count_(nb::len(given)) {
    if (count_ != of.names.size()) {
        std::string names;
        for (const std::string& one : of.names) {
            names += (names.empty() ? "" : ", ") + one;
        }
        throw argument_error(start_of(of) + "it takes " + std::to_string(of.names.size()) +
                             (of.names.size() == 1 ? " argument" : " arguments") + " behind the index (" + names +
                             "), and got " + std::to_string(count_) + ": pass an array or a number for each");
    }
    all_.reserve(count_);
    for (std::size_t k = 0; k < count_; ++k) {
        add(nb::handle(PyTuple_GET_ITEM(given.ptr(), static_cast<Py_ssize_t>(k))));
    }
}

std::optional<device> body_arguments::place() const {
    for (const argument& one : all_) {
        if (one.of_array != nullptr) {
            return one.of_array->device();
        }
    }
    return std::nullopt;
}

void body_arguments::add_to_key(std::string& text) const {
    for (const argument& one : all_) {
        const std::uint32_t type = one.type.key();
        text.push_back(one.of_array != nullptr ? one.layout : 'n');
        text.push_back(static_cast<char>(one.of_array != nullptr ? one.of_array->dimensions() : 0));
        text.append(reinterpret_cast<const char*>(&type), sizeof type);
    }
}

nb::object body_arguments::description() const {
    nb::list all;
    for (const argument& one : all_) {
        if (one.of_array != nullptr) {
            all.append(nb::make_tuple(name_of(one.type), one.of_array->dimensions(), std::string(1, one.layout)));
        } else {
            all.append(nb::make_tuple(name_of(one.type), nb::none(), nb::none()));
        }
    }
    return nb::tuple(all);
}

void body_arguments::add_words(std::vector<std::uint64_t>& words) const {
    for (const argument& one : all_) {
        if (one.of_array == nullptr) {
            words.insert(words.end(), one.value.begin(), one.value.begin() + (size_of(one.type) > 8 ? 2 : 1));
            continue;
        }
        const array& x = *one.of_array;
        words.push_back(reinterpret_cast<std::uintptr_t>(x.device_data()));
        for (const std::int64_t extent : x.shape().extents()) {
            words.push_back(static_cast<std::uint64_t>(extent));
        }
        for (const std::int64_t stride : x.strides()) {
            words.push_back(static_cast<std::uint64_t>(stride));
        }
    }
}

std::vector<std::size_t> body_arguments::places() const {
    std::vector<std::size_t> all;
    std::size_t next = header_words;
    for (const argument& one : all_) {
        all.push_back(next);
        next += one.of_array != nullptr ? 1 + 2 * one.of_array->dimensions() : size_of(one.type) > 8 ? 2 : 1;
    }
    return all;
}

std::vector<runtime::access_request> body_arguments::accesses(std::span<const unsigned> uses,
                                                              const index_space& space) const {
    std::vector<runtime::access_request> found;
    for (std::size_t k = 0; k < count_; ++k) {
        if (const array* const x = all_[k].of_array; x != nullptr) {
            found.push_back(access_of(*x, use_of(k, uses[k], space)));
        }
    }
    // What overlaps another operand may be read there: results of a failed operation do not become right by this one.
    for (runtime::access_request& one : found) {
        const auto same = [&](const auto& other) { return other.target == one.target; };
        one.overwrites = one.overwrites && std::count_if(found.begin(), found.end(), same) == 1;
    }
    return found;
}

std::string body_arguments::start(std::size_t position) const {
    return start_of(of_) + "the argument " + of_.names[position] + " is ";
}

void body_arguments::add(nb::handle given) {
    PyObject* const object = given.ptr();
    if (PyFloat_CheckExact(object) != 0) {
        add_number(dtype::float64, PyFloat_AS_DOUBLE(object));
    } else if (PyBool_Check(object) != 0) {
        add_number(dtype::bool_, object == Py_True);
    } else if (PyLong_Check(object) != 0) {
        const scalar number = *number_from(given, true);
        if (of_.declared.empty() && !std::holds_alternative<std::int64_t>(number.value())) {
            throw argument_error(start(all_.size()) + nb::repr(given).c_str() +
                                 ", which is out of the range of int64: pass numpy.uint64(x), or a float");
        }
        add_number(dtype::int64, number);
    } else if (array* const x = object_of<array>(given)) {
        add_array(*x, std::nullopt);
    } else if (nb::isinstance<token>(given)) {
        refuse_token(given);
    } else if (const declared_use* const wrapped = object_of<declared_use>(given)) {
        if (nb::isinstance<token>(wrapped->of)) {
            refuse_token(given);
        }
        add_array(*object_of<array>(wrapped->of), wrapped->use);
    } else if (PyFloat_Check(object) != 0) {  // numpy.float64 is one
        add_number(dtype::float64, PyFloat_AsDouble(object));
    } else if (PyComplex_Check(object) != 0) {
        add_number(dtype::complex128, {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)});
    } else if (numpy::is_scalar(given)) {
        const dtype type = numpy::from_dtype(given.attr("dtype"));
        if (of_.declared.empty()) {
            expect_known(type);
        }
        add_number(type, numpy::number(given));
    } else if (nb::object shared = shared_array(given, here(), false); shared.is_valid()) {
        imported_.push_back(std::move(shared));
        add_array(*object_of<array>(imported_.back()), std::nullopt);
    } else {
        throw argument_type_error(start(all_.size()) + nb::repr(given).c_str() +
                                  ": pass a weir.Array, an array of another package, or a number; weir.array(x) "
                                  "makes an array of a list");
    }
}

void body_arguments::refuse_token(nb::handle given) const {
    throw argument_type_error(start(all_.size()) + nb::repr(given).c_str() +
                              ", a token, which has no elements for a body: pass an array or a number there, and "
                              "order the launch by an event of what it comes after: f[weir.Range(n), stream, event]"
                              "(...)");
}

void body_arguments::add_number(dtype type, const scalar& number) {
    argument one;
    one.type = type;
    auto* const to = reinterpret_cast<std::byte*>(one.value.data());
    if (of_.declared.empty()) {
        number.store(type, to);
    } else {
        one.type = declared_type(number);
        store_declared(number, one.type, to);
    }
    all_.push_back(one);
}

dtype body_arguments::declared_type(const scalar& number) const {
    const std::optional<dtype>& type = of_.declared[all_.size()];
    if (!type) {
        throw argument_type_error(start(all_.size()) + number.to_string() +
                                  ", and the signature declares an array: pass a weir.Array");
    }
    return *type;
}

void body_arguments::store_declared(const scalar& number, dtype type, std::byte* to) const {
    const std::string name(name_of(type));
    switch (weir::detail::store_argument(type, number, to)) {
        case weir::detail::fit::fits:
            break;
        case weir::detail::fit::other_kind:
            throw argument_type_error(start(all_.size()) + number.to_string() + ", and the signature declares " + name +
                                      ": pass a number of its kind");
        case weir::detail::fit::out_of_range:
            throw argument_error(start(all_.size()) + number.to_string() + ", which is out of range of the " + name +
                                 " that the signature declares: pass a number in its range, or declare a wider type");
    }
}

void body_arguments::add_array(array& x, std::optional<operand_use> declared) {
    if (of_.declared.empty()) {
        expect_known(x.dtype());
    }
    argument one;
    one.of_array = &x;
    one.declared = declared;
    one.layout = x.is_contiguous() ? 'C' : x.dimensions() > 1 && x.t().is_contiguous() ? 'F' : 'A';
    one.type = x.dtype();
    all_.push_back(one);
}

void body_arguments::expect_known(dtype type) const {
    for (const dtype one :
         {dtype::bool_, dtype::int8, dtype::int16, dtype::int32, dtype::int64, dtype::uint8, dtype::uint16,
          dtype::uint32, dtype::uint64, dtype::float32, dtype::float64, dtype::complex64, dtype::complex128}) {
        if (type == one) {
            return;
        }
    }
    const std::string name(name_of(type));
    throw argument_type_error(start(all_.size()) + "of " + name +
                              ", which Numba cannot compute with: pass x.astype(\"float32\"), or write the kernel "
                              "with weir.elementwise, which takes float16 and bfloat16");
}

operand_use body_arguments::use_of(std::size_t k, unsigned found, const index_space& space) const {
    const argument& one = all_[k];
    if (!one.declared) {
        if ((found & (writes | unclear)) == 0) {
            return operand_use::in;
        }
        const auto& extents = one.of_array->shape().extents();
        if ((found & whole) != 0) {
            return operand_use::out;
        }
        const bool is_whole = (found & covers) != 0 && (found & (reads | unclear)) == 0 &&
                              std::equal(extents.begin(), extents.end(), space.extents.begin(),
                                         space.extents.begin() + static_cast<std::ptrdiff_t>(space.dimensions));
        return is_whole ? operand_use::out : operand_use::inout;
    }
    if (*one.declared == operand_use::in && (found & writes) != 0) {
        throw argument_error(start(k) + "declared weir.In, and the body writes it: pass weir.InOut(" + of_.names[k] +
                             "), or the array alone");
    }
    if (*one.declared == operand_use::out && (found & reads) != 0) {
        throw argument_error(start(k) + "declared weir.Out, and the body reads it: pass weir.InOut(" + of_.names[k] +
                             "), or the array alone");
    }
    return *one.declared;
}

}  // namespace weir::python
