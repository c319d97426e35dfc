#include "weir/sharing.hpp"
#include "weir/completion.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "memory/quarantine.hpp"
#include "observe/observers.hpp"
#include "order/history.hpp"
#include "runtime/lifetime/package_ties.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/observed.hpp"
#include "weir/detail/package_order.hpp"
#include "weir/error.hpp"
#include "weir/token.hpp"

namespace weir {

namespace {

order::access_mode mode_of(package_use use) noexcept {
    return use == package_use::reads ? order::access_mode::read : order::access_mode::write;
}

/// Records the package's use: accesses that conflict with `part` from now on come after `end`.
void note_use(runtime::resource& of, const order::footprint& part, order::access_mode mode, const order::mark& end) {
    if (end.at.at == 0) {
        return;  // "before everything"
    }
    if (!observe::observers::any() && backend::timeline_table::instance().is_complete(end.at)) {
        return;  // nothing would wait for it
    }
    const std::lock_guard lock(of.mutex);
    of.history.reserve(1);
    of.history.record(part, mode, end, backend::timeline_table::instance(), order::accessor::package);
    observe::observers::notify([&](observe::observer& one) { one.package_used(of.id(), part, mode, end.at); });
}

/// Under the lock of `to`.
void add_tie(runtime::resource& to, runtime::package_tie tie) {
    to.tie(std::move(tie));
    if (const runtime::package_tie* const known = to.packages().with_memory()) {
        observe::observers::notify([&](observe::observer& one) {
            one.shares(to.id(), to.size(), runtime::sharing_of(*known), known->address);
        });
    }
}

void add(runtime::resource& to, const runtime::package_tie& tie) {
    const std::lock_guard lock(to.mutex);
    add_tie(to, tie);
}

std::uintptr_t address_of(const buffer& memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory.device_data());
}

order::mark end_of(const event& upto) {
    const completion recorded = upto.recorded();
    return {{recorded.timeline(detail::key), recorded.epoch(detail::key)}, recorded.known(detail::key)};
}

}  // namespace

void detail::expect_package(const package* one) {
    if (one == nullptr) {
        throw argument_error("memory that is shared needs the package that shares it: pass a std::shared_ptr to it");
    }
}

bool is_read_only(const buffer& memory) {
    if (memory.resource(detail::key) == nullptr || !memory.resource(detail::key)->packages().any()) {
        return false;
    }
    const std::lock_guard lock(memory.resource(detail::key)->mutex);
    const std::span<const runtime::package_tie> all = memory.resource(detail::key)->packages().all();
    return std::any_of(all.begin(), all.end(),
                       [](const runtime::package_tie& one) { return one.rights != runtime::tie_rights::writing; });
}

void detail::tie(const buffer& memory, std::shared_ptr<package> to, package_use use, import_access allowed,
                 const source_location& where, const std::optional<device>& from) {
    if (!memory) {
        return;
    }
    const device on = from.value_or(memory.device());
    // The package's work so far is on the stream that is current now; later another stream may be current. Where its accesses are known,
    // each operation is ordered by these.
    const package_order* const order = to->order();
    if (order == nullptr || !order->sees_all()) {
        if (const std::optional<stream> current = to->current_stream(on)) {
            used_on(memory, *current, package_use::writes, where);
        }
    }
    runtime::package_tie made;
    made.address = address_of(memory);
    made.with = std::move(to);
    made.where = {0, memory.bytes()};
    made.mode = mode_of(use);
    made.device = &on.state(detail::key);
    made.rights = allowed == import_access::writable ? runtime::tie_rights::writing : runtime::tie_rights::reading;
    const std::lock_guard lock(memory.resource(detail::key)->mutex);
    if (!memory.resource(detail::key)->packages().contains(made)) {
        add_tie(*memory.resource(detail::key), std::move(made));
    }
}

void detail::gather(package& from, const buffer& memory, const stream& on) {
    package_order* const order = from.order();
    if (order != nullptr && memory) {
        const shared_access whole{address_of(memory), memory.bytes(), {0, memory.bytes()}, access_mode::write};
        static_cast<void>(order->begin(on, {&whole, 1}));  // an operation that does nothing
    }
}

struct live_export::state {
    buffer memory;
    std::optional<token> instead;  ///< a token, and no memory
    runtime::package_tie tie;
    state* next = nullptr;  ///< in the list of states that are kept for ever

