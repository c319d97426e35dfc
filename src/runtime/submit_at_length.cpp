#include "runtime/submit_at_length.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "order/mode.hpp"
#include "runtime/device_state.hpp"
#include "runtime/failures.hpp"
#include "runtime/foreign_visit.hpp"
#include "runtime/fork.hpp"
#include "runtime/host.hpp"
#include "runtime/host_copies.hpp"
#include "runtime/late.hpp"
#include "runtime/observer.hpp"
#include "runtime/ordering.hpp"
#include "runtime/resource.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"

namespace weir::runtime {

namespace {

/// The resources of an operation, and what there is to know of them before anything is locked, found out in one look at each;
/// then the lock of all of them, taken one by one in the order of their addresses (rule O8).
class operands {
public:
    operands(const stream_state& stream, std::span<const access_request> accesses) {
        const bool are_few = accesses.size() <= few_.size();
        if (!are_few) [[unlikely]] {
            many_ = std::make_unique<resource*[]>(accesses.size());
            list_ = many_.get();
        }
        const device_state* const own = stream.memory_space();
        for (const access_request& access : accesses) {
            resource* const target = access.target;
            if (target == nullptr) [[unlikely]] {
                continue;
            }
            add(target, are_few);
            const device_state* const memory = target->memory_of();
            elsewhere_ = elsewhere_ || (memory != own && memory != nullptr);
            shared_ = shared_ || target->packages().any();
        }
        if (!are_few) [[unlikely]] {
            std::sort(list_, list_ + count_, std::less<>());
            count_ = static_cast<std::size_t>(std::unique(list_, list_ + count_) - list_);
        }
    }
    ~operands() = default;
    operands(const operands&) = delete;
    operands& operator=(const operands&) = delete;

    /// Whether some lie in memory of another device than the stream's.
    [[nodiscard]] bool elsewhere() const noexcept { return elsewhere_; }
    /// Whether packages share some.
    [[nodiscard]] bool shared() const noexcept { return shared_; }
    /// Within a fork_section.
    void lock() noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            list_[i]->mutex.within_section().lock();
        }
    }
    void unlock() noexcept {
        for (std::size_t i = count_; i > 0; --i) {
            list_[i - 1]->mutex.within_section().unlock();
        }
    }

private:
    /// At its place among those that are there; else at the end: many are sorted later.
    void add(resource* target, bool at_its_place) noexcept {
        std::size_t place = count_;
        while (place != 0 && at_its_place && std::less<>()(target, list_[place - 1])) {
            --place;
        }
        if (place != 0 && list_[place - 1] == target) {
            return;
        }
        for (std::size_t i = count_++; i != place; --i) {
            list_[i] = list_[i - 1];
        }
        list_[place] = target;
    }

    std::array<resource*, 8> few_;  // filled as far as it is used
    std::unique_ptr<resource*[]> many_;
    resource** list_ = few_.data();
    std::size_t count_ = 0;
    bool elsewhere_ = false;
    bool shared_ = false;
};

/// Who orders the accesses of an operation.
class modes {
public:
    explicit modes(const stream_state& of)
        : unless_the_array_says_(
              order::effective_mode(std::nullopt, of.ordering(), scope_ordering(), process_ordering())) {}
    [[nodiscard]] ordering_mode of(const access_request& access) const noexcept {
        return order::effective_mode(access.target->ordering(), std::nullopt, std::nullopt, unless_the_array_says_);
    }

private:
    ordering_mode unless_the_array_says_;
};

/// Meets the packages that share operands.
void meet_packages(late<foreign_visit>& visit, const submission& what, const modes& mode, bool safety) {
    for (const access_request& access : what.accesses) {
        if (access.target == nullptr || !access.target->packages().any()) {
            continue;
        }
        const bool own = mode.of(access) == ordering_mode::automatic;
        if (own || safety) {
            if (!visit) {
                visit.make();
            }
            visit->meet(access, !own);
        }
    }
}

/// The first accesses of an operation that Weir orders, a bit for each: what was found of them once, as the program may change its
/// mind meanwhile. What an access was not ordered after must not be forgotten for it.
using automatic_ones = std::uint64_t;

