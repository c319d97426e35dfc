// Tools for tests of programs that use streams.
#include "weir/testing.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "arguments.hpp"
#include "devices.hpp"
#include "interpreter.hpp"
#include "site.hpp"
#include "weir/error.hpp"
#include "work.hpp"

namespace weir::python {

namespace {

class py_gate {
public:
    py_gate() = default;
    py_gate(const py_gate&) = delete;
    py_gate& operator=(const py_gate&) = delete;
    ~py_gate() { open(); }

    void hold(nb::handle on) {
        const stream held = stream_from(on);
        released([&, where = here()] { gate_.hold(held, where); });
    }
    /// The operation that goes on then may be a host task, which runs on another thread and takes the GIL there.
    void open() {
        const nb::gil_scoped_release no_gil;
        gate_.open();
        is_open_.store(true, std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_open() const noexcept { return is_open_.load(std::memory_order_relaxed); }

private:
    testing::gate gate_;
    std::atomic<bool> is_open_{false};
};

class py_simulated {
public:
    py_simulated(device of, testing::sim_settings settings) : device_(of), settings_(std::move(settings)) {}
    py_simulated(const py_simulated&) = delete;
    py_simulated& operator=(const py_simulated&) = delete;
    ~py_simulated() {
        if (active_) {
            const nb::gil_scoped_release no_gil;  // waits for what is pending
            active_.reset();
        }
    }

    void enter() {
        const one_at_a_time alone(mutex_);
        if (active_) {
            throw state_error("this weir.testing.simulated is in use: make another one");
        }
        released([&] { active_.emplace(device_, settings_); });
    }
    void leave() {
        const one_at_a_time alone(mutex_);
        if (active_) {
            waiting([&] {
                active_->await_idle();
                active_.reset();
            });
        }
    }
    [[nodiscard]] const device& which() const noexcept { return device_; }

private:
    device device_;
    testing::sim_settings settings_;
    std::optional<testing::simulated> active_;
    nb::ft_mutex mutex_;
};

}  // namespace

void bind_testing(nb::module_& parent) {
    nb::module_ m = parent.def_submodule("testing");
    m.def(
        "simulate_cuda", [](nb::handle devices) { testing::simulate_cuda(int_from(devices, "devices")); },
        nb::arg("devices").none(), nb::sig("def simulate_cuda(devices: int, /) -> None"),
        "From now on so many simulated devices stand for the CUDA devices of the process, as WEIR_SIMULATE=cuda:N "
        "has it. "
        "Raises StateError once anything has asked for a CUDA device or for the list of all devices.");
    nb::class_<py_gate>(m, "Gate", nb::is_weak_referenceable(),
                        "Holds streams back until it is opened: makes a race certain where luck would decide. "
                        "Device-side: neither\n`hold` nor `open` blocks. The end of a `with` opens it, and so does "
                        "dropping it. For one thread at a time.\n\n"
                        ">>> with weir.testing.Gate() as gate:\n...     gate.hold(s)\n"
                        "...     e = s.record()\n...     assert not e.done\n>>> e.wait()\nTrue\n")
        .def(nb::init<>(), "Closed.")
        .def("hold", &py_gate::hold, nb::arg("stream").none() = nb::none(),
             nb::sig("def hold(self, stream: Any = None) -> None"),
             "What is enqueued on the stream (the current one) from now on does not start before the gate is open. "
             "Raises StateError on \"cpu:inline\", which runs operations in the call.")
        .def("open", &py_gate::open, "Lets all go on. May be called twice.")
        .def_prop_ro("is_open", &py_gate::is_open, "Whether it was opened.")
        .def(
            "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Self"))
        .def(
            "__exit__", [](py_gate& self, nb::args /*unused*/) { self.open(); },
            nb::sig("def __exit__(self, *exception: object) -> None"))
        .def("__repr__", [](const py_gate& self) {
            return self.is_open() ? "<weir.testing.Gate open>" : "<weir.testing.Gate closed>";
        });

    nb::class_<py_simulated>(m, "simulated",
                             "While the `with` lasts, a simulated device behaves as the arguments say; then as before. "
                             "Its end waits for\nwhat is pending on the device.\n\n"
                             ">>> with weir.testing.simulated(\"sim:0\", seed=7, adversarial=True):\n"
                             "...     run()\n")
        .def(
            "__init__",
            [](py_simulated* self, nb::handle of, nb::handle seed, nb::handle adversarial, nb::handle virtual_clock,
               nb::handle engines, nb::handle copy_engines, nb::handle memory) {
                testing::sim_settings settings;
                settings.engines = int_from(engines, "engines");
                settings.copy_engines = int_from(copy_engines, "copy_engines");
                settings.memory = unsigned_from(memory, "memory", "a number of bytes");
                settings.seed = unsigned_from(seed, "seed");
                settings.adversarial = flag_from(adversarial, "adversarial");
                settings.virtual_clock = flag_from(virtual_clock, "virtual_clock");
                new (self) py_simulated(device_from(of), std::move(settings));
            },
            nb::arg("device").none() = "sim:0", nb::kw_only(), nb::arg("seed").none() = 0,
            nb::arg("adversarial").none() = false, nb::arg("virtual_clock").none() = false,
            nb::arg("engines").none() = 4, nb::arg("copy_engines").none() = 2,
            nb::arg("memory").none() = std::size_t{1} << 30,
            nb::sig("def __init__(self, device: Device | str = \"sim:0\", *, seed: int = 0, adversarial: bool = False, "
                    "virtual_clock: bool = False, engines: int = 4, copy_engines: int = 2, memory: int = 1073741824) "
                    "-> None"),
            "`engines`, `copy_engines`: operations and copies that run at once. `memory`: bytes. `adversarial`: which "
            "of the operations that are ready runs next is chosen by `seed`, and some are overtaken on purpose. "
            "`virtual_clock`: time is only told, and the same seed gives the same course.")
        .def(
            "__enter__",
            [](nb::handle self) {
                auto& its = nb::cast<py_simulated&>(self);
                its.enter();
                return its.which();
            },
            nb::sig("def __enter__(self) -> Device"), "The device. Raises StateError if operations are pending on it.")
        .def(
            "__exit__", [](py_simulated& self, nb::args /*unused*/) { self.leave(); },
            nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace weir::python
