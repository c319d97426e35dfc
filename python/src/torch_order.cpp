// weir.torch: what the hooks in torch ask for, and the waits that they get (weir/_torch_hooks/hooks.h).
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../weir/_torch_hooks/hooks.h"
#include "bind.hpp"
#include "checking.hpp"
#include "torch_accesses.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/ordered_program.hpp"

namespace weir::python {

namespace {

using weir::detail::ordered_program;
using weir::detail::watched_access;
using weir::detail::watched_stream;

/// torch's events.
class torch_events final : public weir::detail::library_events {
public:
    explicit torch_events(const weir_torch_events& by) : by_(&by) {}

    void* record(watched_stream on, void* former) override {
        void* event = former;
        demand(by_->record({on.device, on.handle}, &event));
        return event;
    }
    void wait(watched_stream on, void* event) override { demand(by_->wait({on.device, on.handle}, event)); }
    void synchronize(void* event) override { demand(by_->synchronize(event)); }
    bool is_complete(void* event) override {
        int answer = 0;
        demand(by_->is_complete(event, &answer));
        return answer != 0;
    }
    void destroy(void* event) noexcept override { by_->destroy(event); }

    void synchronize_device(int device) noexcept { by_->synchronize_device(device); }

private:
    static void demand(int failed) {
        if (failed != 0) {
            throw std::runtime_error("an event of torch failed");
        }
    }
    const weir_torch_events* by_;
};

/// The program that is kept in order, while it is.
class ordered {
public:
    static void begin(const weir_torch_events& events) {
        const std::unique_lock lock(mutex_);
        if (users_++ == 0) {
            waits_ = 0;
            unseen_.clear();
            events_ = std::make_unique<torch_events>(events);
            program_ = std::make_unique<ordered_program>(*events_);
        }
    }
    static void end() {
        const std::unique_lock lock(mutex_);
        if (--users_ != 0) {
            return;
        }
        const std::unique_ptr<ordered_program> program = std::move(program_);
        try {
            program->join_all();
        } catch (...) {
            for (const int device : program->devices()) {
                events_->synchronize_device(device);
            }
        }
        waits_ = program->waits();
    }
    static std::uint64_t waits() {
        const std::shared_lock lock(mutex_);
        return program_ ? program_->waits() : waits_;
    }
    static void add_unseen(std::string_view what) {
        const std::unique_lock lock(mutex_);
        unseen_.emplace(what);
    }
    static std::vector<std::string> unseen() {
        const std::shared_lock lock(mutex_);
        return {unseen_.begin(), unseen_.end()};
    }
    /// Calls `act(program)`. If it fails, the host waits for the device, which orders everything.
    template <class Act>
    static void act(int device, Act&& act) noexcept {
        const std::shared_lock lock(mutex_);
        if (!program_) {
            return;
        }
        try {
            act(*program_);
        } catch (...) {
            events_->synchronize_device(device);
        }
    }

private:
    static inline weir::detail::shared_mutex mutex_;
    static inline std::unique_ptr<torch_events> events_;
    static inline std::unique_ptr<ordered_program> program_;
    static inline int users_ = 0;
    static inline std::uint64_t waits_ = 0;
    static inline std::set<std::string, std::less<>> unseen_;
};

watched_stream stream(weir_torch_stream of) noexcept { return {of.device, of.handle}; }

std::uint64_t begins(weir_torch_stream on, const weir_torch_access* accesses, std::size_t count) {
    std::uint64_t number = 0;
    ordered::act(on.device, [&](ordered_program& program) {
        number = program.operation_begins(stream(on), accesses_of(program, std::span(accesses, count)));
    });
    return number;
}
void ends(weir_torch_stream on, std::uint64_t number, const weir_torch_access* results, std::size_t count) {
    ordered::act(on.device, [&](ordered_program& program) {
        if (number == 0) {
            throw std::runtime_error("what the operator does was not noted");  // so the host waits for it
        }
        program.operation_ends(stream(on), number, accesses_of(program, std::span(results, count)));
    });
}
void leaves(weir_torch_stream on) {
    ordered::act(on.device, [&](ordered_program& program) { program.leaves(stream(on)); });
}
void host_needs(const weir_torch_access* what) {
    ordered::act(0, [&](ordered_program& program) { program.host_access(access_of(program, *what)); });
}
void allocated(std::uint64_t address, weir_torch_stream on) {
    ordered::act(on.device, [&](ordered_program& program) { program.allocated(address, stream(on)); });
}
void freed(std::uint64_t address) {
    ordered::act(0, [&](ordered_program& program) { program.freed(address); });
}
void event_recorded(std::uint64_t event, weir_torch_stream on) {
    ordered::act(on.device, [&](ordered_program& program) { program.event_recorded(event, stream(on)); });
}
void event_gone(std::uint64_t event) {
    ordered::act(0, [&](ordered_program& program) { program.event_gone(event); });
}
void stream_waits(std::uint64_t event, weir_torch_stream on) {
    ordered::act(on.device, [&](ordered_program& program) { program.stream_waits(stream(on), event); });
}
void event_synchronized(std::uint64_t event) {
    ordered::act(0, [&](ordered_program& program) { program.host_waited_for_event(event); });
}
void stream_synchronized(weir_torch_stream one) {
    ordered::act(one.device, [&](ordered_program& program) { program.host_waited_for_stream(stream(one)); });
}
void device_synchronized(std::int32_t device) {
    ordered::act(device, [&](ordered_program& program) { program.host_waited_for_device(device); });
}
void unseen(const char* what) {
    try {
        ordered::add_unseen(what);
    } catch (const std::bad_alloc&) {
        return;  // the next operator of this kind adds it
    }
}

constexpr weir_torch_ordering ordering{
    begins,         ends,       leaves,       host_needs,         allocated,           freed,
    event_recorded, event_gone, stream_waits, event_synchronized, stream_synchronized, device_synchronized,
    unseen};

}  // namespace

void bind_torch_order(nb::module_& m) {
    m.def(
        "_torch_ordering", [] { return reinterpret_cast<std::uintptr_t>(&ordering); },
        "The address of what the hooks in torch call to keep a program in order (weir/_torch_hooks/hooks.h).");
    m.def(
        "_torch_order_begin",
        [](std::uintptr_t events) { ordered::begin(*reinterpret_cast<const weir_torch_events*>(events)); },
        nb::arg("events"), "Begins to order what the hooks report, by torch's events, whose table is at this address.");
    m.def(
        "_torch_order_end", [] { ordered::end(); }, nb::call_guard<nb::gil_scoped_release>(),
        "Ends it: what streams get afterwards comes after all that they got before.");
    m.def(
        "_torch_order_waits", [] { return ordered::waits(); }, nb::call_guard<nb::gil_scoped_release>(),
        "How many waits were put into streams.");
    m.def(
        "_torch_order_add_unseen", [](std::string_view what) { ordered::add_unseen(what); }, nb::arg("what"),
        nb::call_guard<nb::gil_scoped_release>(), "Adds to what was not seen.");
    m.def(
        "_torch_order_unseen", [] { return ordered::unseen(); }, "What was not seen, and so not ordered, in words.");
}

}  // namespace weir::python
