// Element-wise kernels and reductions of a program: weir.elementwise and weir.reduction.
#include "weir/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "arithmetic.hpp"
#include "arrays.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "labelling.hpp"
#include "numpy.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "weir/reduction.hpp"
#include "weir/reduction_kernel.hpp"
#include "wording.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

/// An array of another package, with the same memory. Throws as weir.asarray.
nb::object foreign_array(nb::handle given) { return nb::module_::import_("weir._weir").attr("asarray")(given); }

/// The operands of one call, and the objects that keep them alive.
class element_operands {
public:
    element_operands(std::size_t outputs, nb::args inputs, nb::handle out, nb::handle on)
        : count_(outputs), given_(inputs) {
        keep_outputs(out);
        // Arrays first: they say on which device the kernel runs.
        for (const nb::handle one : given_) {
            kept_.push_back(kept_array(one));
        }
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (!kept_[k].is_valid() && !is_known(given_[k])) {
                kept_[k] = foreign_array(given_[k]);
            }
        }
        to_ = stream_from(on, device_of_arrays());
    }

    [[nodiscard]] const stream& to() const noexcept { return *to_; }
    [[nodiscard]] std::vector<std::optional<array>>& outputs() noexcept { return outputs_; }
    [[nodiscard]] bool waits() const noexcept { return waits_; }

    /// The inputs, for the call that takes them. NumPy's arrays are copied as they are now, as operators copy them.
    [[nodiscard]] std::vector<operand> inputs(const source_location& where) {
        values_.reserve(kept_.size());
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (kept_[k].is_valid()) {
                values_.emplace_back(*object_of<array>(kept_[k]));
            } else if (numpy::is_array(given_[k])) {
                values_.emplace_back(numpy::copied(given_[k], *to_, where));
            } else if (numpy::is_scalar(given_[k])) {
                values_.emplace_back(numpy::number(given_[k]));
            } else {
                values_.emplace_back(*number_from(given_[k], true));
            }
        }
        std::vector<operand> all;
        for (const array_operand& one : values_) {
            all.push_back(one.at(where));
        }
        return all;
    }

    /// What the call returns: the outputs that were given, as they were, and new arrays.
    [[nodiscard]] nb::object results() {
        std::vector<nb::object> all;
        for (std::size_t k = 0; k < outputs_.size(); ++k) {
            const bool is_given = k < given_outputs_.size() && !given_outputs_[k].is_none();
            all.push_back(is_given ? given_outputs_[k] : new_object<array>(*std::move(outputs_[k])));
        }
        if (all.size() == 1) {
            return all.front();
        }
        nb::list made;
        for (const nb::object& one : all) {
            made.append(one);
        }
        return nb::tuple(made);
    }

