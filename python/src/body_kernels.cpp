// Kernels whose bodies are functions of Python: what weir.kernel launches. weir/_kernels.py has their interface, weir/_numba.py
// compiles them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "arithmetic.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "events.hpp"
#include "exchange.hpp"
#include "failures.hpp"
#include "interpreter.hpp"
#include "numpy.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/index_function.hpp"
#include "weir/kernel.hpp"
#include "weir/kernel_argument.hpp"
#include "weir/scalar.hpp"
#include "weir/token.hpp"
#include "work.hpp"

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

/// A function of Numba's: its calling convention has where the result goes, where an exception goes, and the arguments.
using native_loop = std::int32_t (*)(void** result, void** raised, std::int64_t begin, std::int64_t end, void* words);
constexpr std::int32_t returned = 0;
constexpr std::int32_t returned_none = -2;

/// A body, compiled for some types of its arguments and for one device.
struct compiled_body {
    native_loop on_host = nullptr;  ///< null: for a CUDA device, or a C function
    index_function c_function = nullptr;
    std::optional<kernel> on_device;  ///< its parameters are the words
    nb::object keeps;                 ///< owns the code
    nb::object exception_of;          ///< makes an exception of what a failed call left
    std::vector<unsigned> uses;       ///< of each argument
};

/// Words before those of the arguments: the extents, and those of a group.
constexpr std::size_t header_words = 6;

/// Index spaces have up to so many dimensions.
constexpr std::size_t most_dimensions = 3;

/// An index space; extents of dimensions that it has not are 1.
struct index_space {
    std::size_t dimensions = 0;
    std::array<std::int64_t, most_dimensions> extents{1, 1, 1};
    std::array<std::int64_t, most_dimensions> local{1, 1, 1};
    bool has_groups = false;

    index_space(nb::handle global, nb::handle of_group) : dimensions(nb::len(global)) {
        for (std::size_t d = 0; d < dimensions; ++d) {
            extents[d] = nb::cast<std::int64_t>(global[d]);
        }
        if (!of_group.is_none()) {
            has_groups = true;
            for (std::size_t d = 0; d < dimensions; ++d) {
                local[d] = nb::cast<std::int64_t>(of_group[d]);
            }
        }
    }
    /// Along one dimension.
    [[nodiscard]] std::int64_t groups(std::size_t d) const noexcept { return extents[d] / local[d]; }
    /// What the loop of the host counts: indices, or groups.
    [[nodiscard]] std::int64_t count() const noexcept { return groups(0) * groups(1) * groups(2); }
};

/// A Python body with what was compiled of it so far.
struct body_kernel {
    const char* label;
    std::vector<std::string> names;              ///< of its parameters behind the index
    std::vector<std::optional<dtype>> declared;  ///< of a C function: the types of its numbers; nothing for an array
    nb::dict compiled;                           ///< by types and device: a compiled_body
};

std::string start_of(const body_kernel& what) { return std::string("the kernel ") + what.label + ": "; }

