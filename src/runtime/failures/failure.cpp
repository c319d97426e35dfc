#include "runtime/failures/failure.hpp"

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "weir/detail/mutex.hpp"

namespace weir::runtime {

namespace {

std::string text_of(const std::exception_ptr& why) {
    try {
        std::rethrow_exception(why);
    } catch (const std::exception& known) {
        return known.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

const char* label_of(const failure& one) noexcept { return one.from.label == nullptr ? "operation" : one.from.label; }

std::string name_of(const failure& one) {
    const source_location& where = one.from.where;
    const std::string label = '"' + std::string(label_of(one)) + '"';
    // A caller of the C interface need not say where it is.
    return *where.file == '\0' ? label : label + " enqueued at " + where.file + ":" + std::to_string(where.line);
}

std::atomic<failure*> not_needed{nullptr};  ///< what `dispose` is to destroy

void retire(failure* one) noexcept {
    one->next = not_needed.load(std::memory_order_relaxed);
    while (!not_needed.compare_exchange_weak(one->next, one, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

/// Throws std::bad_alloc.
std::shared_ptr<failure> make_empty() {
    auto made = std::make_unique<failure>();
    return {made.release(), retire};  // if this throws, it has called `retire`
}

/// Reserved failures, for operations that fail when no memory is left; the lack of memory is often the very reason.
class kept_failures {
public:
    static kept_failures& instance() {
        static auto* const one = new kept_failures;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
        return *one;
    }
    /// Tries to fill the reserve.
    void refill() noexcept {
        const std::lock_guard lock(mutex_);
        try {
            for (std::shared_ptr<failure>& one : kept_) {
                if (!one) {
                    one = make_empty();
                }
            }
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a later call tries again
        }
    }
    /// Never null: the last one serves for all that follow it, and reports the place and reason of the first of them.
    [[nodiscard]] failure_ptr take(frontiers::point at, const site& from, std::exception_ptr& why) noexcept {
        const std::lock_guard lock(mutex_);
        for (std::shared_ptr<failure>& one : kept_) {
            if (one) {
                fill(*one, at, from, why);
                return std::exchange(one, nullptr);
            }
        }
        if (!std::exchange(last_is_used_, true)) {
            fill(*last_, at, from, why);
        }
        return last_;
    }
    static void fill(failure& one, frontiers::point at, const site& from, std::exception_ptr& why) noexcept {
        one.at = at;
        one.from = from;
        one.why = std::move(why);
    }

private:
    detail::mutex mutex_;  ///< guards what follows; a leaf in the lock order
    std::array<std::shared_ptr<failure>, 16> kept_;
    const std::shared_ptr<failure> last_ = make_empty();
    bool last_is_used_ = false;
};

// At static initialization, so that no fork finds it half constructed.
[[maybe_unused]] const kept_failures& kept_at_start = kept_failures::instance();

}  // namespace

void failure::dispose() noexcept {
    if (not_needed.load(std::memory_order_relaxed) == nullptr) {
        return;
    }
    for (failure* one = not_needed.exchange(nullptr, std::memory_order_acquire); one != nullptr;) {
        const std::unique_ptr<failure> last(std::exchange(one, one->next));
    }
}

void failure::arm() { [[maybe_unused]] static const bool once = (kept_failures::instance().refill(), true); }

failure_ptr failure::make(frontiers::point at, const site& from, std::exception_ptr why) noexcept {
    kept_failures& kept = kept_failures::instance();
    try {
        auto made = make_empty();
        kept_failures::fill(*made, at, from, why);
        kept.refill();
        return made;
    } catch (const std::bad_alloc&) {
        return kept.take(at, from, why);
    }
}

failure_ptr failure::make_dependent(frontiers::point at, const site& from, const failure_ptr& cause) noexcept {
    try {
        auto made = make_empty();
        made->at = at;
        made->from = from;
        made->origin = cause->origin ? cause->origin : cause;
        return made;
    } catch (const std::bad_alloc&) {
        return cause;
    }
}

operation_error failure::error() const {
    const failure& root = this->root();
    const std::string story =
        origin ? "the operation " + name_of(*this) + " did not run: it depends on " + name_of(root) + ", which"
               : "the operation " + name_of(root);
    return {story + " failed: " + text_of(root.why) + ". What it was to write is not valid.", label_of(root),
            root.from.where, root.why};
}

}  // namespace weir::runtime
