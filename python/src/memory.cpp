// Where arrays get their memory: limits, statistics, resources.
#include "weir/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "reference.hpp"
#include "scopes.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"
#include "weir/poisoning.hpp"
#include "work.hpp"
#include "wrong_calls.hpp"

namespace weir::python {

namespace {

using memory::resource_ptr;

/// The pool that `memory=` names of the device's two. Throws argument_error where the device has none of that name.
memory::pool_kind pool_from(nb::handle argument, const device& of) {
    if (argument.is_none()) {
        return memory::pool_kind::own;
    }
    const std::optional<std::string_view> name = text_in(argument);
    const std::string given = "memory is " + repr_of(argument);
    if (!name) {
        throw argument_type_error(given + ": pass \"pinned\" (of the CPU), \"managed\" (of a CUDA device) or None");
    }
    const bool is_its = name == "managed" ? of.kind() == device_kind::cuda : of == cpu();
    if ((name != "pinned" && name != "managed") || !is_its) {
        throw argument_error(given + ", and the device " + std::string(of.name()) +
                             ": pass \"pinned\" with the CPU, \"managed\" with a CUDA device, or None");
    }
    return memory::pool_kind::shared;
}

nb::dict stats(nb::handle of, nb::handle which) {
    const device where = device_from(of);
    const memory::pool_kind pool = pool_from(which, where);
    const memory::statistics now = released([&] { return memory::stats(where, pool); });
    nb::dict figures;
    figures["live"] = now.live;
    figures["cached"] = now.cached;
    figures["pending"] = now.pending;
    figures["quarantined"] = now.quarantined;
    figures["peak"] = now.peak;
    figures["limit"] = now.limit;
    figures["over_waited"] = now.over_waited;
    return figures;
}

/// Where memory comes from; null for None: the device's pool.
resource_ptr resource_from(nb::handle argument, const char* name) {
    if (!argument.is_none() && !nb::isinstance<memory_resource>(argument)) {
        refuse_type(argument, name, "a resource such as weir.memory.counting(), or None for the device's pool");
    }
    return argument.is_none() ? nullptr : nb::cast<resource_ptr>(argument);
}

/// Receives the lines of a resource that logs. Buffers are dropped on any thread. A thread that is not Python's, such as the reaper,
/// does not take the GIL (rule L4): its line waits for the next thread that has it.
class line_sink {
public:
    explicit line_sink(reference sink) noexcept : to_(std::make_shared<shared>(std::move(sink))) {}

    void operator()(std::string_view line) const {
        {
            const std::lock_guard lock(to_->mutex);
            to_->lines.emplace_back(line);
        }
        if (PyGILState_GetThisThreadState() == nullptr || interpreter::is_ending()) {
            return;
        }
        const visit inside;
        const nb::gil_scoped_acquire gil;
        deliver();
    }

private:
    struct shared {
        explicit shared(reference to) noexcept : sink(std::move(to)) {}
        reference sink;
        detail::mutex mutex;  ///< guards lines; a leaf in the lock order
        std::vector<std::string> lines;
    };
    void deliver() const {
        std::vector<std::string> taken;
        {
            const std::lock_guard lock(to_->mutex);
            taken.swap(to_->lines);
        }
        for (const std::string& line : taken) {
            const nb::object text =
                nb::steal(PyUnicode_FromStringAndSize(line.data(), static_cast<Py_ssize_t>(line.size())));
            const nb::object answer =
                text.is_valid() ? nb::steal(PyObject_CallOneArg(to_->sink.get().ptr(), text.ptr())) : nb::object();
            if (!answer.is_valid()) {
                PyErr_WriteUnraisable(to_->sink.get().ptr());
            }
        }
    }

    std::shared_ptr<shared> to_;
};

resource_ptr make_logging(nb::handle sink, nb::handle upstream_) {
    resource_ptr upstream = resource_from(upstream_, "upstream");
    if (sink.is_none()) {
        return memory::logging({}, std::move(upstream));
    }
    if (PyCallable_Check(sink.ptr()) == 0) {
        throw argument_type_error(
            "logging() got " + repr_of(sink) +
            ": pass a function that takes a line of text, or nothing for the standard error output");
    }
    return memory::logging(line_sink(reference(nb::borrow(sink))), std::move(upstream));
}

nb::dict dict_of(const memory::counting_resource::figure& one) {
    nb::dict figures;
    figures["count"] = one.count;
    figures["bytes"] = one.bytes;
    return figures;
}

/// `with memory.use(resource):`, a scope of the context that entered it, which keeps this object while it lasts.
class py_use {
public:
    py_use(resource_ptr resource, std::optional<device> of) : resource_(std::move(resource)), device_(of) {}
    py_use(const py_use&) = delete;
    py_use& operator=(const py_use&) = delete;

