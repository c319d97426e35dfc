#include "runtime/failures/failures.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "runtime/diagnostics/debug_log.hpp"
#include "runtime/streams/reserved_map.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

using key = std::pair<frontiers::timeline_id, frontiers::epoch>;
using pending_failures = backend::queue_events;

struct entry {
    frontiers::point at;
    failure_ptr what;
    std::uint64_t serial = 0;  ///< counts failures: a higher number is a newer failure
    /// Changes with each operation that may depend on it; 0: no operation that has not run depends on it.
    std::uint64_t awaited = 0;
    entry* previous = nullptr;  ///< in the list of awaited entries
    entry* next = nullptr;
    bool reported = false;
};
using entries = reserved_map<key, entry>::map;

/// Unreported failures that had to make room for others. Takes no memory: the first ones are kept, the rest is counted.
class displaced_failures {
public:
    void add(const failure_ptr& what) noexcept {
        const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count_);
        if (std::any_of(kept_.begin(), end, [&](const failure_ptr& one) { return is_reported_with(*one, *what); })) {
            return;
        }
        if (count_ == kept_.size()) {
            ++not_kept_;
            return;
        }
        kept_[count_++] = what;
    }
    /// The oldest; null if there is none.
    [[nodiscard]] const failure_ptr& first() const noexcept { return kept_.front(); }
    [[nodiscard]] std::span<const failure_ptr> all() const noexcept { return {kept_.data(), count_}; }
    /// How many were not kept. Not 0 only if there is a first one.
    [[nodiscard]] std::uint64_t not_kept() const noexcept { return not_kept_; }
    /// `first` was reported, and that `not_kept` more failed. Another thread may have reported it, too.
    void was_reported(const failure_ptr& first, std::uint64_t not_kept) noexcept {
        if (kept_.front() != first) {
            return;
        }
        std::move(kept_.begin() + 1, kept_.end(), kept_.begin());
        kept_[--count_] = nullptr;
        not_kept_ -= not_kept;
    }

private:
    /// As elsewhere, a report of one failure of a timeline stands for all that have the same reason.
    [[nodiscard]] static bool is_reported_with(const failure& one, const failure& other) noexcept {
        return one.at.timeline == other.at.timeline && &one.root() == &other.root();
    }

    std::array<failure_ptr, 16> kept_;
    std::size_t count_ = 0;
    std::uint64_t not_kept_ = 0;
};

struct failure_store {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    reserved_map<key, entry> list;
    std::uint64_t serial = 0;
    std::uint64_t awaited = 0;
    entry* first_awaited = nullptr;  ///< a list of its own, because few among thousands are awaited
    std::uint64_t cleaned = 0;       ///< the serial at the last search for old entries
    std::uint64_t unreported = 0;    ///< entries that are not reported
    displaced_failures displaced;
};

/// At most so many failures are kept on which no operation depends: the oldest are dropped first.
constexpr std::uint64_t most = 4096;

