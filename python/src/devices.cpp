#include "devices.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "dtypes.hpp"
#include "interpreter.hpp"
#include "site.hpp"
#include "weir/elementwise.hpp"
#include "weir/error.hpp"
#include "weir/kernel.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

std::string kind_name(const device& of) {
    switch (of.kind()) {
        case device_kind::cpu:
            return "cpu";
        case device_kind::cpu_inline:
            return "cpu:inline";
        case device_kind::cuda:
            return "cuda";
        case device_kind::sim:
            return "sim";
        case device_kind::registered:
            return "registered";
    }
    return "unknown";
}

/// A simulated device that stands for a CUDA device is one of both kinds: a program that asks for CUDA devices finds it.
std::vector<device> devices_of_kind(nb::handle kind_) {
    std::optional<std::string> kind;
    if (!kind_.is_none()) {
        kind = text_from(kind_, "kind", "\"cpu\", \"cpu:inline\", \"cuda\", \"sim\", or nothing for all devices");
    }
    if (kind == "cpu" || kind == "cpu:inline") {
        return {kind == "cpu" ? cpu() : cpu_inline()};
    }
    if (kind && *kind != "cuda" && *kind != "sim") {
        throw argument_error("there are no devices of the kind \"" + *kind +
                             "\": pass \"cpu\", \"cpu:inline\", \"cuda\", \"sim\", or nothing for all devices");
    }
    std::vector<device> all = devices();
    if (kind) {
        std::erase_if(all, [&](const device& one) {
            return kind_name(one) != *kind && !(*kind == "cuda" && one.name().starts_with("cuda:"));
        });
    }
    return all;
}

/// The device of that name. A name in a program is usually one string object, so its address finds the device: most calls name few
/// devices.
device device_named(nb::handle name) {
    struct known_name {
        PyObject* name = nullptr;  ///< owned, so that no other name gets its address; a few for each thread, for ever
        std::optional<device> of;
    };
    thread_local std::array<known_name, 8> known;
    known_name& entry = known[reinterpret_cast<std::uintptr_t>(name.ptr()) / 16 % known.size()];
    if (entry.name != name.ptr()) {
        const std::optional<std::string_view> said = text_in(name);
        const std::string text = said ? std::string(*said) : repr_of(name);
        const device found = released([&] { return device::from_name(text); });
        Py_INCREF(name.ptr());
        Py_XDECREF(entry.name);
        entry = {name.ptr(), found};
    }
    return *entry.of;
}

}  // namespace

device device_from(nb::handle argument) {
    if (argument.is_none()) {
        return innermost_stream().device();
    }
    if (PyUnicode_Check(argument.ptr()) != 0) {
        return device_named(argument);
    }
    if (nb::isinstance<device>(argument)) {
        return nb::cast<device>(argument);
    }
    if (const nb::object name(nb::module_::import_("weir._packages").attr("device_name_of")(argument));
        !name.is_none()) {
        return device_named(name);
    }
    throw argument_type_error("device is " + repr_of(argument) +
                              ": pass a weir.Device or a name such as \"cpu\", \"sim:0\" or \"cuda:0\"");
}

void bind_devices(nb::module_& m) {
    nb::class_<device> cls(m, "Device",
                           "A device by its name: \"cpu\", \"cpu:inline\", \"sim:0\", \"cuda:0\".\n\n"
                           ">>> weir.Device(\"sim:0\").kind\n'sim'\n");
    cls.def(
           "__init__",
           [](device* self, nb::handle name) {
               if (name.is_none()) {
                   throw argument_type_error("Device() got None: pass a name such as \"cpu\", \"sim:0\" or \"cuda:0\"");
               }
               new (self) device(device_from(name));
           },
           nb::arg("name").none(), nb::sig("def __init__(self, name: Device | str) -> None"),
           "The device of that name. Raises ArgumentError, which lists the names that there are; DeviceError if there "
           "is no "
           "driver for it.")
        .def_prop_ro("kind", kind_name, "\"cpu\", \"cpu:inline\", \"cuda\" or \"sim\".")
        .def_prop_ro("id", &device::id, "The number among the devices of its kind, from 0.")
        .def_prop_ro("name", &device::name, "\"cpu\", \"cpu:inline\", \"sim:0\", \"cuda:0\".")
        .def(
            "synchronize", [](const device& self) { waiting([&, where = here()] { self.synchronize(where); }); },
            "Blocks until everything that was enqueued before the call, on every stream of this device, is over. "
            "Raises "
            "OperationError if any of it failed and no call has raised that yet. What other code put into the "
            "per-thread default stream of another thread (handle 2) is that thread's own to wait for.")
        .def(
            "prepare",
            [](const device& self, const nb::args& what) {
                std::vector<dtype> types;
                for (const nb::handle one : what) {
                    if (nb::isinstance<elementwise_kernel>(one) || nb::isinstance<kernel>(one)) {
                        throw argument_type_error(
                            "prepare() got " + repr_of(one) +
                            ": pass element types such as \"float16\"; a Kernel is loaded when it is made, and an "
                            "element-wise kernel by its own prepare(*inputs)");
                    }
                    types.push_back(dtype_from(one));
                }
                released([&] { self.prepare(types); });
            },
            nb::arg("what"), nb::sig("def prepare(self, *what: Any) -> None"),
            "Loads the kernels of operations on arrays of these element types, so that the first use of each neither "
            "compiles nor loads, which could wait for all work of a CUDA device. Without types: those that a CUDA "
            "device gets when it is opened (packed arrays of bool, int32, int64, float32 and float64; copies). With a "
            "type: also for arrays of any strides with up to two dimensions; with several: also for operators between "
            "arrays of two of them. Blocks until it is done: a second or more for each type if the folder of compiled "
            "kernels does not have them. Does nothing on other devices than "
            "CUDA's.\n\n"
            ">>> weir.Device(\"cpu\").prepare(\"float16\")\n")
        .def("__repr__", [](const device& self) { return in_words_of_python(self.to_string()); })
        .def("__str__", &device::name)
        .def(
            "__eq__",
            [](const device& self, nb::handle other) {
                return nb::isinstance<device>(other) && nb::cast<device>(other) == self;
            },
            nb::arg("other").none())
        .def("__hash__", [](const device& self) { return std::hash<device>()(self); })
        .def("__reduce__",
             [](const device& self) { return nb::make_tuple(nb::type<device>(), nb::make_tuple(self.name())); });
    m.def(
        "synchronize",
        [](nb::handle of) {
            if (of.is_none()) {
                waiting([where = here()] { synchronize(where); });
            } else {
                const device one = device_from(of);
                waiting([&, where = here()] { one.synchronize(where); });
            }
        },
        nb::arg("device").none() = nb::none(), nb::sig("def synchronize(device: Device | str | None = None) -> None"),
        "Blocks until everything that was enqueued before the call on the device is over; without one, on every device "
        "that is open. Raises OperationError if any of it failed and no call has raised that yet.");
    m.def("devices", devices_of_kind, nb::arg("kind").none() = nb::none(),
          nb::sig("def devices(kind: str | None = None, /) -> list[Device]"),
          "All devices, or those of a kind: the CPU, \"cpu:inline\", each CUDA device or what stands for it "
          "(WEIR_SIMULATE), and the simulated ones that were asked for. "
          "Opens none of them: a CUDA device is opened, which takes time, and memory there, by its first use.");
}

}  // namespace weir::python
