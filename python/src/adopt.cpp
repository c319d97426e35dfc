// Streams of other packages (rule S5).
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "devices.hpp"
#include "events.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

/// What a stream of another package says of itself.
struct foreign_stream {
    std::uintptr_t handle = 0;
    std::optional<int> device_id;
};

std::uintptr_t handle_from(nb::handle number, nb::handle of) {
    const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
    if (!index.is_valid()) {
        PyErr_Clear();
        throw argument_type_error("the handle of " + repr_of(of) + " is " + repr_of(number) + ", which is no integer");
    }
    const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        throw argument_error("a stream cannot have the handle " + repr_of(number) +
                             ": pass the driver's handle, or 0, 1 (the legacy default stream) or 2 (the thread's)");
    }
    return static_cast<std::uintptr_t>(value);
}

std::optional<int> device_id_from(nb::handle argument) {
    for (const char* const name : {"device_id", "device_index"}) {
        if (nb::hasattr(argument, name)) {
            const nb::object id = argument.attr(name);
            if (PyLong_Check(id.ptr()) != 0) {
                return nb::cast<int>(id);
            }
        }
    }
    return std::nullopt;
}

/// Nothing if it is no stream of any package.
std::optional<foreign_stream> read(nb::handle argument) {
    if (nb::hasattr(argument, "__cuda_stream__")) {
        // A method, as the protocol has it, or a tuple, as its first users had it.
        nb::object answer = argument.attr("__cuda_stream__");
        if (PyCallable_Check(answer.ptr()) != 0) {
            answer = answer();
        }
        if (nb::len_hint(answer) != 2) {
            throw argument_type_error("__cuda_stream__ of " + repr_of(argument) + " gives " + repr_of(answer) +
                                      ", not (version, handle)");
        }
        return foreign_stream{handle_from(answer[1], argument), device_id_from(argument)};
    }
    for (const char* const name : {"cuda_stream", "ptr", "handle"}) {
        if (nb::hasattr(argument, name)) {
            nb::object handle = argument.attr(name);
            if (nb::hasattr(handle, "value")) {  // of ctypes, as Numba has it
                handle = handle.attr("value");
                if (handle.is_none()) {
                    return foreign_stream{0, device_id_from(argument)};
                }
            }
            return foreign_stream{handle_from(handle, argument), device_id_from(argument)};
        }
    }
    return std::nullopt;
}

}  // namespace

bool is_integer(nb::handle argument) {
    return PyIndex_Check(argument.ptr()) != 0 && PyBool_Check(argument.ptr()) == 0 &&
           PySequence_Check(argument.ptr()) == 0;
}

stream adopt(nb::handle argument, std::optional<device> on, nb::handle owner) {
    if (nb::isinstance<stream>(argument)) {
        stream own = nb::cast<stream>(argument);
        if (!own) {
            throw state_error(repr_of(argument) + " is closed: use another stream");
        }
        return own;
    }
    if (nb::isinstance<py_event>(argument)) {  // which has a handle as well
        throw argument_type_error(repr_of(argument) +
                                  " is no stream: pass the stream, and let it wait with stream.wait(event) first");
    }
    foreign_stream found;
    nb::object keep = nb::borrow(owner);
    if (const std::optional<foreign_stream> its = PyLong_Check(argument.ptr()) != 0 ? std::nullopt : read(argument)) {
        found = *its;
        if (owner.is_none()) {
            keep = nb::borrow(argument);
        }
    } else if (is_integer(argument)) {
        found.handle = handle_from(argument, argument);
    } else {
        throw argument_type_error(repr_of(argument) +
                                  " is no stream: pass a weir.Stream, a stream of torch, CuPy, Numba or cuda.core, or "
                                  "its handle as an integer");
    }
    std::shared_ptr<void> kept;
    if (!keep.is_none()) {
        kept = std::make_shared<reference>(std::move(keep));
    }
    return released([&] {
        const device where = on ? *on : cuda(found.device_id.value_or(0));
        return stream::adopt(native_stream{reinterpret_cast<void*>(found.handle)}, where, std::move(kept));
    });
}

}  // namespace weir::python