private:
    static nb::object kept_array(nb::handle given) {
        return object_of<array>(given) != nullptr ? nb::borrow(given) : nb::object();
    }
    /// Whether it is a number or an array of NumPy's. Throws argument_type_error for what is no operand.
    static bool is_known(nb::handle given) {
        PyObject* const object = given.ptr();
        expect_undeclared(given);
        if (PyList_Check(object) != 0 || PyTuple_Check(object) != 0) {
            throw argument_type_error(std::string("an operand is a ") + (PyList_Check(object) != 0 ? "list" : "tuple") +
                                      ": make an array of it with weir.array(...)");
        }
        return numpy::is_array(given) || numpy::is_scalar(given) || PyLong_Check(object) != 0 ||
               PyFloat_Check(object) != 0 || PyComplex_Check(object) != 0;
    }

    /// Throws argument_type_error for In(x), Out(x) and InOut(x).
    static void expect_undeclared(nb::handle given) {
        if (nb::isinstance<declared_use>(given)) {
            throw argument_type_error(
                "an operand is " + repr_of(given) +
                ": pass the array itself, since the text of the kernel declares what it reads and "
                "writes");
        }
    }

    void keep_outputs(nb::handle out) {
        outputs_.resize(count_);
        if (out.is_none()) {
            return;
        }
        if (PyTuple_Check(out.ptr()) != 0 || PyList_Check(out.ptr()) != 0) {
            for (const nb::handle one : out) {
                given_outputs_.push_back(nb::borrow(one));
            }
        } else {
            given_outputs_.push_back(nb::borrow(out));
        }
        outputs_.resize(given_outputs_.size());
        for (std::size_t k = 0; k < outputs_.size(); ++k) {
            const nb::object& one = given_outputs_[k];
            if (one.is_none()) {
                continue;
            }
            if (object_of<array>(one) != nullptr) {
                outputs_[k] = *object_of<array>(one);
                continue;
            }
            expect_undeclared(one);
            if (PyLong_Check(one.ptr()) != 0 || PyFloat_Check(one.ptr()) != 0 || numpy::is_scalar(one)) {
                throw argument_type_error("out is " + repr_of(one) +
                                          ": pass an array for each output, or None for a new one");
            }
            // Nothing orders what NumPy does with its array later.
            waits_ = waits_ || numpy::is_array(one);
            outputs_[k] = numpy::is_array(one) ? numpy::wrapped(one, here()) : *object_of<array>(foreign_array(one));
        }
    }

    [[nodiscard]] std::optional<device> device_of_arrays() const {
        for (const nb::object& one : kept_) {
            if (one.is_valid()) {
                return object_of<array>(one)->device();
            }
        }
        for (const std::optional<array>& one : outputs_) {
            if (one) {
                return one->device();
            }
        }
        return std::nullopt;
    }

    std::size_t count_;  ///< of outputs
    nb::args given_;
    std::vector<nb::object> kept_;           ///< for each input its array; nothing for numbers and NumPy's arrays
    std::vector<nb::object> given_outputs_;  ///< as they were given
    std::vector<std::optional<array>> outputs_;
    std::vector<array_operand> values_;
    std::optional<stream> to_;
    bool waits_ = false;
};

/// What an operation comes after, and what it uses besides its operands.
struct besides {
    nb::handle after;
    nb::handle reads;
    nb::handle writes;
};

/// Calls `run(on, inputs, accesses)`, which enqueues the operation.
template <class Run>
completion enqueued(element_operands& operands, const besides& more, const Run& run) {
    const source_location where = here();
    std::vector<runtime::access_request> accesses;
    const std::vector<nb::object> listed = accesses_besides(more.reads, more.writes, accesses, where);
    const std::vector<operand> inputs = operands.inputs(where);
    on place(operands.to(), where);
    for (completion& one : completions_from(more.after)) {
        place.after(std::move(one));
    }
    const completion done = released([&] { return run(place, inputs, accesses); });
    if (operands.waits()) {
        waiting([&] { done.synchronize(where); });
    }
    return done;
}

/// The event of a launch, after it is over if the call waits.
nb::object ended(const completion& done, const element_operands& operands, bool waits) {
    if (waits) {
        waiting([&, where = here()] { done.synchronize(where); });
    }
    return event_of(done, operands.to());
}

completion enqueue(const elementwise_kernel& what, element_operands& operands, const besides& more) {
    return enqueued(
        operands, more,
        [&](const on& place, const std::vector<operand>& inputs, std::span<const runtime::access_request> accesses) {
            return what.run_beside(place, inputs, operands.outputs(), accesses, detail::key);
        });
}

nb::object call(const elementwise_kernel& what, nb::args inputs, nb::handle out, nb::handle on, nb::handle after,
                nb::handle reads, nb::handle writes, nb::handle label) {
    const labelled named(label);
    element_operands operands(what.outputs(), std::move(inputs), out, on);
    static_cast<void>(enqueue(what, operands, {after, reads, writes}));
    return operands.results();
}

