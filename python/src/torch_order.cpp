// weir.torch: what the hooks in torch ask for, and the waits that they get (weir/_torch_hooks/hooks.h).
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
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
#include "torch_order.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/ordered_program.hpp"
#include "weir/detail/package_order.hpp"
#include "weir/stream.hpp"

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
        demand(by_->record({on.device, on.handle, 0}, &event));
        return event;
    }
    void wait(watched_stream on, void* event) override { demand(by_->wait({on.device, on.handle, 0}, event)); }
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
    static void begin(const weir_torch_events& events, decltype(&weir_torch_keeps_order) takes_part) {
        const std::unique_lock lock(mutex_);
        if (users_++ == 0) {
            waits_ = 0;
            unseen_.clear();
            takes_part_ = takes_part;
            events_ = std::make_unique<torch_events>(events);
            program_ = std::make_unique<ordered_program>(*events_);
            is_active_ = true;
        }
    }
    static void end() {
        const std::unique_lock lock(mutex_);
        if (--users_ != 0) {
            return;
        }
        is_active_ = false;
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
    /// Calls `act(program)`. If it fails, the host waits for the device, which orders everything. False: nothing is kept in order.
    template <class Act>
    static bool act(int device, Act&& act) noexcept {
        const std::shared_lock lock(mutex_);
        if (!program_) {
            return false;
        }
        try {
            act(*program_);
        } catch (...) {
            events_->synchronize_device(device);
        }
        return true;
    }
    [[nodiscard]] static bool is_active() noexcept { return is_active_.load(std::memory_order_relaxed); }
    /// Whether what the calling thread puts into the stream is ordered. Null: what the host does.
    [[nodiscard]] static bool takes_part(weir_torch_stream* on) { return is_active() && takes_part_.load()(on) != 0; }

private:
    static inline std::atomic<bool> is_active_{false};
    static inline std::atomic<decltype(&weir_torch_keeps_order)> takes_part_{nullptr};
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
        program.operation_ends(stream(on), number, accesses_of(program, std::span(results, count)), on.may_end != 0);
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

/// The order of the program, for Weir's operations on memory that torch shares with it: on whatever stream they are.
class shared_order final : public weir::detail::package_order {
    using shared_access = weir::detail::shared_access;

public:
    explicit shared_order(bool for_torch) noexcept : for_torch_(for_torch) {}

    [[nodiscard]] bool sees_all() const noexcept override { return for_torch_; }
    std::unique_ptr<operation> begin(const weir::stream& on, std::span<const shared_access> accesses) override {
        if (on.device().kind() != device_kind::cuda || !ordered::is_active()) {
            return nullptr;
        }
        weir_torch_stream by = known_as(on);
        if (!ordered::takes_part(&by)) {
            return nullptr;
        }
        auto made = std::make_unique<begun>(by);
        const bool is_ordered = ordered::act(by.device, [&](ordered_program& program) {
            std::vector<watched_access> all;
            all.reserve(accesses.size());
            for (const shared_access& one : accesses) {
                all.push_back(watched(one));
            }
            made->number = program.operation_begins(stream(by), all);
        });
        return is_ordered ? std::move(made) : nullptr;
    }
    bool host_waits(std::span<const shared_access> accesses) override {
        return ordered::takes_part(nullptr) && ordered::act(0, [&](ordered_program& program) {
                   for (const shared_access& one : accesses) {
                       program.host_access(watched(one));
                   }
               });
    }
    std::optional<bool> is_over(std::span<const shared_access> accesses) override {
        std::optional<bool> over;
        if (ordered::takes_part(nullptr)) {
            ordered::act(0, [&](ordered_program& program) {
                over = std::all_of(accesses.begin(), accesses.end(),
                                   [&](const shared_access& one) { return program.is_over(watched(one)); });
            });
        }
        return over;
    }

private:
    /// Until it is in its stream.
    struct begun final : operation {
        explicit begun(weir_torch_stream by) : on(by) {}
        ~begun() override { ends(on, number, nullptr, 0); }

        weir_torch_stream on;
        std::uint64_t number = 0;
    };

    /// Torch calls the legacy default stream 0.
    static weir_torch_stream known_as(const weir::stream& on) {
        const auto handle = reinterpret_cast<std::uint64_t>(on.handle());
        return {on.device().id(), handle == 1 ? 0 : handle, 0};
    }
    static watched_access watched(const shared_access& one) {
        return {one.address, one.bytes, one.where, one.mode, true};
    }

    bool for_torch_;
};

constexpr weir_torch_ordering ordering{
    begins,         ends,       leaves,       host_needs,         allocated,           freed,
    event_recorded, event_gone, stream_waits, event_synchronized, stream_synchronized, device_synchronized,
    unseen};

}  // namespace

weir::detail::package_order* torch_order(bool for_torch) noexcept {
    static shared_order& of_torch = *new shared_order(true);
    static shared_order& of_others = *new shared_order(false);
    return !ordered::is_active() ? nullptr : for_torch ? &of_torch : &of_others;
}

void bind_torch_order(nb::module_& m) {
    m.def(
        "_torch_ordering", [] { return reinterpret_cast<std::uintptr_t>(&ordering); },
        "The address of what the hooks in torch call to keep a program in order (weir/_torch_hooks/hooks.h).");
    m.def(
        "_torch_order_begin",
        [](std::uintptr_t events, std::uintptr_t takes_part) {
            ordered::begin(*reinterpret_cast<const weir_torch_events*>(events),
                           reinterpret_cast<decltype(&weir_torch_keeps_order)>(takes_part));
        },
        nb::arg("events"), nb::arg("takes_part"),
        "Begins to order what the hooks report, by torch's events: the addresses of their table, and of\n"
        "weir_torch_keeps_order (weir/_torch_hooks/hooks.h).");
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
