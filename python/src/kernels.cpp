// Kernels for CUDA devices.
#include "weir/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "kernel_launch.hpp"
#include "labelling.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

device cuda_device(nb::handle argument) {
    if (!argument.is_none()) {
        return device_from(argument);
    }
    const device current = innermost_stream().device();
    return current.kind() == device_kind::cuda ? current : released([] { return cuda(); });
}

std::string source_from(nb::handle argument) {
    return std::string(text_from(argument, "source", "a text: the CUDA C++ source"));
}
std::string name_from(nb::handle argument) {
    return std::string(text_from(argument, "name", "a text: the kernel's name"));
}
std::string signature_from(nb::handle argument) {
    return std::string(text_from(argument, "signature", "a text such as \"in float* x, inout float* y, int64 n\""));
}

py_kernel from_source(nb::handle source_, nb::handle name_, nb::handle signature_, nb::handle options_, nb::handle on) {
    const std::string source = source_from(source_);
    const std::string name = name_from(name_);
    const std::string signature = signature_from(signature_);
    const std::vector<std::string> options =
        texts_from(options_, "options", "a list of texts, one for each option, such as [\"-use_fast_math\"]");
    const device where = cuda_device(on);
    return py_kernel(
        released([&] { return kernel::from_source(source, name, options, where).with_signature(signature); }));
}

py_kernel from_ptx(nb::handle text_, nb::handle name_, nb::handle signature_, nb::handle on) {
    const std::string text(text_from(text_, "text", "a text: PTX"));
    const std::string name = name_from(name_);
    const std::string signature = signature_from(signature_);
    const device where = cuda_device(on);
    return py_kernel(released([&] { return kernel::from_ptx(text, name, where).with_signature(signature); }));
}

py_kernel from_cubin(nb::handle image, nb::handle name_, nb::handle signature_, nb::handle on) {
    if (PyBytes_Check(image.ptr()) == 0) {
        refuse_type(image, "image", "bytes: a cubin, or a fat binary");
    }
    const auto bytes = std::as_bytes(
        std::span(PyBytes_AS_STRING(image.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(image.ptr()))));
    const std::string name = name_from(name_);
    const std::string signature = signature_from(signature_);
    const device where = cuda_device(on);
    return py_kernel(released([&] { return kernel::from_cubin(bytes, name, where).with_signature(signature); }));
}

}  // namespace

