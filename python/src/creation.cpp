// What makes arrays.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "arguments.hpp"
#include "arithmetic.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "labelling.hpp"
#include "notes.hpp"
#include "numpy.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/buffer.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/memory_resource.hpp"
#include "weir/random.hpp"

namespace weir::python {

namespace {

memory::resource_ptr memory_from(nb::handle argument) {
    if (argument.is_none()) {
        return nullptr;
    }
    const std::optional<std::string_view> name = text_in(argument);
    if (name == "pinned") {
        return memory::pinned();
    }
    if (name == "managed") {
        return memory::managed();
    }
    const std::string message = "memory is " + repr_of(argument) +
                                ": pass \"pinned\" (of the CPU, for fast copies), \"managed\" (of a CUDA device, which "
                                "the host reaches) or None";
    if (PyUnicode_Check(argument.ptr()) != 0) {
        throw argument_error(message);
    }
    throw argument_type_error(message);
}

/// Where an array is made: on a stream, which decides the device, and from which memory resource.
struct placement {
    stream on;
    memory::resource_ptr memory;
    source_location where = here();

    placement(nb::handle device_name, nb::handle stream_given, nb::handle memory_name = nb::none())
        : on(stream_from(stream_given, device_name.is_none() ? std::nullopt : std::optional(device_from(device_name)))),
          memory(memory_from(memory_name)) {}

