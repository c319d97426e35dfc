// Kernels for CUDA devices.
#include "weir/kernel.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "interpreter.hpp"
#include "kernel_launch.hpp"
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
    make_launcher_type();
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
                return launch(self, {shape_from(self, grid, block, shared), on, after, wait},
                              {reinterpret_cast<PyTupleObject*>(args.ptr())->ob_item, args.size()});
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
        .def_prop_ro(
            "handle", [](const py_kernel& self) { return reinterpret_cast<std::uintptr_t>(self.code.handle()); },
            "The driver's handle, a CUfunction.")
        .def("__repr__", repr);
}

}  // namespace weir::python