void bind_kernels(nb::module_& m) {
    make_launcher_type();
    nb::class_<py_kernel>(
        m, "Kernel", nb::is_weak_referenceable(),
        "A kernel for one CUDA device, compiled by NVRTC, or taken from the cache of compiled kernels, and "
        "loaded when it is made, which may wait for all work of the device: make it before work that waits for the "
        "host.\n\n"
        "`signature` declares the parameters: \"in float* x, inout float* y, float a, int64 n\"; types have "
        "names of C++ or NumPy, void* is\nany array, and \"struct point p\" a structure by value: of ctypes, "
        "a record of NumPy, or bytes. What it says is used for order: no launch "
        "waits for anything else.\n\n"
        ">>> axpy = weir.Kernel(source, \"axpy\", \"in float* x, inout float* y, float a, int64 n\")\n"
        ">>> e = axpy.launch(blocks, 256, x, y, 2.0, n, stream=s)\n"
        ">>> e = axpy[blocks, 256, s](x, y, 2.0, n)\n")
        .def(
            "__init__",
            [](py_kernel* self, nb::handle source, nb::handle name, nb::handle signature, nb::handle options,
               nb::handle on) { new (self) py_kernel(from_source(source, name, signature, options, on)); },
            nb::arg("source").none(), nb::arg("name").none(), nb::arg("signature").none(), nb::kw_only(),
            nb::arg("options").none() = nb::make_tuple(), nb::arg("device").none() = nb::none(),
            nb::sig(
                "def __init__(self, source: str, name: str, signature: str, *, options: Sequence[str] = (), device: "
                "Device | str | None = None) -> None"),
            "`options` are NVRTC's, each a text of its own. Blocks while it compiles. Raises ArgumentError with the "
            "log "
            "of what does not compile, MissingLibrary without NVRTC, DeviceError without a CUDA device.")
        .def_static(
            "from_ptx", from_ptx, nb::arg("text").none(), nb::arg("name").none(), nb::arg("signature").none(),
            nb::kw_only(), nb::arg("device").none() = nb::none(),
            nb::sig("def from_ptx(text: str, name: str, signature: str, *, device: Device | str | None = None) -> "
                    "Kernel"),
            "The kernel of PTX, compiled by the driver. `name` is the symbol.")
        .def_static(
            "from_cubin", from_cubin, nb::arg("image").none(), nb::arg("name").none(), nb::arg("signature").none(),
            nb::kw_only(), nb::arg("device").none() = nb::none(),
            nb::sig("def from_cubin(image: bytes, name: str, signature: str, *, device: Device | str | None = None) "
                    "-> Kernel"),
            "The kernel of machine code for the device: a cubin, or a fat binary.")
        .def(
            "launch",
            [](const py_kernel& self, nb::handle grid, nb::handle block, nb::args args, nb::handle on, nb::handle after,
               nb::handle wait, nb::handle shared, nb::handle cluster, nb::handle cooperative, nb::handle reads,
               nb::handle writes, nb::handle label) {
                const labelled named(label);
                const launch_config config =
                    config_from(self, {grid, block, shared, cluster, flag_from(cooperative, "cooperative")});
                return launch(self, {config, on, after, flag_from(wait, "wait"), reads, writes},
                              {reinterpret_cast<PyTupleObject*>(args.ptr())->ob_item, args.size()});
            },
            nb::arg("grid").none(), nb::arg("block").none(), nb::arg("args"), nb::kw_only(),
            nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
            nb::arg("wait").none() = false, nb::arg("shared").none() = 0, nb::arg("cluster").none() = nb::none(),
            nb::arg("cooperative").none() = false, nb::arg("reads").none() = nb::make_tuple(),
            nb::arg("writes").none() = nb::make_tuple(), nb::arg("label").none() = nb::none(),
            nb::sig(
                "def launch(self, grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any, stream: Any = "
                "None, after: Event | Iterable[Event] = (), wait: bool = False, shared: int = 0, cluster: int | "
                "tuple[int, ...] | "
                "None = None, cooperative: bool = False, reads: Any = (), writes: Any = (), label: str | None = None) "
                "-> Event"),
            "Enqueues a launch on `stream`, else on the current stream of the kernel's device, after the events of "
            "`after` and whatever its arrays ask for. `grid`: blocks, `block`: threads of each, along up to three "
            "axes; "
            "`shared`: bytes of shared memory of each block; `cluster`: blocks of each thread block cluster; "
            "`cooperative`: all blocks run at the same time, so that they may wait for each other. None is an array "
            "that the kernel does without: it gets a null pointer. Numbers are converted as the signature says; one "
            "that is "
            "out "
            "of range is an ArgumentError. `reads`, `writes`: tokens, and arrays that the kernel reaches in another "
            "way than "
            "by its arguments. `label`: the operation's name in errors, reports and timelines, instead of the "
            "kernel's. "
            "Returns once enqueued, unless `wait`.")
        .def("__getitem__", launcher_of, nb::arg("config").none(),
             nb::sig("def __getitem__(self, config: tuple[Any, ...], /) -> Callable[..., Event]"),
             "k[grid, block, stream, shared](*args): the same, in Numba's order.")
        .def_prop_ro(
            "name", [](const py_kernel& self) { return self.code.name(); }, "As it was given.")
        .def_prop_ro(
            "device", [](const py_kernel& self) { return self.code.device(); }, "The device that it is loaded on.")
        .def_prop_ro(
            "max_threads_per_block", [](const py_kernel& self) { return self.code.max_threads_per_block(); },
            "The most threads of a block with which it can be launched.")
        .def(
            "max_cooperative_blocks",
            [](const py_kernel& self, nb::handle block, nb::handle shared) {
                const dimensions threads = dimensions_from(block, "block");
                const std::size_t bytes = shared_bytes_from(shared);
                return released([&] { return self.code.max_cooperative_blocks(threads, bytes); });
            },
            nb::arg("block").none(), nb::kw_only(), nb::arg("shared").none() = 0,
            nb::sig("def max_cooperative_blocks(self, block: int | tuple[int, ...], *, shared: int = 0) -> int"),
            "The largest grid of a cooperative launch with blocks of `block` threads: the blocks that the idle device "
            "runs at the same time; 0 if it has no cooperative launch.")
        .def_prop_ro(
            "handle", [](const py_kernel& self) { return reinterpret_cast<std::uintptr_t>(self.code.handle()); },
            "The driver's handle, a CUfunction.")
        .def("__repr__", repr);
}

}  // namespace weir::python