/// Tells `plan` everything that the operation must come after, and calls `with(access)` for each operand. `safety`: whoever
/// orders an access, hazards count.
template <class With>
[[gnu::always_inline]] inline automatic_ones state_needs(order::plan& plan, const submission& what,
                                                         const late<foreign_visit>& visit, const modes& mode,
                                                         bool safety, With&& with) {
    if (visit) {
        visit->state(plan, safety);
    }
    automatic_ones automatic = 0;
    automatic_ones bit = 1;  // none beyond the first accesses
    for (const access_request& access : what.accesses) {
        if (access.target != nullptr) {
            const bool is_automatic = mode.of(access) == ordering_mode::automatic;
            automatic |= is_automatic ? bit : 0;
            access.target->history.require(plan, access.where, access.mode, safety || is_automatic);
            with(access);
        }
        bit <<= 1;
    }
    for (const completion& one : what.after) {
        plan.need({{one.timeline(), one.epoch()}, one.known().get()}, order::reason::dependency);
    }
    plan.resolve();
    return automatic;
}

/// What observers are told of one operation. Made before anything has changed, since it allocates.
class observation {
    using point = frontiers::point;

public:
    observation(stream_state& stream, const submission& what, const late<foreign_visit>& visit, const order::plan& plan,
                const modes& mode, automatic_ones automatic, bool safety)
        : elisions_(plan.elisions()), entries_(visit ? visit->entries() : std::vector<point>()) {
        automatic_ones bit = 1;
        for (const access_request& access : what.accesses) {
            if (access.target != nullptr) {
                const ordering_mode asked = bit == 0 ? mode.of(access) : ordering_mode::manual;
                add({access.target->id(), access.target->size(), access.where, access.mode,
                     (automatic & bit) != 0 ? ordering_mode::automatic : asked, access.target->is_internal()});
            }
            bit <<= 1;
        }
        // What the program's own choice of ordering needs, without the waits for safety's sake.
        order::plan own = stream.sequence.next(backend::timeline_table::instance());
        if (safety) {
            static_cast<void>(state_needs(own, what, visit, mode, false, [](const access_request&) {}));
        }
        for (const order::wait& issued : plan.waits()) {
            const point target = issued.target.at;
            const bool wanted = !safety || std::any_of(own.waits().begin(), own.waits().end(), [&](const auto& one) {
                return order::covers(one.target, target);
            });
            waits_.push_back({target, issued.why, !wanted});
        }
    }

    void tell(const stream_state& stream, frontiers::epoch at, const submission& what) const noexcept {
        const observed_operation told{&stream.info(), at,     what.from, what.kind, accesses_,
                                      what.after,     waits_, elisions_, entries_};
        observers::tell([&](observer& one) { one.operation(told); });
    }

private:
    /// One access for each range: an operation that names the same elements twice (`x * x`) uses them once. If it writes them
    /// at all, the access is a write, as that of `inout` is.
    void add(const observed_access& one) {
        const auto same = std::find_if(accesses_.begin(), accesses_.end(), [&](const observed_access& other) {
            return other.resource == one.resource && other.where == one.where && other.ordering == one.ordering;
        });
        if (same == accesses_.end()) {
            accesses_.push_back(one);
        } else if (one.mode == order::access_mode::write) {
            same->mode = one.mode;
        }
    }

    std::vector<observed_access> accesses_;
    std::vector<observed_wait> waits_;
    std::span<const order::elision> elisions_;
    std::vector<point> entries_;
};

[[noreturn]] void refuse_memory(const stream_state& stream, const submission& what, const device_state& memory) {
    const std::string own(stream.info().device);
    const std::string other(memory.driver().name());
    const std::string label = what.from.label == nullptr ? "operation" : what.from.label;
    throw argument_error("the operation \"" + label + "\" of the stream \"" + std::string(stream.info().name) +
                         "\" runs on " + own + " and declares memory of " + other + ", which " + own +
                         " cannot reach: copy it to an array on " + own +
                         " with weir::copy(stream, to, from), or enqueue the operation on a stream of " + other);
}

