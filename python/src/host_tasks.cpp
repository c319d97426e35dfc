// Python functions as operations of streams.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "accesses.hpp"
#include "arguments.hpp"
#include "devices.hpp"
#include "events.hpp"
#include "exchange.hpp"
#include "failures.hpp"
#include "interpreter.hpp"
#include "labelling.hpp"
#include "reference.hpp"
#include "site.hpp"
#include "task_views.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/token.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

/// Calls a Python function in a stream, on a thread of Weir's.
class python_task {
public:
    /// `call`: the function, and a tuple of its arguments; operands among them are In(x), Out(x) or InOut(x).
    /// `held`: arrays whose memory the task keeps until it is over. `in`: the stream, which lives until its operations are over.
    python_task(reference call, std::vector<array> held, const runtime::site& site,
                const runtime::stream_state& in) noexcept
        : call_(std::move(call)), held_(std::move(held)), site_(site), in_(&in) {}

    void operator()() {
        const task_visit inside(site_.label, site_.where, in_);
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
        if (nb::isinstance<token>(operand.of)) {
            return operand.of;
        }
        try {
            return task_view(operand.of, operand.use != operand_use::in);
        } catch (nb::python_error& error) {
            error.restore();
        }
        throw python_failure::caught();
    }

    reference call_;
    std::vector<array> held_;
    runtime::site site_;
    const runtime::stream_state* in_;
    expected_visit expected_;
};

struct operands {
    std::vector<runtime::access_request> accesses;
    const array* first = nullptr;

    void add(nb::handle of, operand_use use) {
        accesses.push_back(access_of(of, use));
        if (first == nullptr && nb::isinstance<array>(of)) {
            first = nb::inst_ptr<array>(of);
        }
    }
};

/// The same operand; if the task gets a NumPy array for it, of another object over its memory. The task then has no part in how long the
/// program's object lives, and what check reports about that does not depend on when the task is over.
nb::object operand_of_task(const nb::object& argument, const declared_use& operand) {
    if (is_watched(operand.of)) {
        return argument;
    }
    const array& x = *nb::inst_ptr<array>(operand.of);
    return is_the_hosts(x) ? operand_object(new_object<array>(x), operand.use) : argument;
}

/// Adds the array that `one` is, if it is one.
void add_array(std::vector<array>& all, nb::handle one) {
    if (const array* const x = one.is_valid() ? object_of<array>(one) : nullptr) {
        all.push_back(*x);
    }
}

/// The arrays that a function of Python owns: those of the variables around it, and its defaults.
void add_arrays_of(std::vector<array>& all, nb::handle fn) {
    if (PyFunction_Check(fn.ptr()) == 0) {
        return;
    }
    if (PyObject* const cells = PyFunction_GetClosure(fn.ptr())) {
        for (const nb::handle cell : nb::borrow<nb::tuple>(cells)) {
            add_array(all, nb::steal(PyCell_Get(cell.ptr())));
        }
    }
    if (PyObject* const defaults = PyFunction_GetDefaults(fn.ptr())) {
        for (const nb::handle one : nb::borrow<nb::tuple>(defaults)) {
            add_array(all, one);
        }
    }
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

/// Whether a call only makes an object that would run the function's body.
bool is_suspended(nb::handle fn) {
    PyObject* const function = PyMethod_Check(fn.ptr()) != 0 ? PyMethod_Function(fn.ptr()) : fn.ptr();
    if (PyFunction_Check(function) == 0) {
        return false;
    }
    const auto* const code = reinterpret_cast<const PyCodeObject*>(PyFunction_GetCode(function));
    return (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
}

nb::object host_task(nb::handle fn, nb::args args, nb::handle reads, nb::handle writes, nb::handle on, nb::handle after,
                     nb::handle wait_, nb::handle label) {
    const labelled named(label);
    if (PyCallable_Check(fn.ptr()) == 0) {
        throw argument_type_error("host_task() got " + repr_of(fn) +
                                  ", which cannot be called: pass a function, and its arguments after it");
    }
    if (is_suspended(fn)) {
        throw argument_type_error("host_task() got " + repr_of(fn) +
                                  ", an async function or a generator: a call of it runs nothing; pass a function that "
                                  "does the work, such as lambda: asyncio.run(f())");
    }
    const bool wait = flag_from(wait_, "wait");
    const source_location where = here();
    const std::vector<nb::object> read = listed_operands(reads, "reads=", where);
    const std::vector<nb::object> written = listed_operands(writes, "writes=", where);

    operands found;
    const std::size_t count = args.size();
    nb::object passed = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!passed.is_valid()) {
        nb::raise_python_error();
    }
    std::vector<nb::object> seen;
    for (std::size_t i = 0; i < count; ++i) {
        nb::object argument = nb::borrow(args[i]);
        if (nb::isinstance<array>(argument) || nb::isinstance<token>(argument)) {
            argument = operand_object(argument, use_of(argument, read, written));
        }
        if (nb::isinstance<declared_use>(argument)) {
            const auto& operand = nb::cast<const declared_use&>(argument);
            found.add(operand.of, operand.use);
            seen.push_back(operand.of);
            if (nb::isinstance<array>(operand.of)) {
                expect_task_view(operand.of);
                argument = operand_of_task(argument, operand);
            }
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
    const char* const its_label = current_label();
    const runtime::site site{its_label != nullptr ? its_label : label_of(fn), where};
    // The listed arrays are kept as well: what an operation uses lives until it is over.
    std::vector<array> held;
    add_arrays_of(held, fn);
    nb::list others;
    for (const nb::object& one : seen) {
        add_array(held, one);
        if (is_watched(one)) {
            others.append(one);
        }
    }
    python_task task{reference(nb::make_tuple(nb::borrow(fn), passed, others)), std::move(held), site,
                     to.state(detail::key)};
    const completion done = released([&] {
        return weir::detail::with_task(std::move(task), [&](weir::detail::task_ref work) {
            return runtime::submit(to.state(detail::key),
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
        nb::arg("wait").none() = false, nb::arg("label").none() = nb::none(),
        nb::sig("def host_task(fn: Callable[..., object], /, *args: Any, reads: Any = (), writes: Any = (), stream: "
                "Any = None, after: Event | Iterable[Event] = (), wait: bool = "
                "False, label: str | None = None) -> Event"),
        "Enqueues `fn(*args)` as an operation of a stream: of `stream`, else of the current stream of the first "
        "array's device,\nelse of the current stream. It runs on a thread of its own, may block, and may enqueue "
        "work; it must not wait for its\nown stream.\n\n"
        "Arrays of the CPU arrive as NumPy arrays over the same memory, which must not be used once the function "
        "has returned;\narrays of other devices, and tokens, arrive as they are. An array of Weir or a token counts as "
        "read and written, unless it "
        "is wrapped in In, Out or InOut,\nor listed in `reads`; arrays that the function uses without being passed "
        "them are listed in `reads` or `writes`.\nAn array of another package is passed as any object is and declares "
        "nothing, unless it is wrapped or listed; the call then returns\nwhen the task is over, if its package has no "
        "streams.\n\n"
        "An exception fails the operation: a call that waits for it raises an OperationError, whose `__cause__` is the "
        "exception.\n`wait`: blocks until the operation is over. `label`: its name in errors, reports and timelines, "
        "instead of the function's.\n\n"
        ">>> x = weir.zeros(4)\n>>> def fill(values):\n...     values[:] = 7\n>>> e = weir.host_task(fill, "
        "weir.Out(x))\n>>> x.numpy()\narray([7., 7., 7., 7.])\n");
}

}  // namespace weir::python