nb::object launch(const elementwise_kernel& what, nb::args inputs, nb::handle out, nb::handle on, nb::handle after,
                  nb::handle reads, nb::handle writes, nb::handle wait, nb::handle label) {
    const labelled named(label);
    const bool waits = flag_from(wait, "wait");
    if (out.is_none()) {
        throw argument_error("launch of " + in_words_of_python(what.to_string()) +
                             " has no outputs: pass out=, or call the kernel, which returns new arrays");
    }
    element_operands operands(what.outputs(), std::move(inputs), out, on);
    return ended(enqueue(what, operands, {after, reads, writes}), operands, waits);
}

void prepare(const elementwise_kernel& what, nb::args inputs, nb::handle out, nb::handle to) {
    element_operands operands(what.outputs(), std::move(inputs), out, to);
    const source_location where = here();
    const std::vector<operand> all = operands.inputs(where);
    released([&] { what.prepare(on(operands.to(), where), all, operands.outputs()); });
}

elementwise_kernel made(nb::handle inputs, nb::handle outputs, nb::handle body, nb::handle name) {
    const std::string_view from = text_from(inputs, "inputs", "a text such as \"float x, float a\"");
    const std::string_view to = text_from(outputs, "outputs", "a text such as \"float y\"");
    const std::string_view code = text_from(body, "body", "a text: C++ such as \"y = a * x + 1\"");
    const std::string_view called =
        name.is_none() ? std::string_view() : text_from(name, "name", "a text, which names the operations");
    return {from, to, code, called};
}

along axes_from(nb::handle axis, nb::handle keepdims) {
    along axes;
    if (!axis.is_none()) {
        axes.axes = integers_from(axis, "axis");
    }
    axes.keep = flag_from(keepdims, "keepdims");
    return axes;
}

completion reduce_now(const reduction_kernel& what, element_operands& operands, const along& axes,
                      const besides& more) {
    return enqueued(
        operands, more,
        [&](const on& place, const std::vector<operand>& inputs, std::span<const runtime::access_request> accesses) {
            return what.run_beside(place, inputs, operands.outputs(), axes, accesses, detail::key);
        });
}

nb::object call_reduction(const reduction_kernel& what, nb::args inputs, nb::handle axis, nb::handle keepdims,
                          nb::handle out, nb::handle on, nb::handle after, nb::handle reads, nb::handle writes,
                          nb::handle label) {
    const labelled named(label);
    const along axes = axes_from(axis, keepdims);
    element_operands operands(what.outputs(), std::move(inputs), out, on);
    static_cast<void>(reduce_now(what, operands, axes, {after, reads, writes}));
    return operands.results();
}

nb::object launch_reduction(const reduction_kernel& what, nb::args inputs, nb::handle axis, nb::handle keepdims,
                            nb::handle out, nb::handle on, nb::handle after, nb::handle reads, nb::handle writes,
                            nb::handle wait, nb::handle label) {
    const labelled named(label);
    const bool waits = flag_from(wait, "wait");
    if (out.is_none()) {
        throw argument_error("launch of " + in_words_of_python(what.to_string()) +
                             " has no outputs: pass out=, or call the kernel, which returns new arrays");
    }
    const along axes = axes_from(axis, keepdims);
    element_operands operands(what.outputs(), std::move(inputs), out, on);
    return ended(reduce_now(what, operands, axes, {after, reads, writes}), operands, waits);
}

void prepare_reduction(const reduction_kernel& what, nb::args inputs, nb::handle axis, nb::handle keepdims,
                       nb::handle to) {
    const along axes = axes_from(axis, keepdims);
    element_operands operands(what.outputs(), std::move(inputs), nb::none(), to);
    const source_location where = here();
    const std::vector<operand> all = operands.inputs(where);
    released([&] { what.prepare(on(operands.to(), where), all, axes); });
}

