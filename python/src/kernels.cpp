// Kernels for CUDA devices, and their launches.
#include "weir/kernel.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "calls.hpp"
#include "errors.hpp"
#include "events.hpp"
#include "kernel_arguments.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "wording.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

/// A kernel with what its signature says.
struct py_kernel {
    explicit py_kernel(kernel its) : code(std::move(its)), label(interned(code.name())) {
        parameters = detail::declared_parameters(code);
        for (const detail::declared_parameter& one : parameters) {
            described.push_back({one.is_array ? sizeof(void*) : size_of(*one.type), one.is_array, one.type.has_value(),
                                 one.type.value_or(dtype::bool_)});
            arrays += one.is_array ? 1 : 0;
        }
    }
    kernel code;
    const char* label;
    std::vector<detail::declared_parameter> parameters;
    std::vector<detail::kernel_argument> described;
    std::size_t arrays = 0;
};

std::string repr(const py_kernel& self) { return in_words_of_python(self.code.to_string()); }

/// A launch on its way into the driver's queue, which copies the arguments.
template <class Slots>
struct launch_body {
    const detail::kernel_code* code;
    detail::launch_shape shape;
    std::size_t count;
    Slots slots;

    void operator()() {
        std::array<void*, few_arguments> few;
        std::vector<void*> many;
        void** addresses = few.data();
        if (count > few.size()) {
            many.resize(count);
            addresses = many.data();
        }
        for (std::size_t i = 0; i < count; ++i) {
            addresses[i] = slots[i].bytes;
        }
        detail::put_launch(*code, shape, std::span<void* const>(addresses, count));
    }
    static constexpr std::size_t few_arguments = 16;
};

constexpr std::size_t few_slots = 12;

dimensions dimensions_from(nb::handle argument, const char* name) {
    if (PyLong_Check(argument.ptr()) != 0) {
        return integer_from(argument, name);
    }
    if (PyTuple_Check(argument.ptr()) == 0 && PyList_Check(argument.ptr()) == 0) {
        return integer_from(argument, name);
    }
    const std::size_t count = nb::len(argument);
    if (count == 0 || count > 3) {
        throw argument_error(std::string(name) + " is " + nb::repr(argument).c_str() +
                             ": pass a number, or a tuple of one to three of them");
    }
    std::array<std::int64_t, 3> along{1, 1, 1};
    for (std::size_t i = 0; i < count; ++i) {
        along[i] = integer_from(argument[i], name);
    }
    return {along[0], along[1], along[2]};
}

struct launch_place {
    launch_config config;
    nb::handle on;
    nb::handle after;
    bool wait;
};

launch_config config_from(nb::handle grid, nb::handle block, nb::handle shared) {
    const std::int64_t bytes = integer_from(shared, "shared");
    if (bytes < 0) {
        throw argument_error("shared is " + std::to_string(bytes) + ": pass a number of bytes, from 0 on");
    }
    return {dimensions_from(grid, "grid"), dimensions_from(block, "block"), static_cast<std::size_t>(bytes)};
}

completion put(const py_kernel& what, const stream& to, const launch_config& config,
               std::span<const argument_slot> slots, std::span<const runtime::access_request> accesses,
               std::span<const completion> after, const runtime::site& site) {
    const detail::launch_shape shape = detail::checked_launch(what.code, to, config, what.described, accesses);
    const auto submit = [&](auto body) {
        return released([&] {
            return detail::with_task(detail::native_task{std::move(body)}, [&](detail::task_ref work) {
                return runtime::submit(to.state(), {accesses, after, work, site, runtime::work_kind::device});
            });
        });
    };
    if (slots.size() <= few_slots) {
        launch_body<std::array<argument_slot, few_slots>> body{&what.code.code(), shape, slots.size(), {}};
        std::copy(slots.begin(), slots.end(), body.slots.begin());
        return submit(std::move(body));
    }
    return submit(launch_body<std::vector<argument_slot>>{&what.code.code(), shape, slots.size(),
                                                          std::vector<argument_slot>(slots.begin(), slots.end())});
}

