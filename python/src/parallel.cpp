// Fork and join.
#include "weir/parallel.hpp"

#include <cstddef>
#include <memory>
#include <string>

#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

class py_parallel {
public:
    py_parallel(Py_ssize_t count, nb::object from) : count_(count), from_(std::move(from)) {
        if (count < 0) {
            throw argument_error("parallel() got " + std::to_string(count) + " streams: pass a number from 0 on");
        }
    }
    py_parallel(const py_parallel&) = delete;
    py_parallel& operator=(const py_parallel&) = delete;
    ~py_parallel() {
        if (blocks_) {  // the program entered the scope and never left it
            const nb::gil_scoped_release no_gil;
            blocks_.reset();
        }
    }

    nb::list enter() {
        const one_at_a_time alone(mutex_);
        if (blocks_) {
            throw state_error("this weir.parallel is in use: make another one");
        }
        const stream launching = stream_from(from_);
        const auto where = here();
        blocks_ =
            released([&] { return std::make_unique<parallel>(static_cast<std::size_t>(count_), launching, where); });
        nb::list streams;
        for (const stream& one : *blocks_) {
            streams.append(nb::cast(one));
        }
        return streams;
    }
    void leave() {
        const one_at_a_time alone(mutex_);
        if (blocks_) {
            waiting([&, where = here()] {
                blocks_->join(where);
                blocks_.reset();
            });
        }
    }

private:
    Py_ssize_t count_;
    nb::object from_;
    std::unique_ptr<parallel> blocks_;
    nb::ft_mutex mutex_;
};

}  // namespace

void bind_parallel(nb::module_& m) {
    nb::class_<py_parallel>(
        m, "parallel",
        "Streams that run beside each other. Each starts after what the launching stream (`stream`, "
        "else the current one)\nwas given before, and at the end of the `with` the launching stream "
        "goes on after all of them. Nothing blocks.\n\n"
        ">>> with weir.parallel(2) as (a, b):\n...     with a:\n...         x += 1\n"
        "...     with b:\n...         y += 1\n")
        .def(
            "__init__",
            [](py_parallel* self, nb::handle count, nb::handle from) {
                new (self) py_parallel(integer_from(count, "n"), nb::borrow(from));
            },
            nb::arg("n").none(), nb::kw_only(), nb::arg("stream").none() = nb::none(),
            nb::sig("def __init__(self, n: int, /, *, stream: Any = None) -> None"))
        .def("__enter__", &py_parallel::enter, nb::sig("def __enter__(self) -> list[Stream]"))
        .def(
            "__exit__", [](py_parallel& self, nb::args /*unused*/) { self.leave(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace weir::python