/// Throws argument_error if the operation is code of the host and its device runs none.
void expect_runnable(const stream_state& stream, const submission& what) {
    const bool is_host_code = what.work.type != nullptr && what.work.type->nature == weir::detail::task_nature::work;
    if (!is_host_code || what.kind != work_kind::device || stream.device().driver().runs_host_code()) {
        return;
    }
    const std::string own(stream.info().device);
    const std::string label = what.from.label == nullptr ? "operation" : what.from.label;
    throw argument_error("the operation \"" + label + "\" is code for the host, and " + own +
                         " runs none: launch a weir::kernel, compile the program with nvcc (parallel_for with a "
                         "__host__ __device__ lambda), declare work of others with weir::access, or enqueue it as a "
                         "host_task");
}

/// Throws argument_error if the operation declares memory that its device cannot reach.
[[gnu::noinline]] void expect_reachable(const stream_state& stream, const submission& what) {
    const device_state* const own = stream.memory_space();
    const device_state* other = nullptr;
    bool any_own = false;
    for (const access_request& access : what.accesses) {
        const device_state* const memory = access.target == nullptr ? nullptr : access.target->memory_of();
        if (memory == own || memory == nullptr) {
            any_own = any_own || memory == own;
        } else {
            other = memory;
        }
    }
    if (other == nullptr) {
        return;
    }
    other->expect_usable();
    if (what.kind == work_kind::host_task) {
        return;
    }
    // One side of a copy is the stream's own; what a copy does not declare is memory of the host.
    const bool from_host = what.accesses.size() == 1 && own == &cpu_device().memory_space();
    if (what.kind != work_kind::copy || !(any_own || from_host)) {
        refuse_memory(stream, what, *other);
    }
}

/// What of an operation is locked while it gets its place: its operands, then its stream. Within a fork_section.
class locks {
public:
    locks(operands& resources, stream_state& stream, bool with_stream = true) noexcept
        : resources_(&resources), stream_(&stream.mutex.within_section()), has_stream_(with_stream) {
        resources.lock();
        if (with_stream) {
            stream_->lock();
        }
    }
    ~locks() {
        if (has_resources_) {
            unlock();
        }
    }
    locks(const locks&) = delete;
    locks& operator=(const locks&) = delete;

    /// Once at the most.
    void unlock() noexcept {
        if (has_stream_) {
            stream_->unlock();
        }
        resources_->unlock();
        has_resources_ = false;
    }

private:
    operands* resources_;
    backend::raw_hot_mutex* stream_;
    bool has_stream_;
    bool has_resources_ = true;
};

/// Whether somebody is told of an operation, and whether hazards count whoever orders its accesses.
struct onlookers {
    bool any = observers::any();
    bool want_safety = any && observers::want_safety();
};

/// The way of any operation. All locks are held, those of the packages that `visit` meets, too.
[[gnu::hot]] completion submit_planned(stream_state& stream, const submission& what, const onlookers& by,
                                       late<foreign_visit>& visit, locks& held) {
    const auto [observed, safety] = by;
    const order::watermarks& completed = backend::timeline_table::instance();
    const modes mode(stream);
    // What can fail comes first and changes nothing.
    order::plan plan = stream.sequence.next(completed, observed);
    bool seen_by_host = false;
    const automatic_ones automatic = state_needs(plan, what, visit, mode, safety, [&](const access_request& access) {
        access.target->history.reserve(what.accesses.size());
        seen_by_host = seen_by_host || access.target->views().conflict_with(access.where, access.mode);
    });
    stream.expect_not_behind_itself(plan.waits());
    stream.reserve_pending(what.accesses.size(), plan.waits().size() + what.after.size());
    for (const completion& one : what.after) {
        failures::expect_dependent({one.timeline(), one.epoch()});
    }
    order::clock after = plan.waits().empty() && !visit ? nullptr : plan.clock_after();
    if (visit) {
        visit->prepare({{stream.timeline(), stream.sequence.tail() + 1}, after}, completed);
    }
    late<observation> observation;
    if (observed) {
        observation.make(stream, what, visit, plan, mode, automatic, safety);
    }
    const backend::operation work{what.work, what.from, what.kind, observed && observers::want_times()};
    const bool is_straight =
        !visit && stream.straight != nullptr && stream.straight->claim(stream.sequence.tail() + 1, work, plan.waits());
    if (!is_straight) {
        stream.queue->reserve(plan.waits().size(), what.work);
    }

    // What follows cannot fail.
    if (!is_straight) {
        for (const order::wait& issued : plan.waits()) {
            stream.queue->wait(issued.target.at);
        }
    }
    order::mark end = plan.waits().empty() ? stream.sequence.reserve() : stream.sequence.reserve(std::move(after));
    {
        pending_operations::addition noted = stream.pending.begin(end.at.at, what);
        detail::shares clocks(end.known, what.accesses.size());
        automatic_ones bit = 1;
        for (const access_request& access : what.accesses) {
            if (access.target != nullptr) {
                const bool hazards = safety || (automatic & bit) != 0;
                access.target->history.record(access.where, access.mode, {end.at, clocks.take()}, completed,
                                              order::accessor::weir, hazards);
                noted.add(access);
            }
            bit <<= 1;
        }
        noted.end(plan.waits(), what.after);
    }
    if (observation) {
        observation->tell(stream, end.at.at, what);
    }
    if (!is_straight) {
        stream.queue->submit(end.at.at, work);
    }
    if (visit) {
        visit->commit(what.from);
        visit->unlock();
    }
    held.unlock();
    if (is_straight) {
        stream.straight->carry_out(end.at.at, work);
    } else {
        stream.queue->flush(end.at);
    }
    if (visit) {
        visit->publish();
    }

    if (seen_by_host || (visit && visit->must_block())) {
        host_wait_or_end(end.at, what.from.where);
    }
    if (observed) {
        verdicts::settle();
    }
    return {end.at.timeline, end.at.at, std::move(end.known)};
}