nb::object launch(const py_kernel& what, const launch_place& at, nb::args args) {
    const std::size_t count = what.parameters.size();
    if (args.size() != count) {
        throw argument_error("the kernel " + repr(what) + " has " + std::to_string(count) + " parameters, and got " +
                             std::to_string(args.size()) + " arguments");
    }
    const source_location where = here();
    std::array<argument_slot, few_slots> few_values;
    std::vector<argument_slot> many_values(count > few_slots ? count : 0);
    const std::span<argument_slot> slots(many_values.empty() ? few_values.data() : many_values.data(), count);
    std::array<runtime::access_request, 8> few_accesses;
    std::vector<runtime::access_request> many_accesses(what.arrays > few_accesses.size() ? what.arrays : 0);
    runtime::access_request* const accesses = many_accesses.empty() ? few_accesses.data() : many_accesses.data();

    std::size_t array_number = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const detail::declared_parameter& as = what.parameters[i];
        const nb::handle given = PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i));
        if (!as.is_array) {
            store_number(given, what.code, as, i, slots[i]);
            continue;
        }
        const array& x = array_argument(given, what.code, as, i);
        if (as.mode == order::access_mode::write) {
            detail::expect_own_elements(x);
        }
        void* const address = x.device_data();
        std::memcpy(slots[i].bytes, &address, sizeof address);
        accesses[array_number++] = {x.buffer().resource(), x.footprint(), as.mode, as.overwrites};
    }
    const stream to = stream_from(at.on, what.code.device());
    const std::vector<completion> after = completions_from(at.after);
    const runtime::site site{what.label, where};
    const completion done = put(what, to, at.config, slots, {accesses, array_number}, after, site);
    if (at.wait) {
        waiting([&] { done.synchronize(where); });
    }
    return event_of(done, to);
}

/// k[grid, block, stream, shared].
struct py_launcher {
    nb::object kernel;
    launch_config config;
    nb::object on;
};

/// What `k[grid, block](...)` calls. As a slot of the type: the interpreter would look for a method `__call__` first, and
/// that would gather the arguments once more.
PyObject* call_launcher(PyObject* self, PyObject* arguments, PyObject* keywords) noexcept {
    try {
        if (keywords != nullptr && PyDict_Size(keywords) != 0) {
            throw argument_type_error(
                "k[grid, block](...) takes the arguments of the kernel alone: pass after= and wait= to k.launch(grid, "
                "block, ...)");
        }
        const py_launcher& launcher = *nb::inst_ptr<py_launcher>(self);
        return launch(*object_of<py_kernel>(launcher.kernel),
                      {launcher.config, launcher.on, nb::handle(Py_None), false}, nb::borrow<nb::args>(arguments))
            .release()
            .ptr();
    } catch (...) {
        raise_handled();
        return nullptr;
    }
}

py_launcher configured(nb::handle self, nb::handle index) {
    if (PyTuple_Check(index.ptr()) == 0 || nb::len(index) < 2 || nb::len(index) > 4) {
        throw argument_error(
            "a kernel is launched as k[grid, block](...), k[grid, block, stream](...) or k[grid, block, "
            "stream, shared](...), and got [" +
            std::string(nb::repr(index).c_str()) + "]");
    }
    const std::size_t count = nb::len(index);
    const nb::object on = count > 2 ? nb::object(index[2]) : nb::object(nb::none());
    const nb::object shared = count > 3 ? nb::object(index[3]) : nb::object(nb::int_(0));
    return {nb::borrow(self), config_from(nb::object(index[0]), nb::object(index[1]), shared), on};
}

device cuda_device(nb::handle argument) {
    if (!argument.is_none()) {
        return device_from(argument);
    }
    const device current = innermost_stream().device();
    return current.kind() == device_kind::cuda ? current : released([] { return cuda(); });
}

py_kernel from_source(const std::string& source, const std::string& name, const std::string& signature,
                      const std::vector<std::string>& options, nb::handle on) {
    const device where = cuda_device(on);
    return py_kernel(
        released([&] { return kernel::from_source(source, name, options, where).with_signature(signature); }));
}

py_kernel from_ptx(const std::string& text, const std::string& name, const std::string& signature, nb::handle on) {
    const device where = cuda_device(on);
    return py_kernel(released([&] { return kernel::from_ptx(text, name, where).with_signature(signature); }));
}

py_kernel from_cubin(const nb::bytes& image, const std::string& name, const std::string& signature, nb::handle on) {
    const device where = cuda_device(on);
    const auto bytes = std::as_bytes(std::span(image.c_str(), image.size()));
    return py_kernel(released([&] { return kernel::from_cubin(bytes, name, where).with_signature(signature); }));
}

}  // namespace