    void enter(nb::handle self) {
        const one_at_a_time alone(mutex_);
        if (is_entered_) {
            throw state_error("this weir.memory.use is in use: make another one");
        }
        scopes::enter(self, scope_kind::memory);
        is_entered_ = true;
    }
    void leave(nb::handle self) {
        const one_at_a_time alone(mutex_);
        if (!is_entered_) {
            throw state_error("this weir.memory.use was not entered: use it in a with statement");
        }
        if (!scopes::leave(self, scope_kind::memory)) {
            throw state_error(
                "a weir.memory.use ends in another context (asyncio task, or thread outside of tasks) than it began "
                "in, or before one that began after it: leave them where they were entered, innermost first");
        }
        is_entered_ = false;
    }
    void hold(scopes::held& into) const {
        if (device_) {
            into.emplace<memory::use>(resource_, *device_);
        } else {
            into.emplace<memory::use>(resource_);
        }
    }

private:
    resource_ptr resource_;
    std::optional<device> device_;
    bool is_entered_ = false;
    nb::ft_mutex mutex_;
};

void bind_pool(nb::module_& m) {
    m.def(
        "stats", stats, nb::arg("device").none() = nb::none(), nb::kw_only(), nb::arg("memory").none() = nb::none(),
        nb::sig(
            "def stats(device: Device | str | None = None, *, memory: Literal[\"pinned\", \"managed\"] | None = None) "
            "-> dict[str, int]"),
        "The bytes of a device's pool: \"live\" (owned by arrays), \"pending\" (dropped, and operations may still use "
        "them), \"cached\"\n(free), \"quarantined\" (dropped, and other libraries may still use them; theirs "
        "included),\nthe \"peak\" of live and pending, and the \"limit\". \"over_waited\": how often, at the limit, "
        "a stream got memory\nfor which it may have to wait longer than for its former owner's last use. `memory`: "
        "\"pinned\" "
        "(of the CPU) or\n\"managed\" (of a CUDA device) names the pool of that memory instead; all 0 before its first "
        "use.");
    m.def(
        "limit",
        [](nb::handle of, nb::handle bytes) {
            const device where = device_from(of);
            const std::size_t most = unsigned_from(bytes, "bytes", "a number of bytes");
            released([&] { memory::limit(where, most); });
        },
        nb::arg("device").none(), nb::arg("bytes").none(),
        nb::sig("def limit(device: Device | str | None, bytes: int) -> None"),
        "The most that the device's pool may take: what lives, is cached, pending and quarantined together.");
    m.def(
        "trim",
        [](nb::handle of) {
            const device where = device_from(of);
            released([&] { memory::trim(where); });
        },
        nb::arg("device").none() = nb::none(), nb::sig("def trim(device: Device | str | None = None) -> None"),
        "Gives cached memory back to the driver. Never waits.");
}

void bind_resources(nb::module_& m) {
    nb::class_<memory_resource> resource(m, "Resource",
                                         "Something that gives memory: used by `with weir.memory.use(resource):`, or "
                                         "below another one.");
    refuse_making(resource,
                  "resources are made by functions: weir.memory.counting, driver_pool, failing, limiting, logging");
    nb::class_<memory::counting_resource, memory_resource> counting(m, "CountingResource",
                                                                    "Counts what goes through it.");
    refuse_making(counting, "weir.memory.CountingResource is made by a function: call weir.memory.counting")
        .def(
            "counts",
            [](const memory::counting_resource& self) {
                const memory::counting_resource::figures now = self.counts();
                nb::dict all;
                all["live"] = dict_of(now.live);
                all["peak"] = dict_of(now.peak);
                all["total"] = dict_of(now.total);
                all["failed"] = dict_of(now.failed);
                return all;
            },
            nb::sig("def counts(self) -> dict[str, dict[str, int]]"),
            "\"live\", \"peak\", \"total\" and \"failed\", each a dict of \"count\" and \"bytes\".");
    nb::class_<memory::failing_resource, memory_resource> failing(m, "FailingResource",
                                                                  "Raises OutOfMemory on purpose.");
    refuse_making(failing, "weir.memory.FailingResource is made by a function: call weir.memory.failing")
        .def_prop_ro("asked", &memory::failing_resource::asked, "Allocations it was asked for.")
        .def_prop_ro("failed", &memory::failing_resource::failed, "Those that it made fail.");

    m.def(
        "limiting",
        [](nb::handle bytes, nb::handle upstream) {
            return memory::limiting(unsigned_from(bytes, "bytes", "a number of bytes"),
                                    resource_from(upstream, "upstream"));
        },
        nb::arg("bytes").none(), nb::arg("upstream").none() = nb::none(),
        nb::sig("def limiting(bytes: int, upstream: Resource | None = None) -> Resource"),
        "Lets no more than so many bytes live at once: beyond that, OutOfMemory. `upstream`: where the memory comes "
        "from; the device's pool by default.");
    m.def(
        "logging", make_logging, nb::arg("sink").none() = nb::none(), nb::arg("upstream").none() = nb::none(),
        nb::sig("def logging(sink: Callable[[str], object] | None = None, upstream: Resource | None = None) -> "
                "Resource"),
        "Calls `sink` with a line of JSON for each allocation, drop and failure, in their order; without one, lines go "
        "to the standard error output. The line of a drop on a thread of Weir's own comes with the next one.");
    m.def(
        "counting", [](nb::handle upstream) { return memory::counting(resource_from(upstream, "upstream")); },
        nb::arg("upstream").none() = nb::none(),
        nb::sig("def counting(upstream: Resource | None = None) -> CountingResource"), "Counts what goes through it.");
    m.def(
        "failing",
        [](nb::handle at, nb::handle probability, nb::handle seed, nb::handle upstream) {
            return memory::failing(
                {unsigned_from(at, "at"), number_from(probability, "probability"), unsigned_from(seed, "seed")},
                resource_from(upstream, "upstream"));
        },
        nb::kw_only(), nb::arg("at").none() = 0, nb::arg("probability").none() = 0.0, nb::arg("seed").none() = 0,
        nb::arg("upstream").none() = nb::none(),
        nb::sig(
            "def failing(*, at: int = 0, probability: float = 0.0, seed: int = 0, upstream: Resource | None = None) "
            "-> FailingResource"),
        "Raises OutOfMemory on purpose: at the allocation with this number, the first being 1, or at each with this "
        "probability; the same seed, the same allocations.");
    m.def("driver_pool", memory::driver_pool,
          "Memory straight from the device's driver: on CUDA its allocator in stream order.");
    m.def(
        "poisoning", [](nb::handle upstream) { return memory::poisoning(resource_from(upstream, "upstream")); },
        nb::arg("upstream").none() = nb::none(), nb::sig("def poisoning(upstream: Resource | None = None) -> Resource"),
        "Fills memory that is freed with a pattern that is NaN as a floating-point number and -1 as an integer, in "
        "stream "
        "order: after what the program enqueued on it, before its next owner. What reads memory after a free then "
        "computes NaN in each run. For tests; does not block.");
    m.def(
        "allocating_stream",
        [](nb::handle upstream) { return memory::allocating_stream(resource_from(upstream, "upstream")); },
        nb::arg("upstream").none() = nb::none(),
        nb::sig("def allocating_stream(upstream: Resource | None = None) -> Resource"),
        "For tests, as a negative control: frees as other pools do, on the stream on which memory was allocated, so "
        "that what other streams still use is reused too early.");
}

}  // namespace

void scopes::hold_memory(nb::handle what, held& into) { nb::cast<const py_use&>(what).hold(into); }

void bind_memory(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("memory");
    bind_pool(m);
    bind_resources(m);
    nb::class_<py_use>(
        m, "use",
        "Arrays that the calling context (asyncio task, or thread outside of tasks) makes within the `with` get their "
        "memory from the resource; on one "
        "device, or on all.\n`None`: from the pool, whatever is around it. Nests: the innermost for the "
        "device counts.\n\n"
        ">>> counted = weir.memory.counting()\n>>> with weir.memory.use(counted):\n"
        "...     x = weir.zeros(4)\n>>> counted.counts()[\"live\"][\"bytes\"]\n32\n")
        .def(
            "__init__",
            [](py_use* self, nb::handle resource, nb::handle of) {
                new (self) py_use(resource_from(resource, "resource"),
                                  of.is_none() ? std::nullopt : std::optional(device_from(of)));
            },
            nb::arg("resource").none(), nb::arg("device").none() = nb::none(),
            nb::sig("def __init__(self, resource: Resource | None, device: Device | str | None = None) -> None"))
        .def(
            "__enter__", [](nb::handle self) { nb::cast<py_use&>(self).enter(self); },
            nb::sig("def __enter__(self) -> None"))
        .def(
            "__exit__", [](nb::handle self, nb::args /*unused*/) { nb::cast<py_use&>(self).leave(self); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace weir::python