/// Whether the host copies at this moment what the access is to change. Its lock is held.
[[nodiscard]] bool is_copied(const access_request& access) noexcept {
    return access.target->views().copy_conflicts_with(access.where, access.mode);
}

/// Whether it does so with any of the operation's. All locks are held.
[[nodiscard]] bool is_being_copied(const submission& what) noexcept {
    return std::any_of(what.accesses.begin(), what.accesses.end(),
                       [](const access_request& access) { return access.target != nullptr && is_copied(access); });
}

/// Blocks until it does not. Under no lock.
[[gnu::cold, gnu::noinline]] void wait_for_copies(const submission& what) {
    host_copies::wait_while([&] {
        return std::any_of(what.accesses.begin(), what.accesses.end(), [](const access_request& access) {
            if (access.target == nullptr) {
                return false;
            }
            const std::lock_guard lock(access.target->mutex);
            return is_copied(access);
        });
    });
}

/// Packages share operands: they are asked for their work first. Nothing if the host copies an operand just then.
[[gnu::noinline]] std::optional<completion> submit_among_packages(stream_state& stream, const submission& what,
                                                                  const onlookers& by, operands& resources) {
    late<foreign_visit> visit;
    meet_packages(visit, what, modes(stream), by.want_safety);
    if (visit) {
        visit->enter(&stream, what.from.where);
    }
    stream.make_ready(what.from.where);
    const detail::fork_section whole;  // one for all locks
    locks held(resources, stream, !visit);
    if (visit) {
        visit->lock(stream);
    }
    stream.expect_open();
    if (is_being_copied(what)) {
        return std::nullopt;
    }
    return submit_planned(stream, what, by, visit, held);
}

/// The same where none do.
std::optional<completion> submit_among_streams(stream_state& stream, const submission& what, const onlookers& by,
                                               operands& resources) {
    stream.make_ready(what.from.where);
    const detail::fork_section whole;  // one for all locks
    locks held(resources, stream);
    stream.expect_open();
    if (is_being_copied(what)) {
        return std::nullopt;
    }
    late<foreign_visit> none;
    return submit_planned(stream, what, by, none, held);
}

}  // namespace

[[gnu::hot]] completion submit_at_length(stream_state& stream, const submission& what) {
    fork_guard::expect_usable();
    expect_runnable(stream, what);
    operands resources(stream, what.accesses);
    if (resources.elsewhere()) {
        expect_reachable(stream, what);
    }
    const onlookers by;
    const auto submit = resources.shared() ? submit_among_packages : submit_among_streams;
    for (;;) {
        if (std::optional<completion> done = submit(stream, what, by, resources)) {
            return *std::move(done);
        }
        wait_for_copies(what);
    }
}

}  // namespace weir::runtime