failure_store& all_failures() {
    static auto* const one = new failure_store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const auto& failures_at_start = all_failures();

key key_of(frontiers::point at) noexcept { return {at.timeline, at.at}; }

void await(failure_store& in, entry& one) noexcept {
    if (one.awaited == 0) {
        one.previous = nullptr;
        one.next = in.first_awaited;
        if (one.next != nullptr) {
            one.next->previous = &one;
        }
        in.first_awaited = &one;
        pending_failures::add_pending_failure();
    }
    one.awaited = ++in.awaited;
}

void await_no_longer(failure_store& in, entry& one) noexcept {
    if (one.awaited == 0) {
        return;
    }
    one.awaited = 0;
    (one.previous == nullptr ? in.first_awaited : one.previous->next) = one.next;
    if (one.next != nullptr) {
        one.next->previous = one.previous;
    }
    pending_failures::remove_pending_failure();
}

void mark_reported(failure_store& in, entry& one) noexcept {
    in.unreported -= one.reported ? 0 : 1;
    one.reported = true;
}

/// The entry to replace: the oldest that is reported and that no operation awaits, or else the oldest.
entries::iterator least_needed(entries& list) noexcept {
    const auto rank = [](const entry& one) { return std::pair(!one.reported || one.awaited != 0, one.serial); };
    return std::min_element(list.begin(), list.end(),
                            [&](const auto& a, const auto& b) { return rank(a.second) < rank(b.second); });
}

/// An entry for a new failure, taken from another one, when neither memory nor the reserve is left; null if there is no other.
entry* displace(failure_store& in, const key& at) noexcept {
    entries& list = in.list.entries();
    const auto old = least_needed(list);
    if (old == list.end()) {
        return nullptr;
    }
    entry& former = old->second;
    if (!former.reported) {
        in.displaced.add(former.what);
    }
    await_no_longer(in, former);
    mark_reported(in, former);
    auto node = list.extract(old);
    node.key() = at;
    node.mapped() = {};
    return &list.insert(std::move(node)).position->second;
}

void forget_old(failure_store& in) noexcept {
    if (in.serial - in.cleaned < most) {
        return;
    }
    in.cleaned = in.serial;
    entries& list = in.list.entries();
    for (auto at = list.begin(); at != list.end();) {
        entry& one = at->second;
        if (one.awaited == 0 && one.serial + most < in.serial) {
            mark_reported(in, one);
            at = list.erase(at);
        } else {
            ++at;
        }
    }
}

/// The failure `root` was reported: marks as reported all entries of the timeline with the same root.
void mark_all_reported(failure_store& in, frontiers::timeline_id timeline, const failure& root) noexcept {
    entries& list = in.list.entries();
    for (auto at = list.lower_bound({timeline, 0}); at != list.end() && at->first.first == timeline; ++at) {
        if (&at->second.what->root() == &root) {
            mark_reported(in, at->second);
        }
    }
}

/// The same for the entries next to `at`: marks one chain, not everything that ever failed on the timeline.
void mark_neighbours_reported(failure_store& in, frontiers::point at, const failure& root) noexcept {
    entries& list = in.list.entries();
    const auto found = list.find(key_of(at));
    const auto mark = [&](auto& one) {
        const bool same = one.first.first == at.timeline && &one.second.what->root() == &root;
        if (same) {
            mark_reported(in, one.second);
        }
        return same;
    };
    for (auto one = found; one != list.end() && mark(*one); ++one) {
    }
    for (auto one = std::make_reverse_iterator(found); found != list.end() && one != list.rend() && mark(*one); ++one) {
    }
}

/// Failures that were never reported and never will be: for the debug log.
class unreported_failures {
public:
    void add(const failure_ptr& one) noexcept {
        if (count_++ == 0) {
            first_ = one;
        }
    }
    void add_unknown(std::size_t more) noexcept { count_ += more; }
    /// Must be called under no lock.
    void log(const char* until) const noexcept {
        if (count_ == 0 || !has_debug_log()) {
            return;
        }
        try {
            const std::string others =
                count_ == 1 ? "" : ", and " + std::to_string(count_ - 1) + " more with it or later";
            debug_log(std::string("no call asked until ") + until + ": " + first_->error().what() + others);
        } catch (const std::exception&) {
            debug_log("no call asked about an operation that failed, and there is no memory to say which");
        }
    }

private:
    failure_ptr first_;
    std::size_t count_ = 0;
};

/// Logs the unreported failures of streams that live until the exit.
void log_unreported_at_exit() noexcept {
    unreported_failures rest;
    failure_store& kept = all_failures();
    {
        const std::lock_guard lock(kept.mutex);
        for (const auto& [at, one] : kept.list.entries()) {
            if (!one.reported) {
                rest.add(one.what);
            }
        }
        for (const failure_ptr& one : kept.displaced.all()) {
            rest.add(one);
        }
        rest.add_unknown(kept.displaced.not_kept());
    }
    rest.log("the exit of the process");
}

/// Throws `what`, which the program learns of by asking about `asked`.
[[noreturn]] void throw_reported(const failure_ptr& what, frontiers::point asked) {
    operation_error to_report = what->error();
    failure_store& kept = all_failures();
    {
        const std::lock_guard lock(kept.mutex);
        // Not always what->at: where no memory was left, one failure stands for that of an operation that depends on it.
        mark_neighbours_reported(kept, asked, what->root());
        mark_neighbours_reported(kept, what->at, what->root());
        mark_neighbours_reported(kept, what->root().at, what->root());
    }
    throw to_report;  // NOLINT(misc-throw-by-value-catch-by-reference): constructed before anything is marked as reported
}

/// The exception for a failure that had to make room, and for `not_kept` more. Throws std::bad_alloc.
operation_error displaced_error(const failure& first, std::uint64_t not_kept) {
    operation_error its_own = first.error();
    if (not_kept == 0) {
        return its_own;
    }
    const std::string others = not_kept == 1 ? "1 more operation" : std::to_string(not_kept) + " more operations";
    return {
        std::string(its_own.what()) + " And " + others + " failed, on any streams: there was no memory to keep which.",
        its_own.label(), its_own.where(), its_own.reason()};
}

/// Reports a failure that had to make room at the next question that has no other answer, about whichever stream: that is better
/// than never.
void throw_displaced() {
    failure_store& kept = all_failures();
    failure_ptr found;
    std::uint64_t not_kept = 0;
    {
        const std::lock_guard lock(kept.mutex);
        found = kept.displaced.first();
        not_kept = kept.displaced.not_kept();
    }
    if (!found) {
        return;
    }
    operation_error to_report = displaced_error(*found, not_kept);  // if this throws, the failure stays unreported
    {
        const std::lock_guard lock(kept.mutex);
        kept.displaced.was_reported(found, not_kept);
    }
    throw to_report;  // NOLINT(misc-throw-by-value-catch-by-reference): constructed before it is marked as reported
}

}  // namespace

