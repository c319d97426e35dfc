// weir.borrow: work of other packages on memory of Weir's (rule X6). python/weir/_borrow.py makes the stream current in them.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "borrow_nesting.hpp"
#include "devices.hpp"
#include "exchange.hpp"
#include "interpreter.hpp"
#include "module_function.hpp"
#include "scopes.hpp"
#include "site.hpp"
#include "weir/borrow.hpp"
#include "weir/detail/observed.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/token.hpp"

namespace weir::python {

namespace {

/// The context manager that weir.borrow returns.
class lent {
public:
    /// `write`: a list or a tuple of objects, or one object.
    lent(nb::tuple arrays, nb::object write, nb::object stream)
        : arrays_(std::move(arrays)), write_(std::move(write)), stream_(std::move(stream)) {
        if (PyList_Check(write_.ptr()) == 0 && PyTuple_Check(write_.ptr()) == 0) {
            write_ = nb::make_tuple(write_);
        }
    }

    nb::object enter() {
        borrow_nesting::expect_may_begin();  // a borrow that is refused may be entered later
        if (began_.exchange(true)) {
            throw state_error("a borrow is entered once: call weir.borrow() again");
        }
        const source_location where = here();
        try {
            begin(where);
        } catch (...) {
            views_.reset();  // nothing is held, and the views keep no memory
            throw;
        }
        try {
            make_current();
        } catch (...) {
            leave(where);
            throw;
        }
        is_inside_ = true;
        return views_;
    }

    void exit(const source_location& where) {
        if (!is_inside_) {
            throw state_error("this borrow() is not entered: write `with weir.borrow(...) as (view,):`");
        }
        leave_scope();
        is_inside_ = false;
        leave(where);
    }

private:
    /// Makes the views, and begins the period in which the work may use the memory.
    void begin(const source_location& where) {
        period_ = weir::detail::shared_owner(std::make_unique<weir::detail::use_period>());
        views_ = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(nb::len(arrays_))));
        exchange::borrowed of = operands_of(where);
        if (stream_.is_none()) {
            const std::optional<device> of_first = first_device();
            stream_ = nb::cast(of_first ? current_in_context(*of_first) : innermost_stream());
        }
        const stream on = stream_from(stream_);
        if (object_of<stream>(stream_) == nullptr) {
            stream_ = nb::cast(on);  // one of another package
        }
        released([&] { held_.emplace(on, std::move(of), where); });
    }

    /// The stream becomes the current one of Weir, and of the packages that have one.
    void make_current() {
        scopes::enter(stream_, scope_kind::stream);
        is_current_ = true;
        if (kind() == device_kind::cuda) {
            static constinit module_function switches("weir._borrow", "_made_current");
            packages_ = switches.get()(stream_);
            nesting_.begin();
        }
    }

    /// The stream is Weir's current one no more, and the thread is outside. Throws state_error where another scope has to be left first, or
    /// elsewhere; nothing has changed then.
    void leave_scope() {
        const bool nests = nesting_.is_inside();
        nesting_.end();
        try {
            if (!scopes::leave(stream_, scope_kind::stream)) {
                throw state_error(
                    "a borrow() ends before a borrow() or a `with stream:` that was entered inside of it, or in "
                    "another "
                    "thread or asyncio task than the one that entered it: leave first what was entered last, where it "
                    "was "
                    "entered");
            }
        } catch (...) {
            if (nests) {
                nesting_.begin();
            }
            throw;
        }
        is_current_ = false;
    }

    /// Everything is left, whatever of it fails; the first failure is thrown.
    void leave(const source_location& where) {
        period_->end();  // each use of the views raises StateError from now on
        std::exception_ptr failed;
        const auto attempt = [&](auto&& step) {
            try {
                step();
            } catch (...) {
                failed = failed ? failed : std::current_exception();
            }
        };
        if (packages_.is_valid()) {
            attempt([&] { std::exchange(packages_, {}).attr("close")(); });
        }
        if (std::exchange(is_current_, false)) {
            attempt([&] { static_cast<void>(scopes::leave(stream_, scope_kind::stream)); });
        }
        if (held_) {
            attempt([&] { end_use(where); });
            attempt([&] { await_packages(where); });
            held_.reset();
        }
        attempt([&] { let_go_of_memory(where); });
        if (failed) {
            std::rethrow_exception(failed);
        }
    }

    /// The objects in a list or a tuple. Valid while that does not change.
    [[nodiscard]] static std::span<PyObject* const> items(nb::handle of) {
        return {PySequence_Fast_ITEMS(of.ptr()), static_cast<std::size_t>(PySequence_Fast_GET_SIZE(of.ptr()))};
    }
    [[nodiscard]] static bool contains(nb::handle all, PyObject* one) {
        const std::span<PyObject* const> in = items(all);
        return std::find(in.begin(), in.end(), one) != in.end();
    }
    [[nodiscard]] bool is_written(nb::handle one) const { return contains(write_, one.ptr()); }

    void expect_given() const {
        if (nb::len(arrays_) == 0) {
            throw argument_error("borrow() got no arrays: name those that the work in the block uses");
        }
        for (PyObject* const one : items(write_)) {
            if (!contains(arrays_, one)) {
                throw argument_error(
                    "borrow(write=...) names an array that is not among those that are borrowed: list it as well");
            }
        }
    }

    /// What the block gets for an object: a token as it is, for an array another object.
    nb::object view_of(nb::handle one, const source_location& where) {
        if (is_exactly<token>(one)) {
            return nb::borrow(one);
        }
        if (!is_exactly<array>(one)) {
            if (nb::object view = shared_array(one, where); view.is_valid() && !view.is(one)) {
                are_all_own_ = false;
                return view;
            }
            if (object_of<token>(one) != nullptr) {
                return nb::borrow(one);
            }
        }
        if (const array* const own = object_of<array>(one)) {
            return new_object<array>(*own);
        }
        const nb::object copy = as_array(one, where);  // says of what is no array that it is none
        throw copy_error("borrow() needs the memory of each array itself, and a " +
                         std::string(nb::inst_name(one).c_str()) +
                         " has none that can be shared: borrow y = weir.asarray(x), which is a copy");
    }