/// The value of no elements.
reduction_identity identity_from(nb::handle given) {
    if (given.is_none()) {
        return {};
    }
    if (const std::optional<scalar> number = number_from(given, true)) {
        const auto* const real = std::get_if<double>(&number->value());
        if (real != nullptr && std::isinf(*real) && PyLong_Check(given.ptr()) != 0) {
            throw argument_error("identity is a whole number beyond all types: pass float(\"inf\") or float(\"-inf\")");
        }
        return *number;
    }
    if (numpy::is_scalar(given)) {
        return numpy::number(given);
    }
    return text_from(given, "identity", "a number, or a text such as \"0\"");
}

reduction_kernel made_reduction(nb::handle inputs, nb::handle outputs, nb::handle map, nb::handle reduce,
                                nb::handle identity, nb::handle post, nb::handle type, nb::handle name) {
    const auto optional = [](nb::handle given, const char* called, const char* what) {
        return given.is_none() ? std::string_view() : text_from(given, called, what);
    };
    const std::string_view from = text_from(inputs, "inputs", "a text such as \"float x, float a\"");
    const std::string_view to = text_from(outputs, "outputs", "a text such as \"float y\"");
    reduction_texts texts;
    texts.map = text_from(map, "map", "a text: a C++ expression such as \"x * x\"");
    texts.reduce = text_from(reduce, "reduce", "a text: a C++ expression of a and b, such as \"a + b\"");
    texts.post = optional(post, "post", "a text: C++ statements such as \"y = sqrt(a)\"");
    texts.identity = identity_from(identity);
    texts.type =
        optional(type, "type", "a text: a type such as \"float64\" or \"T\", or fields: \"T value, int64 index\"");
    texts.name = optional(name, "name", "a text, which names the operations");
    return {from, to, texts};
}

constexpr const char* reduction_parameters =
    "(inputs: str, outputs: str, map: str, reduce: str = \"a + b\", *, identity: str | complex | None = None, "
    "post: str | None = None, type: str | None = None, name: str | None = None)";

}  // namespace

