#include "runtime/failures.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "backend/backend.hpp"
#include "runtime/debug_log.hpp"
#include "runtime/reserved_map.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

using key = std::pair<frontiers::timeline_id, frontiers::epoch>;
using trouble = backend::queue_events;

struct entry {
    frontiers::point at;
    failure_ptr what;
    std::uint64_t serial = 0;   ///< counts failures: tells old ones from new ones
    std::uint64_t awaited = 0;  ///< changes with each operation that may depend on it; 0: none that has not run
    entry* previous = nullptr;  ///< in the list of those that are awaited
    entry* next = nullptr;
    bool reported = false;
};
using entries = reserved_map<key, entry>::map;

struct failure_store {
    detail::mutex mutex;  ///< guards what follows; a leaf in the lock order
    reserved_map<key, entry> list;
    std::uint64_t serial = 0;
    std::uint64_t awaited = 0;
    entry* first_awaited = nullptr;  ///< a list, since there are few among thousands
    std::uint64_t cleaned = 0;       ///< the serial when the list was last looked through
    std::uint64_t unreported = 0;    ///< entries that are not reported
    failure_ptr displaced;           ///< one that had no room any more, and that nobody was told of
};

/// Of those on which no operation depends, more are not kept: the oldest go first.
constexpr std::uint64_t most = 4096;

failure_store& all_failures() {
    static auto* const one = new failure_store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

// So that no fork finds it half made.
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
        trouble::more_trouble();
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
    trouble::less_trouble();
}

void mark_reported(failure_store& in, entry& one) noexcept {
    in.unreported -= one.reported ? 0 : 1;
    one.reported = true;
}

/// The one that is to give way: the oldest of those that the program knows of and that no operation waits for, or else the oldest.
entries::iterator least_needed(entries& list) noexcept {
    const auto rank = [](const entry& one) { return std::pair(!one.reported || one.awaited != 0, one.serial); };
    return std::min_element(list.begin(), list.end(),
                            [&](const auto& a, const auto& b) { return rank(a.second) < rank(b.second); });
}

/// The entry for a new failure, in place of another one, where there is neither memory nor a reserve; null if there is no other.
entry* displace(failure_store& in, const key& at) noexcept {
    entries& list = in.list.entries();
    const auto old = least_needed(list);
    if (old == list.end()) {
        return nullptr;
    }
    entry& former = old->second;
    if (!former.reported && !in.displaced) {
        in.displaced = std::move(former.what);
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

/// Somebody has been told why: the others of the timeline that failed for the same reason have no news.
void mark_all_reported(failure_store& in, frontiers::timeline_id timeline, const failure& root) noexcept {
    entries& list = in.list.entries();
    for (auto at = list.lower_bound({timeline, 0}); at != list.end() && at->first.first == timeline; ++at) {
        if (&at->second.what->root() == &root) {
            mark_reported(in, at->second);
        }
    }
}

/// The same for those right before and behind `at`: of a chain, not of all that ever failed there.
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

/// What nobody was told of and nobody will be: for the debug log.
class untold {
public:
    void add(const failure_ptr& one) noexcept {
        if (count_++ == 0) {
            first_ = one;
        }
    }
    /// Under no lock.
    void log(const char* until) const noexcept {
        if (count_ == 0 || !has_debug_log()) {
            return;
        }
        try {
            const std::string others =
                count_ == 1 ? "" : ", and " + std::to_string(count_ - 1) + " more with it or later";
            debug_log(std::string("nobody asked until ") + until + ": " + first_->error().what() + others);
        } catch (const std::exception&) {
            debug_log("nobody asked about an operation that failed, and there is no memory to say which");
        }
    }

private:
    failure_ptr first_;
    std::size_t count_ = 0;
};

/// Streams that live until the end have their failures noted then.
void log_untold_at_exit() noexcept {
    untold rest;
    failure_store& kept = all_failures();
    {
        const std::lock_guard lock(kept.mutex);
        for (const auto& [at, one] : kept.list.entries()) {
            if (!one.reported) {
                rest.add(one.what);
            }
        }
    }
    rest.log("the exit of the process");
}

/// Throws `what`, which the program gets to know by asking about `asked`.
[[noreturn]] void throw_told(const failure_ptr& what, frontiers::point asked) {
    operation_error told = what->error();
    failure_store& kept = all_failures();
    {
        const std::lock_guard lock(kept.mutex);
        // Not always what->at: where no memory was left, a failure stands for that of an operation which depends on it.
        mark_neighbours_reported(kept, asked, what->root());
        mark_neighbours_reported(kept, what->at, what->root());
        mark_neighbours_reported(kept, what->root().at, what->root());
    }
    throw told;  // NOLINT(misc-throw-by-value-catch-by-reference): made before anybody counts as told
}

/// A failure that had no room any more is told at the next question that has no other answer, whatever stream that is about: better
/// there than nowhere.
void throw_displaced() {
    failure_store& kept = all_failures();
    failure_ptr found;
    {
        const std::lock_guard lock(kept.mutex);
        found = kept.displaced;
    }
    if (!found) {
        return;
    }
    operation_error told = found->error();  // if this fails, it is not told
    {
        const std::lock_guard lock(kept.mutex);
        if (kept.displaced == found) {
            kept.displaced = nullptr;
        }
    }
    throw told;  // NOLINT(misc-throw-by-value-catch-by-reference): made before it counts as told
}

}  // namespace

void failures::arm() {
    failure::arm();
    static_cast<void>(all_failures());
    [[maybe_unused]] static const bool is_told = has_debug_log() && std::atexit(log_untold_at_exit) == 0;
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
        kept.displaced = what;
        return;
    }
    kept.unreported += one->what == nullptr || one->reported ? 1U : 0U;  // else it is counted: it was noted before
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

void failures::raise(const failure_ptr& what) { throw_told(what, what->at); }

void failures::throw_if_failed(frontiers::point at) {
    if (const failure_ptr known = of(at)) {
        throw_told(known, at);
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
    operation_error told = found->error();  // if this fails, nobody has been told
    {
        const std::lock_guard lock(kept.mutex);
        for (const frontiers::point& last : upto) {
            mark_all_reported(kept, last.timeline, found->root());
        }
    }
    throw told;  // NOLINT(misc-throw-by-value-catch-by-reference): made before anybody counts as told
}

void failures::forget_unreported(frontiers::timeline_id timeline) noexcept {
    if (!any()) {
        return;
    }
    untold its_own;
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