    /// The arrays and tokens; makes the views.
    exchange::borrowed operands_of(const source_location& where) {
        expect_given();
        exchange::borrowed made;
        Py_ssize_t at = 0;
        for (const nb::handle one : arrays_) {
            const bool written = is_written(one);
            nb::object view = view_of(one, where);
            if (const token* const instead = view.is(one) ? object_of<token>(one) : nullptr) {
                (written ? made.tokens.writes : made.tokens.reads).push_back(*instead);
            } else {
                array& borrowed = *object_of<array>(view);
                if (written) {
                    made.writes.emplace_back(borrowed);
                } else {
                    made.reads.push_back(borrowed);
                }
                if (borrowed.buffer()) {
                    borrowed.use_within(weir::detail::key, period_);
                }
            }
            PyTuple_SET_ITEM(views_.ptr(), at++, view.release().ptr());
        }
        return made;
    }

    [[nodiscard]] std::optional<device> first_device() const {
        for (const nb::handle view : nb::borrow<nb::tuple>(views_)) {
            if (const array* const one = object_of<array>(view)) {
                return one->device();
            }
        }
        return std::nullopt;
    }

    /// Later work comes after the block's. On the CPU this seldom enqueues anything: the GIL need not be given away then, unless an observer
    /// looks on.
    void end_use(const source_location& where) {
        const bool keeps_gil = kind() == device_kind::cpu && !weir::detail::is_observed();
        if (keeps_gil && !held_->hands_back(weir::detail::key)) {
            held_->end(weir::detail::key, false, where);
        } else {
            released([&] { held_->end(where); });
        }
    }

    [[nodiscard]] device_kind kind() const { return object_of<stream>(stream_)->device().kind(); }

    /// Packages without queues are done when their calls return.
    void await_packages(const source_location& where) const {
        if (kind() != device_kind::cuda && !are_all_own_ && !held_->is_over(weir::detail::key, where)) {
            const stream& on = *object_of<stream>(stream_);
            waiting([&] { on.synchronize(where); });
        }
    }

    /// A view that outlives the block does not keep what a package shares.
    void let_go_of_memory(const source_location& where) {
        for (const nb::handle view : nb::borrow<nb::tuple>(views_)) {
            if (array* const one = object_of<array>(view)) {
                *one = exchange::ended_view(*one, where);
            }
        }
    }

    nb::tuple arrays_;
    nb::object write_;
    nb::object stream_;
    nb::object views_;
    nb::object packages_;  ///< what makes the stream current in them, until it is closed
    std::optional<exchange::borrow> held_;
    bool are_all_own_ = true;  ///< whether Weir made all arrays
    bool is_current_ = false;
    weir::detail::shared_owner<weir::detail::use_period> period_;  ///< of the views
    // To enter and to leave runs code of packages and gives the GIL away, so that the same borrow may be entered or left meanwhile, by
    // another thread or by that code. Of those that enter it one goes on, by an exchange; the thread that entered it leaves it, in one piece.
    std::atomic<bool> began_{false};
    std::atomic<bool> is_inside_{false};
    borrow_nesting nesting_;
};

}  // namespace

void bind_borrowing(nb::module_& m) {
    nb::class_<lent>(m, "_Borrow", "What weir.borrow returns.")
        .def("__enter__", &lent::enter, nb::sig("def __enter__(self) -> tuple[Any, ...]"))
        .def(
            "__exit__", [](lent& self, nb::handle, nb::handle, nb::handle) { self.exit(here()); }, nb::arg().none(),
            nb::arg().none(), nb::arg().none(), nb::sig("def __exit__(self, *exception: object) -> None"));
    m.def(
        "borrow",
        [](nb::args arrays, nb::object write, nb::object stream) {
            return new_object<lent>(std::move(arrays), std::move(write), std::move(stream));
        },
        nb::arg("arrays"), nb::kw_only(), nb::arg("write").none() = nb::tuple(), nb::arg("stream").none() = nb::none(),
        nb::sig("def borrow(*arrays: Any, write: Any = (), stream: Stream | None = None) -> _Borrow"),
        "Other packages work on these arrays inside the block, on one stream (rule X6).\n\n"
        "Entering has the stream wait, on the device, for what the work must come after; what conflicts with it later, "
        "through Weir or in the current streams of packages that share the arrays, comes after the work. Inside, "
        "`stream` (the first array's current one if it is not given) is the current stream of Weir, torch and CuPy; "
        "Numba and others take it in their launches (`stream.handle`). Arrays of other packages may be among them. "
        "`write` lists those that the work changes: all others it only reads. Tokens may be among the arrays, and are "
        "given to the block as they are. The views that the block gets, and views made of them, are for use inside of "
        "it: "
        "afterwards each use raises StateError.\n\n"
        "Borrows nest, and each thread has its own. Leave a borrow where it was entered, in that thread and asyncio "
        "task, and the innermost first: else StateError. While a task awaits inside a borrow on a CUDA device, other "
        "tasks of the thread cannot enter one: leave it before the await, and await `stream.record()` afterwards.\n\n"
        ">>> import numpy as np\n>>> x = weir.zeros(3)\n>>> with weir.borrow(x, write=[x]) as (view,):\n"
        "...     np.asarray(view)[:] = 1\n>>> x.tolist()\n[1.0, 1.0, 1.0]\n");
}

}  // namespace weir::python