void bind_reduction_kernels(nb::module_& m) {
    nb::class_<reduction_kernel>(
        m, "ReductionKernel", nb::is_weak_referenceable(),
        "A reduction along axes: what weir.reduction makes. The first call for each combination of "
        "element types, and of arrays and numbers, compiles it.")
        .def(
            "__init__",
            [](reduction_kernel* self, nb::handle inputs, nb::handle outputs, nb::handle map, nb::handle reduce,
               nb::handle identity, nb::handle post, nb::handle type, nb::handle name) {
                new (self) reduction_kernel(made_reduction(inputs, outputs, map, reduce, identity, post, type, name));
            },
            nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("map").none(),
            nb::arg("reduce").none() = "a + b", nb::kw_only(), nb::arg("identity").none() = nb::none(),
            nb::arg("post").none() = nb::none(), nb::arg("type").none() = nb::none(),
            nb::arg("name").none() = nb::none(),
            nb::sig((std::string("def __init__(self, ") + (reduction_parameters + 1) + " -> None").c_str()),
            "See weir.reduction.")
        .def(
            "__call__", call_reduction, nb::arg("inputs"), nb::kw_only(), nb::arg("axis").none() = nb::none(),
            nb::arg("keepdims").none() = false, nb::arg("out").none() = nb::none(),
            nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
            nb::arg("reads").none() = nb::make_tuple(), nb::arg("writes").none() = nb::make_tuple(),
            nb::arg("label").none() = nb::none(),
            nb::sig("def __call__(self, *inputs: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = "
                    "False, out: Any = None, stream: Any = None, after: Event | Iterable[Event] = (), reads: Any = (), "
                    "writes: Any = (), label: str | None = None) -> Any"),
            "Reduces along the axes, all of them without `axis`: a new Array, or a tuple of them where there are "
            "several "
            "outputs. Inputs are arrays, which are broadcast, and numbers. `out`: an array for the output, a tuple for "
            "several, None in it for a new one; it is returned. One operation on `stream`, else on the current stream "
            "of the arrays' device. Returns once enqueued, unless `out` is an array of NumPy. `reads`, `writes`: "
            "tokens that the operation uses besides. `label`: its name in errors, reports and timelines, instead of "
            "the "
            "kernel's.")
        .def(
            "launch", launch_reduction, nb::arg("inputs"), nb::kw_only(), nb::arg("axis").none() = nb::none(),
            nb::arg("keepdims").none() = false, nb::arg("out").none() = nb::none(),
            nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
            nb::arg("reads").none() = nb::make_tuple(), nb::arg("writes").none() = nb::make_tuple(),
            nb::arg("wait").none() = false, nb::arg("label").none() = nb::none(),
            nb::sig("def launch(self, *inputs: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, "
                    "out: Any, stream: Any = None, after: Event | Iterable[Event] = (), reads: Any = (), writes: Any = "
                    "(), wait: bool = False, label: str | None = None) -> Event"),
            "The same into arrays that there are. Returns the operation's Event. `wait`: blocks until the operation is "
            "over.")
        .def("prepare", prepare_reduction, nb::arg("inputs"), nb::kw_only(), nb::arg("axis").none() = nb::none(),
             nb::arg("keepdims").none() = false, nb::arg("stream").none() = nb::none(),
             nb::sig(
                 "def prepare(self, *inputs: Any, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, "
                 "stream: Any = None) -> None"),
             "Compiles and loads the code that a call with such operands runs, so that the call itself does neither, "
             "which could wait for work of a CUDA device. Enqueues nothing, and blocks until it is done.")
        .def_prop_ro(
            "name", [](const reduction_kernel& self) { return self.name(); }, "What its operations are called.")
        .def("__repr__", [](const reduction_kernel& self) { return in_words_of_python(self.to_string()); });
    m.def(
        "reduction", made_reduction, nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("map").none(),
        nb::arg("reduce").none() = "a + b", nb::kw_only(), nb::arg("identity").none() = nb::none(),
        nb::arg("post").none() = nb::none(), nb::arg("type").none() = nb::none(), nb::arg("name").none() = nb::none(),
        nb::sig((std::string("def reduction") + reduction_parameters + " -> ReductionKernel").c_str()),
        "A kernel that reduces its inputs along axes: `map`, a C++ expression of one element of each input, is what is "
        "reduced; `reduce` combines two such values, a and b, and must be associative and commutative, up to rounding; "
        "`post`, statements, assigns the outputs from the last value a (without it the one output is a). `identity`: "
        "the "
        "value of no elements, which are else an error: a number in the range of `type`, infinities and NaN included, "
        "or an expression. `type`: of the values; the type of the first output without "
        "it. In `map`, `i` is the number of the element among those that are reduced to the same result, in C order "
        "of the reduced axes, and `n` is how many these are; `post` knows `n`, too. Where `type` is a list of fields, "
        "such as \"T value, int64 index\", a value is a list of them in braces, \"{x, i}\", and has them, a.index. "
        "Runs on the CPU and on CUDA devices; the same bits in every run.\n\n"
        ">>> norm = weir.reduction(\"T x\", \"T y\", \"x * x\", \"a + b\", identity=0, post=\"y = sqrt(a)\")\n"
        ">>> norm(weir.full((2, 4), 3.0), axis=1).tolist()\n[6.0, 6.0]\n");
}

