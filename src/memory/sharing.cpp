#include "weir/sharing.hpp"

#include <atomic>
#include <mutex>
#include <utility>

#include "backend/timeline.hpp"
#include "order/history.hpp"
#include "runtime/observer.hpp"
#include "runtime/package_ties.hpp"
#include "runtime/resource.hpp"
#include "runtime/stream_state.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

order::access_mode mode_of(package_use use) noexcept {
    return use == package_use::reads ? order::access_mode::read : order::access_mode::write;
}

/// Whoever conflicts with `part` from now on comes after `end`.
void note_use(runtime::resource& of, const order::footprint& part, order::access_mode mode, const order::mark& end) {
    if (end.at.at == 0) {
        return;  // before everything
    }
    const std::lock_guard lock(of.mutex);
    of.history.reserve(1);
    of.history.record(part, mode, end, backend::timeline_table::instance(), order::accessor::package);
    runtime::observers::tell([&](runtime::observer& one) { one.package_used(of.id(), part, mode, end.at); });
}

void add(const buffer& memory, const runtime::package_tie& tie) {
    const std::lock_guard lock(memory.resource()->mutex);
    memory.resource()->tie(tie);
}

order::mark mark_of(const event& upto) {
    const completion recorded = upto.recorded();
    return {{recorded.timeline(), recorded.epoch()}, recorded.known()};
}

}  // namespace

void detail::expect_package(const package* one) {
    if (one == nullptr) {
        throw argument_error("memory that is shared needs the package that shares it: pass a std::shared_ptr to it");
    }
}

void detail::tie(const buffer& memory, std::shared_ptr<package> to, package_use use, const source_location& where) {
    if (!memory) {
        return;
    }
    // What the package did last it did on the stream that is current now; later on another one may be.
    if (const std::optional<stream> current = to->current_stream(memory.device())) {
        used_on(memory, *current, package_use::writes, where);
    }
    add(memory, {std::move(to), {0, memory.bytes()}, mode_of(use), &memory.device().state()});
}

struct live_export::state {
    buffer memory;
    runtime::package_tie tie;
    state* next = nullptr;  ///< of those that are kept for ever
};

live_export::live_export() noexcept = default;

live_export::live_export(const buffer& of, std::shared_ptr<package> with, package_use use)
    : live_export(of, {0, of.bytes()}, std::move(with), use) {}

live_export::live_export(const buffer& of, const order::footprint& part, std::shared_ptr<package> with,
                         package_use use) {
    detail::expect_package(with.get());
    if (of) {
        state_ =
            std::make_unique<state>(state{of, {std::move(with), part, mode_of(use), &of.device().state()}, nullptr});
        add(of, state_->tie);
    }
}

live_export::live_export(live_export&& other) noexcept = default;

live_export& live_export::operator=(live_export&& other) noexcept {
    live_export old(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
}

live_export::~live_export() {
    if (!state_) {
        return;
    }
    try {
        end();
    } catch (...) {
        // Nobody knows when the package is through with it: kept for ever, in sight of whoever looks for leaks.
        static std::atomic<state*> kept{nullptr};
        state* const one = state_.release();
        one->next = kept.load(std::memory_order_relaxed);
        while (!kept.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
}

void live_export::untie() noexcept {
    const std::unique_ptr<state> ended = std::move(state_);
    std::shared_ptr<package> with;  // goes under no lock
    const std::lock_guard lock(ended->memory.resource()->mutex);
    with = ended->memory.resource()->untie(ended->tie);
}

void live_export::used_on(const stream_ref& by, bool exclusive, source_location where) {
    if (state_) {
        note_use(*state_->memory.resource(), state_->tie.where, state_->tie.mode, by.state().now(where));
        if (exclusive) {
            untie();
        }
    }
}

void live_export::used_on(const event& upto, bool exclusive) {
    if (state_) {
        note_use(*state_->memory.resource(), state_->tie.where, state_->tie.mode, mark_of(upto));
        if (exclusive) {
            untie();
        }
    }
}

void live_export::end(source_location where) {
    if (!state_) {
        return;
    }
    if (const std::optional<stream> current = state_->tie.with->current_stream(state_->memory.device())) {
        used_on(*current, false, where);
    }
    untie();
}

void used_on(const buffer& memory, const stream_ref& by, package_use use, source_location where) {
    if (runtime::resource* const target = memory.resource()) {
        note_use(*target, {0, memory.bytes()}, mode_of(use), by.state().now(where));
    }
}

void used_on(const buffer& memory, const event& upto, package_use use) {
    if (runtime::resource* const target = memory.resource()) {
        note_use(*target, {0, memory.bytes()}, mode_of(use), mark_of(upto));
    }
}

}  // namespace weir
