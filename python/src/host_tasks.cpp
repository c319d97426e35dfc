// Python functions as operations of streams.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "failures.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "task_views.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

/// Calls a Python function in a stream, on a thread of Weir's.
class python_task {
public:
    /// `call`: the function, and a tuple of its arguments; operands among them are In(x), Out(x) or InOut(x).
    python_task(reference call, const runtime::site& site) noexcept : call_(std::move(call)), site_(site) {}

    void operator()() {
        const task_visit inside(site_.label, site_.where);
        const nb::gil_scoped_acquire gil;
        const nb::handle call = call_.get();
        const nb::handle given = PyTuple_GET_ITEM(call.ptr(), 1);
        const Py_ssize_t count = PyTuple_GET_SIZE(given.ptr());
        const nb::object arguments = nb::steal(PyTuple_New(count));
        if (!arguments.is_valid()) {
            throw python_failure::caught();
        }
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyTuple_SET_ITEM(arguments.ptr(), i, in_task(PyTuple_GET_ITEM(given.ptr(), i)).release().ptr());
        }
        nb::object result = nb::steal(PyObject_Call(PyTuple_GET_ITEM(call.ptr(), 0), arguments.ptr(), nullptr));
        if (!result.is_valid()) {
            throw python_failure::caught();
        }
        // Not ended here: its destructor may wait for the very stream that this runs in.
        const reference later(std::move(result));
    }

private:
    static nb::object in_task(nb::handle argument) {
        if (!nb::isinstance<declared_use>(argument)) {
            return nb::borrow(argument);
        }
        const auto& operand = nb::cast<const declared_use&>(argument);
        try {
            return task_view(operand.of, operand.use != operand_use::in);
        } catch (nb::python_error& error) {
            error.restore();
        }
        throw python_failure::caught();
    }

    reference call_;
    runtime::site site_;
    expected_visit expected_;
};

/// Arrays that `reads=` or `writes=` lists: one, or any number of them.
std::vector<nb::object> listed(nb::handle list, const char* name) {
    std::vector<nb::object> all;
    if (list.is_none()) {
        return all;
    }
    if (nb::isinstance<array>(list) || !nb::hasattr(list, "__iter__")) {
        static_cast<void>(array_from(list, name));
        all.push_back(nb::borrow(list));
        return all;
    }
    for (const nb::handle one : list) {
        static_cast<void>(array_from(one, name));
        all.push_back(nb::borrow(one));
    }
    return all;
}

bool contains(const std::vector<nb::object>& list, nb::handle one) {
    for (const nb::object& each : list) {
        if (each.is(one)) {
            return true;
        }
    }
    return false;
}

struct operands {
    std::vector<runtime::access_request> accesses;
    const array* first = nullptr;

    void add(nb::handle of, operand_use use) {
        const array& x = nb::cast<const array&>(of);
        accesses.push_back(access_of(x, use));
        if (first == nullptr) {
            first = &x;
        }
    }
};

/// An array that is neither wrapped nor listed counts as read and written.
operand_use use_of(nb::handle x, const std::vector<nb::object>& reads, const std::vector<nb::object>& writes) {
    return contains(reads, x) && !contains(writes, x) ? operand_use::in : operand_use::inout;
}

const char* label_of(nb::handle fn) {
    for (const char* const name : {"__qualname__", "__name__"}) {
        const nb::object text = nb::getattr(fn, name, nb::none());
        if (PyUnicode_Check(text.ptr()) != 0) {
            return interned(nb::cast<std::string_view>(text));
        }
    }
    return "host task";
}

