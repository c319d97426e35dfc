// k[grid, block, stream, shared]: a type of its own, so that calls of it read their arguments where the interpreter keeps them.
#include "bind.hpp"

#include <structmember.h>

#include <cstddef>
#include <span>
#include <string>

#include "errors.hpp"
#include "kernel_launch.hpp"
#include "weir/error.hpp"

namespace weir::python {

namespace {

struct launcher {
    PyObject ob_base;  ///< as all objects begin
    vectorcallfunc call;
    PyObject* kernel;
    PyObject* on;
    launch_config config;
};

/// Lives as long as the interpreter.
PyTypeObject* launcher_type = nullptr;

PyObject* call_launcher(PyObject* self, PyObject* const* arguments, std::size_t count, PyObject* keywords) noexcept {
    try {
        if (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) {
            throw argument_type_error(
                "k[grid, block](...) takes the arguments of the kernel alone: pass after= and wait= to k.launch(grid, "
                "block, ...)");
        }
        const auto& its = *reinterpret_cast<const launcher*>(self);
        return launch(*nb::inst_ptr<py_kernel>(its.kernel), {its.config, its.on, nb::handle(Py_None), false},
                      std::span(arguments, static_cast<std::size_t>(PyVectorcall_NARGS(count))))
            .release()
            .ptr();
    } catch (...) {
        raise_handled();
        return nullptr;
    }
}

void delete_launcher(PyObject* self) noexcept {
    auto* const its = reinterpret_cast<launcher*>(self);
    Py_DECREF(its->kernel);
    Py_DECREF(its->on);
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

}  // namespace

void make_launcher_type() {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(launcher, call), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(delete_launcher)},
        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
        {Py_tp_members, members},
        {Py_tp_doc, const_cast<char*>("A kernel with a grid and a block, and perhaps a stream: call it to launch.")},
        {0, nullptr},
    };
    static PyType_Spec spec = {"weir._weir._Launcher", sizeof(launcher), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               slots};
    launcher_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (launcher_type == nullptr) {
        nb::raise_python_error();
    }
}

nb::object launcher_of(nb::handle kernel, nb::handle index) {
    if (PyTuple_Check(index.ptr()) == 0 || nb::len(index) < 2 || nb::len(index) > 4) {
        throw argument_error(
            "a kernel is launched as k[grid, block](...), k[grid, block, stream](...) or k[grid, block, "
            "stream, shared](...), and got [" +
            repr_of(index) + "]");
    }
    const std::size_t count = nb::len(index);
    const nb::object shared = count > 3 ? nb::object(index[3]) : nb::object(nb::int_(0));
    const launch_config config =
        config_from(nb::cast<const py_kernel&>(kernel), {nb::object(index[0]), nb::object(index[1]), shared});
    nb::object on = count > 2 ? nb::object(index[2]) : nb::object(nb::none());
    auto* const made = PyObject_New(launcher, launcher_type);
    if (made == nullptr) {
        nb::raise_python_error();
    }
    made->call = call_launcher;
    made->kernel = nb::borrow(kernel).release().ptr();
    made->on = on.release().ptr();
    made->config = config;
    return nb::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace weir::python