    [[nodiscard]] runtime::resource& of() const noexcept {
        return instead ? *instead->resource(detail::key) : *memory.resource(detail::key);
    }
    [[nodiscard]] std::optional<stream> current_stream() const {
        return tie.with->current_stream(device(detail::key, *tie.device));
    }
};

live_export::live_export() noexcept = default;

live_export::live_export(const buffer& of, std::shared_ptr<package> with, package_use use)
    : live_export(of, byte_range{0, of.bytes()}, std::move(with), use) {}

live_export::live_export(const buffer& of, byte_range part, std::shared_ptr<package> with, package_use use)
    : live_export(detail::key, of, order::footprint{part.begin, part.end}, of.device(), std::move(with), use) {}

live_export::live_export(detail::passkey /*key*/, const buffer& of, const order::footprint& part,
                         const weir::device& from, std::shared_ptr<package> with, package_use use) {
    detail::expect_package(with.get());
    if (of) {
        state_ = std::make_unique<state>(state{of,
                                               std::nullopt,
                                               {std::move(with), part, mode_of(use), &from.state(detail::key),
                                                runtime::tie_rights::writing, true, address_of(of)},
                                               nullptr});
        add(*of.resource(detail::key), state_->tie);
    }
}

live_export::live_export(detail::passkey /*key*/, const token& of, const weir::device& from,
                         std::shared_ptr<package> with, package_use use) {
    detail::expect_package(with.get());
    runtime::resource& shared = of.expect_resource(detail::key);
    // Member by member: of one whole initializer GCC 12 says that a part of it may be uninitialized.
    auto made = std::make_unique<state>();
    made->instead = of;
    made->tie.with = std::move(with);
    made->tie.where = {0, 1};
    made->tie.mode = mode_of(use);
    made->tie.device = &from.state(detail::key);
    made->tie.exported = true;
    add(shared, made->tie);
    state_ = std::move(made);
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
        if (!state_->instead && memory::is_lent_out(state_->memory)) {
            // Its stream is being captured, say. The tie stays as long as the memory, and quarantine comes after all that is in the contexts.
            state_.reset();
            return;
        }
        // Nothing says when the package is done with the memory: it is kept for ever, reachable, so that a leak checker does not report it.
        static std::atomic<state*> kept{nullptr};
        state* const one = state_.release();
        one->next = kept.load(std::memory_order_relaxed);
        while (!kept.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
        }
    }
}

void live_export::untie() noexcept {
    const std::unique_ptr<state> ended = std::move(state_);
    std::shared_ptr<package> with;  // released after the lock
    const std::lock_guard lock(ended->of().mutex);
    with = ended->of().untie(ended->tie);
}

void live_export::used_on(const stream_ref& by, bool exclusive, source_location where) {
    if (state_) {
        note_use(state_->of(), state_->tie.where, state_->tie.mode, by.state(detail::key).now(where));
        if (exclusive) {
            untie();
        }
    }
}

void live_export::used_on(const event& upto, bool exclusive) {
    if (state_) {
        note_use(state_->of(), state_->tie.where, state_->tie.mode, end_of(upto));
        if (exclusive) {
            untie();
        }
    }
}

void live_export::end(source_location where) {
    if (!state_) {
        return;
    }
    if (is_tied()) {  // else end_exports has ended it, and the package's work was recorded then
        if (const std::optional<stream> current = state_->current_stream()) {
            detail::gather(*state_->tie.with, state_->memory, *current);
            used_on(*current, false, where);
        }
    }
    untie();
}

bool live_export::is_tied() const {
    runtime::resource& of = state_->of();
    const std::lock_guard lock(of.mutex);
    return of.packages().contains(state_->tie);
}

void end_exports(const buffer& memory) {
    if (runtime::resource* const of = memory.resource(detail::key)) {
        std::vector<runtime::package_tie> ended;  // released after the lock
        {
            const std::lock_guard lock(of->mutex);
            ended = of->untie_exports();
        }
        memory::take_back(memory);
    }
}

void used_on(const buffer& memory, const stream_ref& by, package_use use, source_location where) {
    if (runtime::resource* const target = memory.resource(detail::key)) {
        note_use(*target, {0, memory.bytes()}, mode_of(use), by.state(detail::key).now(where));
    }
}

void used_on(const buffer& memory, const event& upto, package_use use) {
    if (runtime::resource* const target = memory.resource(detail::key)) {
        note_use(*target, {0, memory.bytes()}, mode_of(use), end_of(upto));
    }
}

}  // namespace weir
