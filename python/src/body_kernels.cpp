// Kernels whose bodies are functions of Python: what weir.kernel launches. weir/_kernels.py has their interface, weir/_numba.py
// compiles them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "body_arguments.hpp"
#include "devices.hpp"
#include "dtypes.hpp"
#include "events.hpp"
#include "failures.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "weir/detail/launch_arguments.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/dtype.hpp"
#include "weir/index_function.hpp"
#include "weir/kernel.hpp"
#include "weir/kernel_argument.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

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

/// A Python body with what was compiled of it so far.
struct body_kernel {
    body_signature signature;
    nb::dict compiled;  ///< by types and device: a compiled_body
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
    const body_arguments arguments(self.signature, given);
    const index_space space(global, local);
    const stream to = stream_from(on, on.is_none() ? arguments.place() : std::nullopt);
    const std::vector<completion> dependencies = completions_from(after);
    const nb::object kept = body_for(self, compile, space, arguments, to.device());
    const auto& body = *nb::inst_ptr<compiled_body>(kept);
    const std::vector<runtime::access_request> accesses = arguments.accesses(body.uses, space);

    std::vector<std::uint64_t> words;
    for (const auto& extents : {space.extents, space.local}) {
        for (const std::int64_t extent : extents) {
            words.push_back(static_cast<std::uint64_t>(extent));
        }
    }
    arguments.add_words(words);
    const runtime::site site{self.signature.label, where};
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
    const body_arguments arguments(self.signature, given);
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
                new (self) body_kernel{{interned(label), names, std::move(types)}, nb::dict()};
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