void bind_kernels(nb::module_& m) {
    nb::class_<py_launcher> launcher(m, "_Launcher");
    launcher.def(
        "__call__",
        [](nb::handle self, nb::args args) {
            nb::object done = nb::steal(call_launcher(self.ptr(), args.ptr(), nullptr));
            if (!done.is_valid()) {
                nb::raise_python_error();
            }
            return done;
        },
        nb::sig("def __call__(self, *args: Any) -> Event"));
    reinterpret_cast<PyTypeObject*>(launcher.ptr())->tp_call = call_launcher;
    nb::class_<py_kernel>(
        m, "Kernel", nb::is_weak_referenceable(),
        "A kernel for one CUDA device, compiled by NVRTC, or taken from the cache of compiled kernels, and "
        "loaded when it is made.\n\n"
        "`signature` declares the parameters: \"in float* x, inout float* y, float a, int64 n\"; types have "
        "names of C++ or NumPy, and void* is\nany array. What it says is used for order: no launch "
        "waits for anything else.\n\n"
        ">>> axpy = weir.Kernel(source, \"axpy\", \"in float* x, inout float* y, float a, int64 n\")\n"
        ">>> e = axpy.launch(blocks, 256, x, y, 2.0, n, stream=s)\n"
        ">>> e = axpy[blocks, 256, s](x, y, 2.0, n)\n")
        .def(
            "__init__",
            [](py_kernel* self, const std::string& source, const std::string& name, const std::string& signature,
               const std::vector<std::string>& options,
               nb::handle on) { new (self) py_kernel(from_source(source, name, signature, options, on)); },
            nb::arg("source"), nb::arg("name"), nb::arg("signature"), nb::kw_only(),
            nb::arg("options") = nb::make_tuple(), nb::arg("device").none() = nb::none(),
            nb::sig(
                "def __init__(self, source: str, name: str, signature: str, *, options: Sequence[str] = (), device: "
                "Device | str | None = None) -> None"),
            "`options` are NVRTC's, each a text of its own. Blocks while it compiles. Raises ArgumentError with the "
            "log "
            "of what does not compile, MissingLibrary without NVRTC, DeviceError without a CUDA device.")
        .def_static(
            "from_ptx", from_ptx, nb::arg("text"), nb::arg("name"), nb::arg("signature"), nb::kw_only(),
            nb::arg("device").none() = nb::none(),
            nb::sig("def from_ptx(text: str, name: str, signature: str, *, device: Device | str | None = None) -> "
                    "Kernel"),
            "The kernel of PTX, compiled by the driver. `name` is the symbol.")
        .def_static(
            "from_cubin", from_cubin, nb::arg("image"), nb::arg("name"), nb::arg("signature"), nb::kw_only(),
            nb::arg("device").none() = nb::none(),
            nb::sig("def from_cubin(image: bytes, name: str, signature: str, *, device: Device | str | None = None) "
                    "-> Kernel"),
            "The kernel of machine code for the device: a cubin, or a fat binary.")
        .def(
            "launch",
            [](const py_kernel& self, nb::handle grid, nb::handle block, nb::args args, nb::handle on, nb::handle after,
               bool wait, nb::handle shared) {
                return launch(self, {config_from(grid, block, shared), on, after, wait}, args);
            },
            nb::arg("grid").none(), nb::arg("block").none(), nb::arg("args"), nb::kw_only(),
            nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(), nb::arg("wait") = false,
            nb::arg("shared").none() = 0,
            nb::sig(
                "def launch(self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any, stream: Any = "
                "None, after: Event | Iterable[Event] = (), wait: bool = False, shared: int = 0) -> Event"),
            "Enqueues a launch on `stream`, else on the current stream of the kernel's device, after the events of "
            "`after` and whatever its arrays ask for. `grid`: blocks, `block`: threads of each, along up to three "
            "axes; "
            "`shared`: bytes of shared memory of each block. Numbers are converted as the signature says; one that is "
            "out "
            "of range is an ArgumentError. Returns once enqueued, unless `wait`.")
        .def("__getitem__", configured, nb::arg("config").none(),
             nb::sig("def __getitem__(self, config: tuple[Any, ...], /) -> Callable[..., Event]"),
             "k[grid, block, stream, shared](*args): the same, in Numba's order.")
        .def_prop_ro(
            "name", [](const py_kernel& self) { return self.code.name(); }, "As it was given.")
        .def_prop_ro(
            "device", [](const py_kernel& self) { return self.code.device(); }, "The device that it is loaded on.")
        .def_prop_ro(
            "max_threads_per_block", [](const py_kernel& self) { return self.code.max_threads_per_block(); },
            "The most threads of a block with which it can be launched.")
        .def_prop_ro(
            "handle", [](const py_kernel& self) { return reinterpret_cast<std::uintptr_t>(self.code.handle()); },
            "The driver's handle, a CUfunction.")
        .def("__repr__", repr);
}

}  // namespace weir::python