nb::object host_task(nb::handle fn, nb::args args, nb::handle reads, nb::handle writes, nb::handle on, nb::handle after,
                     nb::handle wait_) {
    if (PyCallable_Check(fn.ptr()) == 0) {
        throw argument_type_error("host_task() got " + std::string(nb::repr(fn).c_str()) +
                                  ", which cannot be called: pass a function, and its arguments after it");
    }
    const bool wait = flag_from(wait_, "wait");
    const source_location where = here();
    const std::vector<nb::object> read = listed(reads, "reads=");
    const std::vector<nb::object> written = listed(writes, "writes=");

    operands found;
    const std::size_t count = args.size();
    nb::object passed = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!passed.is_valid()) {
        nb::raise_python_error();
    }
    std::vector<nb::object> seen;
    for (std::size_t i = 0; i < count; ++i) {
        nb::object argument = nb::borrow(args[i]);
        if (nb::isinstance<array>(argument)) {
            argument = operand_object(argument, use_of(argument, read, written));
        }
        if (nb::isinstance<declared_use>(argument)) {
            const auto& operand = nb::cast<const declared_use&>(argument);
            found.add(operand.of, operand.use);
            seen.push_back(operand.of);
            expect_task_view(operand.of);
        }
        PyTuple_SET_ITEM(passed.ptr(), static_cast<Py_ssize_t>(i), argument.release().ptr());
    }
    for (const std::vector<nb::object>& list : {read, written}) {
        for (const nb::object& one : list) {
            if (!contains(seen, one)) {
                found.add(one, use_of(one, read, written));
                seen.push_back(one);
            }
        }
    }

    const stream to =
        stream_from(on, on.is_none() && found.first != nullptr ? std::optional(found.first->device()) : std::nullopt);
    const std::vector<completion> dependencies = completions_from(after);
    const runtime::site site{label_of(fn), where};
    // The listed arrays are kept as well: what an operation uses lives until it is over.
    python_task task{reference(nb::make_tuple(nb::borrow(fn), passed, nb::cast(seen))), site};
    const completion done = released([&] {
        return weir::detail::with_task(std::move(task), [&](weir::detail::task_ref work) {
            return runtime::submit(to.state(),
                                   {found.accesses, dependencies, work, site, runtime::work_kind::host_task});
        });
    });
    if (wait) {
        waiting([&] { done.synchronize(where); });
    }
    return event_of(done, to);
}

}  // namespace

void bind_host_tasks(nb::module_& m) {
    bind_task_views(m);
    m.def(
        "host_task", host_task, nb::arg("fn").none(), nb::arg("args"), nb::kw_only(),
        nb::arg("reads").none() = nb::make_tuple(), nb::arg("writes").none() = nb::make_tuple(),
        nb::arg("stream").none() = nb::none(), nb::arg("after").none() = nb::make_tuple(),
        nb::arg("wait").none() = false,
        nb::sig("def host_task(fn: Callable[..., object], /, *args: Any, reads: Array | Iterable[Array] = (), writes: "
                "Array | Iterable[Array] = (), stream: Any = None, after: Event | Iterable[Event] = (), wait: bool = "
                "False) -> Event"),
        "Enqueues `fn(*args)` as an operation of a stream: of `stream`, else of the current stream of the first "
        "array's device,\nelse of the current stream. It runs on a thread of its own, may block, and may enqueue "
        "work; it must not wait for its\nown stream.\n\n"
        "Arrays of the CPU arrive as NumPy arrays over the same memory, which must not be used once the function "
        "has returned;\narrays of other devices arrive as they are. An array counts as read and written, unless it "
        "is wrapped in In, Out or InOut,\nor listed in `reads`; arrays that the function uses without being passed "
        "them are listed in `reads` or `writes`.\n\n"
        "An exception fails the operation: whoever waits for it gets an OperationError, whose `__cause__` is the "
        "exception.\n`wait`: blocks until the operation is over.\n\n"
        ">>> x = weir.zeros(4)\n>>> def fill(values):\n...     values[:] = 7\n>>> e = weir.host_task(fill, "
        "weir.Out(x))\n>>> x.numpy()\narray([7., 7., 7., 7.])\n");
}

}  // namespace weir::python