void bind_elementwise(nb::module_& m) {
    nb::class_<elementwise_kernel>(m, "ElementwiseKernel", nb::is_weak_referenceable(),
                                   "An element-wise kernel: what weir.elementwise makes. The first call for each "
                                   "combination of element types, and of "
                                   "arrays and numbers, compiles it.")
        .def(
            "__init__",
            [](elementwise_kernel* self, nb::handle inputs, nb::handle outputs, nb::handle body, nb::handle name) {
                new (self) elementwise_kernel(made(inputs, outputs, body, name));
            },
            nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("body").none(), nb::kw_only(),
            nb::arg("name").none() = nb::none(),
            nb::sig("def __init__(self, inputs: str, outputs: str, body: str, /, *, name: str | None = None) -> None"),
            "See weir.elementwise.")
        .def("__call__", call, nb::arg("inputs"), nb::kw_only(), nb::arg("out").none() = nb::none(),
             nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
             nb::arg("reads").none() = nb::make_tuple(), nb::arg("writes").none() = nb::make_tuple(),
             nb::arg("label").none() = nb::none(),
             nb::sig("def __call__(self, *inputs: Any, out: Any = None, stream: Any = None, after: Event | "
                     "Iterable[Event] = (), reads: Any = (), writes: Any = (), label: str | None = None) -> Any"),
             "Computes the outputs: a new Array, or a tuple of them where there are several outputs. Inputs are "
             "arrays, which "
             "are broadcast, and numbers. `out`: an array for the output, a tuple for several, None in it for a new "
             "one; it "
             "is returned. One operation on `stream`, else on the current stream of the arrays' device. Returns once "
             "enqueued, unless `out` is an array of NumPy. `reads`, `writes`: tokens that the operation uses besides. "
             "`label`: its name in errors, reports and timelines, instead of the kernel's.")
        .def("launch", launch, nb::arg("inputs"), nb::kw_only(), nb::arg("out").none() = nb::none(),
             nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
             nb::arg("reads").none() = nb::make_tuple(), nb::arg("writes").none() = nb::make_tuple(),
             nb::arg("wait").none() = false, nb::arg("label").none() = nb::none(),
             nb::sig("def launch(self, *inputs: Any, out: Any, stream: Any = None, after: Event | Iterable[Event] = "
                     "(), reads: Any = (), writes: Any = (), wait: bool = False, label: str | None = None) -> "
                     "Event"),
             "The same into arrays that there are. Returns the operation's Event. `wait`: blocks until the operation "
             "is over.")
        .def("prepare", prepare, nb::arg("inputs"), nb::kw_only(), nb::arg("out").none() = nb::none(),
             nb::arg("stream").none() = nb::none(),
             nb::sig("def prepare(self, *inputs: Any, out: Any = None, stream: Any = None) -> None"),
             "Compiles and loads the code that a call with such operands runs, so that the call itself does neither, "
             "which could wait for work of a CUDA device. Numbers stand for all numbers. Enqueues nothing, and blocks "
             "until it is done.")
        .def_prop_ro(
            "name", [](const elementwise_kernel& self) { return self.name(); }, "What its operations are called.")
        .def("__repr__", [](const elementwise_kernel& self) { return in_words_of_python(self.to_string()); });
    m.def(
        "elementwise",
        [](nb::handle inputs, nb::handle outputs, nb::handle body, nb::handle name) {
            return made(inputs, outputs, body, name);
        },
        nb::arg("inputs").none(), nb::arg("outputs").none(), nb::arg("body").none(), nb::kw_only(),
        nb::arg("name").none() = nb::none(),
        nb::sig("def elementwise(inputs: str, outputs: str, body: str, /, *, name: str | None = None) -> "
                "ElementwiseKernel"),
        "A kernel that computes each element of the outputs of the elements of the inputs in the same place. The body "
        "is "
        "C++, in which each parameter is one element; it runs on the CPU and on CUDA devices. Types have names of C++ "
        "or "
        "NumPy, T is any type. An output is only assigned, unless it is \"inout float y\"; an input \"raw float x\" is "
        "the whole array, of which the body reads any element, x[j]. `i` is the number of the "
        "element, "
        "`n` how many there are.\n\n"
        ">>> axpy = weir.elementwise(\"float x, float a\", \"float y\", \"y = a * x + 1\")\n"
        ">>> axpy(weir.ones(3, \"float32\"), 2).tolist()\n[3.0, 3.0, 3.0]\n");
}

}  // namespace weir::python