/// The arguments of one launch.
class body_arguments {
public:
    body_arguments(const body_kernel& of, nb::handle given) : of_(of), count_(nb::len(given)) {
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

    /// Where the first array is.
    [[nodiscard]] std::optional<device> place() const {
        for (const argument& one : all_) {
            if (one.of_array != nullptr) {
                return one.of_array->device();
            }
        }
        return std::nullopt;
    }

    /// What code depends on.
    void add_to_key(std::string& text) const {
        for (const argument& one : all_) {
            const std::uint32_t type = one.type.key();
            text.push_back(one.of_array != nullptr ? one.layout : 'n');
            text.push_back(static_cast<char>(one.of_array != nullptr ? one.of_array->dimensions() : 0));
            text.append(reinterpret_cast<const char*>(&type), sizeof type);
        }
    }
    /// The same in words: for each argument its element type, its dimensions and their layout ("C", "F", "A"); a number has none.
    [[nodiscard]] nb::object description() const {
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

    /// What the body gets: for an array its address, extents and strides, for a number one or two words.
    void add_words(std::vector<std::uint64_t>& words) const {
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

    /// Which of the words each argument begins with.
    [[nodiscard]] std::vector<std::size_t> places() const {
        std::vector<std::size_t> all;
        std::size_t next = header_words;
        for (const argument& one : all_) {
            all.push_back(next);
            next += one.of_array != nullptr ? 1 + 2 * one.of_array->dimensions() : size_of(one.type) > 8 ? 2 : 1;
        }
        return all;
    }

    /// What the launch reads and writes: as the program declares it, else as the compiler found it.
    [[nodiscard]] std::vector<runtime::access_request> accesses(const compiled_body& of,
                                                                const index_space& space) const {
        std::vector<runtime::access_request> found;
        for (std::size_t k = 0; k < count_; ++k) {
            if (const array* const x = all_[k].of_array; x != nullptr) {
                found.push_back(access_of(*x, use_of(k, of.uses[k], space)));
            }
        }
        // What overlaps another operand may be read there: results of a failed operation do not become right by this one.
        for (runtime::access_request& one : found) {
            const auto same = [&](const auto& other) { return other.target == one.target; };
            one.overwrites = one.overwrites && std::count_if(found.begin(), found.end(), same) == 1;
        }
        return found;
    }

private:
    struct argument {
        array* of_array = nullptr;
        std::optional<operand_use> declared;
        char layout = 'C';
        dtype type = dtype::float64;
        std::array<std::uint64_t, 2> value{};
    };

    [[nodiscard]] std::string start(std::size_t position) const {
        return start_of(of_) + "the argument " + of_.names[position] + " is ";
    }

    void add(nb::handle given) {
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

    [[noreturn]] void refuse_token(nb::handle given) const {
        throw argument_type_error(start(all_.size()) + nb::repr(given).c_str() +
                                  ", a token, which has no elements for a body: pass an array or a number there, and "
                                  "order the launch by an event of what it comes after: f[weir.Range(n), stream, event]"
                                  "(...)");
    }

    void add_number(dtype type, const scalar& number) {
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

    /// The type of the C function's parameter, which the number is converted to.
    [[nodiscard]] dtype declared_type(const scalar& number) const {
        const std::optional<dtype>& type = of_.declared[all_.size()];
        if (!type) {
            throw argument_type_error(start(all_.size()) + number.to_string() +
                                      ", and the signature declares an array: pass a weir.Array");
        }
        return *type;
    }
    void store_declared(const scalar& number, dtype type, std::byte* to) const {
        const std::string name(name_of(type));
        switch (weir::detail::store_argument(type, number, to)) {
            case weir::detail::fit::fits:
                break;
            case weir::detail::fit::other_kind:
                throw argument_type_error(start(all_.size()) + number.to_string() + ", and the signature declares " +
                                          name + ": pass a number of its kind");
            case weir::detail::fit::out_of_range:
                throw argument_error(
                    start(all_.size()) + number.to_string() + ", which is out of range of the " + name +
                    " that the signature declares: pass a number in its range, or declare a wider type");
        }
    }

    void add_array(array& x, std::optional<operand_use> declared) {
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

    void expect_known(dtype type) const {
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

    [[nodiscard]] operand_use use_of(std::size_t k, unsigned found, const index_space& space) const {
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
            throw argument_error(start(k) + "declared weir.In, and the body writes it: pass weir.InOut(" +
                                 of_.names[k] + "), or the array alone");
        }
        if (*one.declared == operand_use::out && (found & reads) != 0) {
            throw argument_error(start(k) + "declared weir.Out, and the body reads it: pass weir.InOut(" +
                                 of_.names[k] + "), or the array alone");
        }
        return *one.declared;
    }

    const body_kernel& of_;
    std::size_t count_;
    std::vector<argument> all_;
    std::vector<nb::object> imported_;  ///< arrays of other packages
};

/// One launch on the host, on a thread of Weir's. Needs the GIL only if the body raises.
class body_task {
public:
    body_task(nb::handle body, native_loop function, std::int64_t count, bool shares, std::vector<std::uint64_t> words)
        : body_(nb::borrow(body)), function_(function), count_(count), shares_(shares), words_(std::move(words)) {}

    void operator()() {
        weir::detail::run_indices(
            0, count_, shares_,
            [](void* self, std::int64_t begin, std::int64_t end) { static_cast<body_task*>(self)->run(begin, end); },
            this);
    }

private:
    void run(std::int64_t begin, std::int64_t end) {
        void* result = nullptr;
        void* raised = nullptr;
        const std::int32_t status = function_(&result, &raised, begin, end, words_.data());
        if (status != returned && status != returned_none) {
            fail(status, raised);
        }
    }

    [[noreturn]] void fail(std::int32_t status, void* raised) {
        const visit inside;
        const nb::gil_scoped_acquire gil;
        try {
            const auto& body = *nb::inst_ptr<compiled_body>(body_.get());
            const nb::object made = body.exception_of(status, reinterpret_cast<std::uintptr_t>(raised));
            PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
        } catch (nb::python_error& error) {
            error.restore();
        }
        throw python_failure::caught();
    }

    reference body_;
    native_loop function_;
    std::int64_t count_;
    bool shares_;
    std::vector<std::uint64_t> words_;
    expected_visit expected_;
};

/// The same for a C function. Needs no GIL, unless the function is one of Python.
class c_task {
public:
    c_task(nb::handle body, index_function function, std::int64_t count, bool shares, std::vector<std::uint64_t> words,
           std::vector<std::size_t> places)
        : body_(nb::borrow(body)),
          function_(function),
          count_(count),
          shares_(shares),
          words_(std::move(words)),
          places_(std::move(places)) {}

    void operator()() {
        std::vector<void*> addresses;
        for (const std::size_t place : places_) {
            addresses.push_back(&words_[place]);
        }
        call one{function_, addresses.data()};
        weir::detail::run_indices(
            0, count_, shares_,
            [](void* context, std::int64_t begin, std::int64_t end) {
                const call& its = *static_cast<call*>(context);
                if (const int status = its.function(begin, end, its.arguments); status != 0) {
                    weir::detail::refuse_status(status);
                }
            },
            &one);
    }

private:
    struct call {
        index_function function;
        void* const* arguments;
    };

    reference body_;  ///< may own the code
    index_function function_;
    std::int64_t count_;
    bool shares_;
    std::vector<std::uint64_t> words_;
    std::vector<std::size_t> places_;
    expected_visit expected_;
};

completion submit_released(runtime::stream_state& to, const runtime::submission& what) {
    return released([&] { return runtime::submit(to, what); });
}

/// Threads of a block, where the program names none.
constexpr std::int64_t usual_threads = 256;

/// At least one block: without an index its threads do nothing.
launch_config config_of(const kernel& code, const index_space& space) {
    if (space.has_groups) {
        // CUDA's first axis is the one that neighbours lie along: the last dimension.
        const std::size_t last = space.dimensions - 1;
        const auto along = [&](auto&& extent) {
            return dimensions(extent(last), last > 0 ? extent(last - 1) : 1, last > 1 ? extent(last - 2) : 1);
        };
        return {along([&](std::size_t d) { return std::max<std::int64_t>(space.groups(d), 1); }),
                along([&](std::size_t d) { return space.local[d]; })};
    }
    const std::int64_t threads = std::min<std::int64_t>(usual_threads, code.max_threads_per_block());
    return {dimensions(std::max<std::int64_t>(space.count() - 1, 0) / threads + 1), dimensions(threads)};
}

/// Finds the compiled body for these arguments; `compile` makes it where there is none: compile(description, dimensions, has_groups,
/// device), with the device None for code of the host.
nb::object body_for(body_kernel& self, nb::handle compile, const index_space& space, const body_arguments& arguments,
                    device where) {
    const bool on_cuda = where.kind() == device_kind::cuda;
    std::string text{static_cast<char>(space.dimensions), space.has_groups ? 'g' : 'i',
                     on_cuda ? static_cast<char>(where.id()) : '\x7f'};
    arguments.add_to_key(text);
    const nb::bytes types(text.data(), text.size());
    if (PyObject* const known = PyDict_GetItemWithError(self.compiled.ptr(), types.ptr())) {
        return nb::borrow(known);
    }
    if (PyErr_Occurred() != nullptr) {
        nb::raise_python_error();
    }
    const nb::object made = compile(arguments.description(), space.dimensions, space.has_groups,
                                    on_cuda ? nb::cast(where) : nb::object(nb::none()));
    // The first one stays, where several threads compile: so what was found above is never let go, in an interpreter without
    // a lock either.
    PyObject* const kept = PyDict_SetDefault(self.compiled.ptr(), types.ptr(), made.ptr());
    if (kept == nullptr) {
        nb::raise_python_error();
    }
    return nb::borrow(kept);
}

nb::object launch(body_kernel& self, nb::handle compile, nb::handle global, nb::handle local, nb::handle on,
                  nb::handle after, nb::handle given) {
    const source_location where = here();
    const body_arguments arguments(self, given);
    const index_space space(global, local);
    const stream to = stream_from(on, on.is_none() ? arguments.place() : std::nullopt);
    const std::vector<completion> dependencies = completions_from(after);
    const nb::object kept = body_for(self, compile, space, arguments, to.device());
    const auto& body = *nb::inst_ptr<compiled_body>(kept);
    const std::vector<runtime::access_request> accesses = arguments.accesses(body, space);

    std::vector<std::uint64_t> words;
    for (const auto& extents : {space.extents, space.local}) {
        for (const std::int64_t extent : extents) {
            words.push_back(static_cast<std::uint64_t>(extent));
        }
    }
    arguments.add_words(words);
    const runtime::site site{self.label, where};
    if (body.on_device) {
        const completion done = weir::detail::launch_words(*body.on_device, to, config_of(*body.on_device, space),
                                                           words, accesses, {dependencies, site}, submit_released);
        return event_of(done, to);
    }
    const bool shares = weir::detail::shares_indices(to);
    const auto enqueue = [&](auto task) {
        return weir::detail::with_task(std::move(task), [&](weir::detail::task_ref work) {
            return submit_released(to.state(detail::key),
                                   {accesses, dependencies, work, site, runtime::work_kind::device});
        });
    };
    const completion done =
        body.c_function != nullptr
            ? enqueue(c_task(kept, body.c_function, space.count(), shares, std::move(words), arguments.places()))
            : enqueue(body_task(kept, body.on_host, space.count(), shares, std::move(words)));
    return event_of(done, to);
}

void prepare(body_kernel& self, nb::handle compile, nb::handle global, nb::handle local, nb::handle on,
             nb::handle given) {
    const body_arguments arguments(self, given);
    const stream to = stream_from(on, on.is_none() ? arguments.place() : std::nullopt);
    static_cast<void>(body_for(self, compile, index_space(global, local), arguments, to.device()));
}

/// For each parameter of a C function: how it uses an array ("" for a number), the type (None for any elements), and the name.
nb::object read_signature(std::string_view text) {
    nb::list all;
    for (const weir::detail::declared_parameter& one : weir::detail::read_signature(text)) {
        const char* use = "";
        if (one.array) {
            use = *one.array == kernel_argument::use::in    ? "in"
                  : *one.array == kernel_argument::use::out ? "out"
                                                            : "inout";
        }
        all.append(nb::make_tuple(use, one.type ? nb::cast(name_of(*one.type)) : nb::object(nb::none()), one.name));
    }
    return all;
}

std::vector<unsigned> uses_from(nb::handle list) {
    std::vector<unsigned> all;
    for (const nb::handle one : list) {
        all.push_back(nb::cast<unsigned>(one));
    }
    return all;
}

}  // namespace

void bind_body_kernels(nb::module_& m) {
    nb::class_<compiled_body>(m, "_CompiledBody", nb::is_weak_referenceable())
        .def_static(
            "on_host",
            [](std::uintptr_t address, nb::object keeps, nb::object exception_of, nb::handle uses) {
                return compiled_body{reinterpret_cast<native_loop>(address),
                                     nullptr,
                                     std::nullopt,
                                     std::move(keeps),
                                     std::move(exception_of),
                                     uses_from(uses)};
            },
            nb::arg("address"), nb::arg("keeps"), nb::arg("exception_of"), nb::arg("uses"),
            nb::sig("def on_host(address: int, keeps: object, exception_of: Callable[[int, int], BaseException], uses: "
                    "Sequence[int]) -> _CompiledBody"))
        .def_static(
            "of_c",
            [](std::uintptr_t address, nb::object keeps, nb::handle uses) {
                return compiled_body{nullptr,      reinterpret_cast<index_function>(address),
                                     std::nullopt, std::move(keeps),
                                     nb::none(),   uses_from(uses)};
            },
            nb::arg("address"), nb::arg("keeps"), nb::arg("uses"),
            nb::sig("def of_c(address: int, keeps: object, uses: Sequence[int]) -> _CompiledBody"))
        .def_static(
            "on_cuda",
            [](const nb::bytes& ptx, const std::string& name, device on, nb::handle uses) {
                const std::string text(ptx.c_str(), ptx.size());
                kernel code = released([&] { return kernel::from_ptx(text, name, on); });
                return compiled_body{nullptr, nullptr, std::move(code), nb::none(), nb::none(), uses_from(uses)};
            },
            nb::arg("ptx"), nb::arg("name"), nb::arg("device"), nb::arg("uses"),
            nb::sig("def on_cuda(ptx: bytes, name: str, device: Device, uses: Sequence[int]) -> _CompiledBody"))
        .def_prop_ro(
            "uses", [](const compiled_body& self) { return self.uses; }, nb::sig("def uses(self) -> list[int]"));
    m.def("_read_signature", read_signature, nb::arg("text"),
          nb::sig("def _read_signature(text: str) -> list[tuple[str, str | None, str]]"));
    nb::class_<body_kernel>(m, "_BodyKernel")
        .def(
            "__init__",
            [](body_kernel* self, const std::string& label, const std::vector<std::string>& names,
               nb::handle declared) {
                std::vector<std::optional<dtype>> types;
                for (const nb::handle one : declared) {
                    types.push_back(one.is_none() ? std::nullopt : std::optional(dtype_from(one)));
                }
                new (self) body_kernel{interned(label), names, std::move(types), nb::dict()};
            },
            nb::arg("label"), nb::arg("names"), nb::arg("declared") = nb::make_tuple(),
            nb::sig(
                "def __init__(self, label: str, names: Sequence[str], declared: Sequence[str | None] = ()) -> None"))
        .def("launch", launch, nb::arg("compile"), nb::arg("global"), nb::arg("local").none(), nb::arg("stream").none(),
             nb::arg("after").none(), nb::arg("args"),
             nb::sig("def launch(self, compile: Callable[..., _CompiledBody], global_: tuple[int, ...], local: "
                     "tuple[int, ...] | None, stream: Any, after: Any, args: tuple[Any, ...], /) -> Event"))
        .def("prepare", prepare, nb::arg("compile"), nb::arg("global"), nb::arg("local").none(),
             nb::arg("stream").none(), nb::arg("args"),
             nb::sig("def prepare(self, compile: Callable[..., _CompiledBody], global_: tuple[int, ...], local: "
                     "tuple[int, ...] | None, stream: Any, args: tuple[Any, ...], /) -> None"))
        .def_prop_ro(
            "compiled", [](const body_kernel& self) { return self.compiled; },
            nb::sig("def compiled(self) -> dict[bytes, _CompiledBody]"));
}

}  // namespace weir::python