    /// The result of `make`, which runs without the GIL.
    template <class F>
    [[nodiscard]] array operator()(F&& make) const {
        return released([&] {
            std::optional<memory::use> scope;
            if (memory) {
                scope.emplace(memory);
            }
            return make();
        });
    }
};

nb::object make_empty(nb::handle shape, nb::handle type, nb::handle device, nb::handle stream, nb::handle memory) {
    const placement place(device, stream, memory);
    const weir::shape extents = shape_from(shape);
    const dtype element = dtype_from(type);
    if (!place.memory && !notes::wanted()) {
        drain();
        scopes::follow();  // it may change where memory comes from
        // Releasing the GIL and taking it back would take longer than this.
        const std::size_t bytes = bytes_for(element, static_cast<std::size_t>(extents.elements()));
        if (buffer found = buffer::at_hand(bytes, place.on, place.where); found.bytes() != 0) {
            return new_object<array>(std::move(found), element, extents);
        }
    }
    return new_object<array>(place([&] { return empty(extents, element, place.on, place.where); }));
}

array make_zeros(nb::handle shape, nb::handle type, nb::handle device, nb::handle stream, nb::handle memory) {
    const placement place(device, stream, memory);
    return place([&, extents = shape_from(shape), element = dtype_from(type)] {
        return zeros(extents, element, place.on, place.where);
    });
}

array make_ones(nb::handle shape, nb::handle type, nb::handle device, nb::handle stream, nb::handle memory) {
    const placement place(device, stream, memory);
    return place([&, extents = shape_from(shape), element = dtype_from(type)] {
        return ones(extents, element, place.on, place.where);
    });
}

array make_full(nb::handle shape, nb::handle value, nb::handle type, nb::handle device, nb::handle stream,
                nb::handle memory) {
    const placement place(device, stream, memory);
    const weir::shape extents = shape_from(shape);
    std::optional<dtype> element = type.is_none() ? std::nullopt : std::optional(dtype_from(type));
    std::optional<scalar> number = number_from(value, element && is_inexact(*element));
    if (!number && numpy::is_scalar(value)) {
        number = numpy::number(value);
        element = element ? element : numpy::from_dtype(value.attr("dtype"));
    }
    if (number) {
        return place([&] {
            return full(extents, *number, element.value_or(common_type({&*number, 1})), place.on, place.where);
        });
    }
    const array source = made_from(value, element, place.on, place.where);
    return place([&] {
        array made = empty(extents, source.dtype(), place.on, place.where);
        copy(on(place.on, place.where), made, source);
        return made;
    });
}

scalar expect_number(nb::handle value, const char* name) {
    if (numpy::is_scalar(value)) {
        return numpy::number(value);
    }
    if (const std::optional<scalar> number = number_from(value)) {
        return *number;
    }
    throw argument_type_error(std::string("arange(): ") + name + " is " + repr_of(value) + ": pass a number");
}

array make_arange(nb::handle start, nb::handle stop, nb::handle step, nb::handle type, nb::handle device,
                  nb::handle stream, nb::handle memory) {
    const placement place(device, stream, memory);
    const std::optional<dtype> element = type.is_none() ? std::nullopt : std::optional(dtype_from(type));
    const scalar first = stop.is_none() ? scalar(0) : expect_number(start, "start");
    const scalar last = stop.is_none() ? expect_number(start, "stop") : expect_number(stop, "stop");
    const scalar by = step.is_none() ? scalar(1) : expect_number(step, "step");
    return place([&] { return arange(first, last, by, element, place.on, place.where); });
}

array make_random(nb::handle shape, nb::handle seed, nb::handle type, nb::handle device, nb::handle stream,
                  nb::handle memory) {
    const placement place(device, stream, memory);
    std::optional<std::uint64_t> key;
    if (!seed.is_none()) {
        key = unsigned_from(seed, "seed");
    }
    return place([&, extents = shape_from(shape), element = dtype_from(type)] {
        return random(extents, key, element, place.on, place.where);
    });
}

array make_array(nb::handle source, nb::handle type, nb::handle device, nb::handle stream, nb::handle memory) {
    if (source.is_none()) {
        throw argument_type_error("array() got None: pass an array, a number or nested lists of numbers");
    }
    const std::optional<dtype> element = type.is_none() ? std::nullopt : std::optional(dtype_from(type));
    nb::object theirs;
    if (PyList_Check(source.ptr()) == 0 && PyTuple_Check(source.ptr()) == 0 && !nb::isinstance<array>(source) &&
        !numpy::is_array(source)) {
        theirs = array_of_package(source, here());
    }
    const array* const shared = object_of<array>(theirs.is_valid() ? nb::handle(theirs) : source);
    std::optional<placement> place;
    if (device.is_none() && stream.is_none() && shared != nullptr) {
        // On the source's device, as x.copy() does.
        place.emplace(nb::cast(shared->device()), stream, memory);
    } else {
        place.emplace(device, stream, memory);
    }
    const auto made = [&] {
        return theirs.is_valid() ? copied_from_package(*shared, element, place->on, place->where)
                                 : made_from(source, element, place->on, place->where);
    };
    if (!place->memory) {
        return made();
    }
    // Made in the memory asked for, from a copy that is not.
    const array first = made();
    return (*place)([&] { return copy(on(place->on, place->where), first); });
}

array choose(nb::handle condition, nb::handle x, nb::handle y) {
    const source_location where = here();
    const array* first = nullptr;
    for (const nb::handle one : {condition, x, y}) {
        if (first == nullptr && nb::isinstance<array>(one)) {
            first = &nb::cast<const array&>(one);
        }
    }
    const stream current = first != nullptr ? stream_of(*first) : innermost_stream();
    std::optional<array> made;
    if (!nb::isinstance<array>(condition)) {
        if (condition.is_none()) {
            throw argument_type_error("where() got None: pass arrays or numbers");
        }
        made = made_from(condition, std::nullopt, current, where);
    }
    const array& choice = made ? *made : nb::cast<const array&>(condition);
    const array& beside = nb::isinstance<array>(x)   ? nb::cast<const array&>(x)
                          : nb::isinstance<array>(y) ? nb::cast<const array&>(y)
                                                     : choice;
    const array_operand left = operand_from(x, beside, current, where);
    const array_operand right = operand_from(y, beside, current, where);
    if (!left || !right) {
        throw argument_type_error("where() got " + repr_of(left ? y : x) + ": pass arrays or numbers");
    }
    return released([&] { return select(on(current, where), choice, left.at(where), right.at(where)); });
}

constexpr const char* where_it_goes =
    "\n\n`device`: a Device or its name; without, that of the innermost `with stream:`, else the CPU. `stream`: the "
    "stream on which it is made, which decides the device; without, the current one. `memory`: \"pinned\" (of the CPU, "
    "for fast copies from and to CUDA devices), \"managed\" (of a CUDA device, which the host reaches, too) or None. "
    "Does "
    "not block.";

constexpr const char* what_it_is_called = " `label`: the operation's name in errors, reports and timelines.";

/// The last parameters of all functions here; the label is for those that enqueue.
constexpr const char* where_parameters =
    "device: Device | str | None = None, stream: Any = None, memory: str | None = None";
constexpr const char* label_parameter = ", label: str | None = None";

/// The function with a further parameter, the label.
template <class... Arguments>
[[nodiscard]] auto with_label(array (*function)(Arguments...)) {
    return [function](Arguments... given, nb::handle label) {
        const labelled named(label);
        return function(given...);
    };
}

template <class F, class... Label>
void bind_of_shape(nb::module_& m, const char* name, F function, const char* what, const char* example,
                   const Label&... label) {
    const std::string signature = "def " + std::string(name) +
                                  "(shape: int | tuple[int, ...], dtype: Any = \"float64\", *, " + where_parameters +
                                  (sizeof...(Label) != 0 ? label_parameter : "") + ") -> Array";
    const std::string doc =
        std::string(what) + where_it_goes + (sizeof...(Label) != 0 ? what_it_is_called : "") + example;
    m.def(name, function, nb::arg("shape").none(), nb::arg("dtype").none() = "float64", nb::kw_only(),
          nb::arg("device") = nb::none(), nb::arg("stream") = nb::none(), nb::arg("memory") = nb::none(), label...,
          nb::sig(signature.c_str()), doc.c_str());
}

}  // namespace

void bind_creation(nb::module_& m) {
    bind_of_shape(m, "empty", make_empty, "An array of uninitialised elements.",
                  "\n\n>>> weir.empty((3, 4), \"float32\")\n<weir.Array float32 (3, 4) on cpu>\n");
    const nb::arg_v label = nb::arg("label").none() = nb::none();
    bind_of_shape(m, "zeros", with_label(make_zeros), "An array of zeros.", "", label);
    bind_of_shape(m, "ones", with_label(make_ones), "An array of ones.", "", label);
    const auto signature = [](const char* parameters) {
        return std::string(parameters) + where_parameters + label_parameter + ") -> Array";
    };
    const auto doc = [](const char* what) { return std::string(what) + where_it_goes + what_it_is_called; };
    m.def("full", with_label(make_full), nb::arg("shape").none(), nb::arg("value").none(),
          nb::arg("dtype").none() = nb::none(), nb::kw_only(), nb::arg("device") = nb::none(),
          nb::arg("stream") = nb::none(), nb::arg("memory") = nb::none(), label,
          nb::sig(signature("def full(shape: int | tuple[int, ...], value: Any, dtype: Any = None, *, ").c_str()),
          doc("An array whose elements all are `value`: a number, or what broadcasts to the shape. Without `dtype` of "
              "the value's type, as NumPy has it.")
              .c_str());
    m.def(
        "arange", with_label(make_arange), nb::arg("start").none(), nb::arg("stop") = nb::none(),
        nb::arg("step").none() = 1, nb::arg("dtype").none() = nb::none(), nb::kw_only(), nb::arg("device") = nb::none(),
        nb::arg("stream") = nb::none(), nb::arg("memory") = nb::none(), label,
        nb::sig(signature("def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, ").c_str()),
        doc("The numbers start, start + step, ... before stop; arange(stop) begins at 0. Without `dtype` int64 if all "
            "are integers, else float64.")
            .c_str());
    m.def("random", with_label(make_random), nb::arg("shape").none(), nb::kw_only(), nb::arg("seed") = nb::none(),
          nb::arg("dtype").none() = "float64", nb::arg("device") = nb::none(), nb::arg("stream") = nb::none(),
          nb::arg("memory") = nb::none(), label,
          nb::sig(signature("def random(shape: int | tuple[int, ...], *, seed: int | None = None, dtype: Any = "
                            "\"float64\", ")
                      .c_str()),
          doc("Numbers that are spread evenly over [0, 1), of float32 or float64. The same seed gives the same numbers "
              "on every device; without a seed they differ from call to call.")
              .c_str());
    m.def(
        "array", with_label(make_array), nb::arg("x").none(), nb::arg("dtype").none() = nb::none(), nb::kw_only(),
        nb::arg("device") = nb::none(), nb::arg("stream") = nb::none(), nb::arg("memory") = nb::none(), label,
        nb::sig(signature("def array(x: Any, dtype: Any = None, *, ").c_str()),
        doc("A new array with the elements of `x`, as they are at the call: an array of Weir or of another package, a "
            "number, nested lists of numbers, memory with the buffer protocol, whatever weir.asarray or numpy.asarray "
            "takes. An array stays on its device if none is given.")
            .c_str());
    m.def("where", choose, nb::arg("condition").none(), nb::arg("x").none(), nb::arg("y").none(),
          nb::sig("def where(condition: Any, x: Any, y: Any, /) -> Array"),
          "Elements of `x` where `condition` is not 0, else of `y`: arrays or numbers, broadcast and promoted as for "
          "arithmetic. A new array, on the current stream of the device of the first array; does not block.");
}

}  // namespace weir::python