void failures::arm() {
    failure::arm();
    static_cast<void>(all_failures());
    [[maybe_unused]] static const bool is_registered = has_debug_log() && std::atexit(log_unreported_at_exit) == 0;
}

void failures::note(frontiers::point at, const failure_ptr& what) noexcept {
    failure_store& kept = all_failures();
    const std::lock_guard lock(kept.mutex);
    any_.store(true, std::memory_order_release);
    entry* one = kept.list.find_or_add(key_of(at));
    if (one == nullptr) {
        one = displace(kept, key_of(at));
    }
    if (one == nullptr) {
        kept.displaced.add(what);
        return;
    }
    // An entry that was noted before, and is not reported, is counted already.
    kept.unreported += one->what == nullptr || one->reported ? 1U : 0U;
    one->at = at;
    one->what = what;
    one->serial = ++kept.serial;
    one->reported = false;
    await(kept, *one);
    forget_old(kept);
}

failure_ptr failures::of(frontiers::point at) noexcept {
    if (!any()) {
        return nullptr;
    }
    failure_store& kept = all_failures();
    const std::lock_guard lock(kept.mutex);
    const auto found = kept.list.entries().find(key_of(at));
    return found == kept.list.entries().end() ? nullptr : found->second.what;
}

void failures::expect_dependent(frontiers::point at) noexcept {
    if (!any()) {
        return;
    }
    failure_store& kept = all_failures();
    const std::lock_guard lock(kept.mutex);
    const auto found = kept.list.entries().find(key_of(at));
    if (found != kept.list.entries().end()) {
        await(kept, found->second);
    }
}

void failures::raise(const failure_ptr& what) { throw_reported(what, what->at); }

void failures::throw_if_failed(frontiers::point at) {
    if (const failure_ptr known = of(at)) {
        throw_reported(known, at);
    }
}

void failures::throw_first_unreported(std::span<const frontiers::point> upto) {
    if (!any()) {
        return;
    }
    failure_store& kept = all_failures();
    failure_ptr found;
    {
        const std::lock_guard lock(kept.mutex);
        entries& list = kept.list.entries();
        for (std::size_t i = 0; i < upto.size() && kept.unreported != 0; ++i) {
            const frontiers::point& last = upto[i];
            auto at = list.lower_bound({last.timeline, 0});
            const auto end = list.upper_bound(key_of(last));
            at = std::find_if(at, end, [](const auto& one) { return !one.second.reported; });
            if (at != end) {
                found = at->second.what;
                break;
            }
        }
    }
    if (!found) {
        throw_displaced();
        return;
    }
    operation_error to_report = found->error();  // if this throws, nothing was reported
    {
        const std::lock_guard lock(kept.mutex);
        for (const frontiers::point& last : upto) {
            mark_all_reported(kept, last.timeline, found->root());
        }
    }
    throw to_report;  // NOLINT(misc-throw-by-value-catch-by-reference): constructed before anything is marked as reported
}

void failures::forget_unreported(frontiers::timeline_id timeline) noexcept {
    if (!any()) {
        return;
    }
    unreported_failures its_own;
    {
        failure_store& kept = all_failures();
        const std::lock_guard lock(kept.mutex);
        entries& list = kept.list.entries();
        for (auto at = list.lower_bound({timeline, 0});
             kept.unreported != 0 && at != list.end() && at->first.first == timeline; ++at) {
            if (!at->second.reported) {
                its_own.add(at->second.what);
            }
            mark_reported(kept, at->second);
        }
    }
    its_own.log("the stream was gone");
}

failures::dependencies failures::awaited() {
    failure_store& kept = all_failures();
    dependencies found;
    const std::lock_guard lock(kept.mutex);
    for (const entry* one = kept.first_awaited; one != nullptr; one = one->next) {
        found.emplace(key_of(one->at), one->awaited);
    }
    return found;
}

void failures::no_longer_awaited(const dependencies& which) noexcept {
    failure_store& kept = all_failures();
    const std::lock_guard lock(kept.mutex);
    for (const auto& [at, number] : which) {
        const auto found = kept.list.entries().find(at);
        if (found != kept.list.entries().end() && found->second.awaited == number) {
            await_no_longer(kept, found->second);
        }
    }
}

}  // namespace weir::runtime
