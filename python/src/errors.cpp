#include "errors.hpp"

#include <array>
#include <string>
#include <string_view>

#include "failures.hpp"
#include "weir/error.hpp"
#include "wording.hpp"

namespace weir::python {

namespace {

enum kind : std::size_t {
    any,
    argument,
    argument_index,
    argument_type,
    state,
    out_of_memory_kind,
    exchange,
    copy,
    operation,
    race,
    device,
    missing_library_kind,
    kinds
};

/// The classes, for the translator. They live as long as the interpreter.
std::array<PyObject*, kinds> classes{};

void add(nb::module_& m, kind which, const char* name, const char* doc, PyObject* builtin, kind parent = any) {
    PyObject* const first = which == any ? builtin : classes[parent];
    const nb::object bases = which == any ? nb::object(nb::borrow(builtin))
                                          : nb::object(nb::make_tuple(nb::borrow(first), nb::borrow(builtin)));
    const std::string full = std::string("weir.") + name;
    PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
    if (made == nullptr) {
        nb::raise_python_error();
    }
    classes[which] = made;
    m.attr(name) = nb::borrow(made);
}

void raise(kind which, const weir::error& error) {
    PyErr_SetString(classes[which], in_words_of_python(error.what()).c_str());
}

/// What a host task raised is the cause.
void set_cause(const nb::object& of, const std::exception_ptr& reason) {
    if (!reason) {
        return;
    }
    try {
        std::rethrow_exception(reason);
    } catch (const python_failure& failure) {
        PyException_SetCause(of.ptr(), nb::borrow(failure.raised()).release().ptr());
    } catch (...) {  // the message says all that is known of it
    }
}

void raise_operation_error(const operation_error& error) {
    const nb::object made = nb::borrow(classes[operation])(in_words_of_python(error.what()));
    made.attr("label") = error.label();
    made.attr("file") = error.where().file;
    made.attr("line") = error.where().line;
    set_cause(made, error.reason());
    PyErr_SetObject(classes[operation], made.ptr());
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
    try {
        std::rethrow_exception(thrown);
    } catch (const operation_error& error) {
        raise_operation_error(error);
    } catch (const index_error& error) {
        raise(argument_index, error);
    } catch (const copy_error& error) {
        raise(copy, error);
    } catch (const exchange_error& error) {
        raise(exchange, error);
    } catch (const argument_error& error) {
        raise(argument, error);
    } catch (const argument_type_error& error) {
        raise(argument_type, error);
    } catch (const state_error& error) {
        raise(state, error);
    } catch (const out_of_memory& error) {
        raise(out_of_memory_kind, error);
    } catch (const race_error& error) {
        raise(race, error);
    } catch (const device_error& error) {
        raise(device, error);
    } catch (const missing_library& error) {
        raise(missing_library_kind, error);
    } catch (const weir::error& error) {
        raise(any, error);
    }
}

}  // namespace

nb::object exception_in(const nb::python_error& raised) {
#if PY_VERSION_HEX >= 0x030C0000
    return nb::borrow(raised.value());
#else
    PyObject* type = nb::borrow(raised.type()).release().ptr();
    PyObject* value = nb::borrow(raised.value()).release().ptr();
    PyObject* trace = nb::borrow(raised.traceback()).release().ptr();
    PyErr_NormalizeException(&type, &value, &trace);
    const nb::object kind = nb::steal(type);
    nb::object made = nb::steal(value);
    const nb::object traceback = nb::steal(trace);
    if (traceback.is_valid()) {
        PyException_SetTraceback(made.ptr(), traceback.ptr());
    }
    return made;
#endif
}

void raise_exchange_error(const std::string& message, const nb::python_error& cause) {
    const nb::object made = nb::borrow(classes[exchange])(in_words_of_python(message.c_str()));
    PyException_SetCause(made.ptr(), exception_in(cause).release().ptr());
    PyErr_SetObject(classes[exchange], made.ptr());
    throw nb::python_error();
}

bool is_of_weir(const nb::python_error& raised) noexcept { return raised.matches(classes[any]); }

void raise_handled() noexcept {
    try {
        try {
            throw;
        } catch (nb::python_error& error) {
            error.restore();
        } catch (const weir::error&) {  // before what its kinds are in the standard library
            translate(std::current_exception(), nullptr);
        } catch (const std::bad_alloc&) {
            PyErr_NoMemory();
        }
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown type");
    }
}

void bind_errors(nb::module_& m) {
    add(m, any, "Error",
        "Base of everything that Weir raises. The message says what was given, what is wanted, what to call.",
        PyExc_Exception);
    add(m, argument, "ArgumentError",
        "A value that the call cannot take: a bad shape, a stream of another device, an unknown name.",
        PyExc_ValueError);
    add(m, argument_index, "ArgumentIndexError", "An index that the array has not.", PyExc_IndexError, argument);
    add(m, argument_type, "ArgumentTypeError",
        "A type that the call cannot take: an element type, an object that is no stream.", PyExc_TypeError);
    add(m, state, "StateError",
        "The object is no longer, or not yet, in a state for this call: a closed stream, a released operand.",
        PyExc_RuntimeError);
    add(m, out_of_memory_kind, "OutOfMemory",
        "No memory is left, after everything that could be given back was given back. Names the sizes.",
        PyExc_MemoryError);
    add(m, exchange, "ExchangeError", "Memory cannot be exchanged with another package in the way that was asked for.",
        PyExc_BufferError);
    add(m, copy, "CopyError", "The exchange needs a copy, and copy=False forbids it.", PyExc_ValueError, exchange);
    add(m, operation, "OperationError",
        "An operation failed while it ran; found when its result, its event or its stream was asked for. `label`, "
        "`file` and "
        "`line` say which call enqueued it.",
        PyExc_RuntimeError);
    nb::borrow(classes[operation]).attr("label") = "operation";
    nb::borrow(classes[operation]).attr("file") = "";
    nb::borrow(classes[operation]).attr("line") = 0;
    add(m, race, "RaceError",
        "`check` in its mode \"raise\" found a race. The operation of the call is enqueued, safely: calling again "
        "would do it twice.",
        PyExc_RuntimeError);
    add(m, device, "DeviceError", "The device or its driver failed.", PyExc_RuntimeError);
    add(m, missing_library_kind, "MissingLibrary",
        "A library that is opened at run time is not there. The message says which package has it.", PyExc_ImportError);
    nb::register_exception_translator(translate);
    m.def("_in_words_of_python", in_words_of_python);
}

}  // namespace weir::python
