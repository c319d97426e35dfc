#include "runtime/failures.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>

#include "weir/error.hpp"

namespace weir::runtime {

namespace {

struct failure {
    frontiers::point at;
    site from;
    std::exception_ptr why;
    bool reported = false;
};

struct store {
    std::mutex mutex;  ///< guards list; a leaf in the lock order
    std::deque<failure> list;
    std::atomic<std::size_t> count{0};  ///< of list; 0 in all but unlucky programs
};

/// More are not kept: the oldest go first.
constexpr std::size_t most = 4096;

store& all() {
    static auto* const one = new store;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

std::string text_of(const std::exception_ptr& why) {
    try {
        std::rethrow_exception(why);
    } catch (const std::exception& known) {
        return known.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

[[noreturn]] void raise(const failure& one) {
    const std::string label = one.from.label == nullptr ? "operation" : one.from.label;
    const source_location& where = one.from.where;
    throw operation_error("the operation \"" + label + "\" enqueued at " + where.file + ":" +
                              std::to_string(where.line) + " failed: " + text_of(one.why) +
                              ". What it was to write is not valid.",
                          label, where);
}

}  // namespace

void failures::note(frontiers::point at, const site& from, std::exception_ptr why) noexcept {
    store& kept = all();
    const std::lock_guard lock(kept.mutex);
    try {
        kept.list.push_back({at, from, std::move(why)});
    } catch (const std::bad_alloc&) {
        if (kept.list.empty()) {
            std::terminate();  // a failure that cannot even be noted must not pass for success
        }
        std::rotate(kept.list.begin(), kept.list.begin() + 1, kept.list.end());
        kept.list.back() = {at, from, std::move(why)};
    }
    if (kept.list.size() > most) {
        kept.list.pop_front();
    }
    kept.count.store(kept.list.size(), std::memory_order_release);
}

void failures::throw_if_failed(frontiers::point at) {
    store& kept = all();
    if (kept.count.load(std::memory_order_acquire) == 0) {
        return;
    }
    const std::lock_guard lock(kept.mutex);
    for (failure& one : kept.list) {
        if (one.at == at) {
            one.reported = true;
            raise(one);
        }
    }
}

void failures::throw_first_unreported(frontiers::point upto) {
    store& kept = all();
    if (kept.count.load(std::memory_order_acquire) == 0) {
        return;
    }
    const std::lock_guard lock(kept.mutex);
    for (failure& one : kept.list) {
        if (!one.reported && one.at.timeline == upto.timeline && one.at.at <= upto.at) {
            one.reported = true;
            raise(one);
        }
    }
}

void failures::forget_unreported(frontiers::timeline_id timeline) noexcept {
    store& kept = all();
    if (kept.count.load(std::memory_order_acquire) == 0) {
        return;
    }
    const std::lock_guard lock(kept.mutex);
    for (failure& one : kept.list) {
        one.reported = one.reported || one.at.timeline == timeline;
    }
}

}  // namespace weir::runtime
