#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weir::observe {

/// Receives a text under no lock. Must not throw.
using teller = std::function<void(const std::string&)>;

/// What an observer has for the program: a text or an error. It is delivered once, by the thread that takes it.
class deferred_report {
public:
    /// A text for `to`; if `to` is null, for the standard error output.
    deferred_report(std::shared_ptr<const teller> to, std::string text) noexcept
        : to_(std::move(to)), text_(std::move(text)) {}
    /// An error to throw, and its text.
    deferred_report(std::exception_ptr error, std::string text) noexcept
        : text_(std::move(text)),
          error_(std::move(error)) {}  // NOLINT(bugprone-throw-keyword-missing): it is kept, and thrown by raise()

    [[nodiscard]] bool is_error() const noexcept { return error_ != nullptr; }
    /// Whether it is not delivered yet.
    [[nodiscard]] bool is_left() const noexcept { return !is_taken_.load(std::memory_order_relaxed); }
    /// True for one caller, which then delivers it.
    [[nodiscard]] bool take() noexcept { return !is_taken_.exchange(true, std::memory_order_relaxed); }
    /// Delivers the text, whatever it is for.
    void say() const;
    /// Throws the error.
    [[noreturn]] void raise() const { std::rethrow_exception(error_); }

private:
    std::shared_ptr<const teller> to_;
    std::string text_;
    std::exception_ptr error_;
    std::atomic<bool> is_taken_{false};
};

/// Reports of observers for the program, kept for the calling thread until its call holds no lock any more.
///
/// Observers are called under locks, where nothing may block and nothing may be thrown. So they leave here what they want reported or
/// thrown. Each call of Weir that notifies observers of an operation or of an access of the host's ends with `settle`. By then the
/// operation is enqueued and every lock is released: nothing is half done.
class deferred_reports {
public:
    /// Leaves `one` for the calling thread. May throw std::bad_alloc.
    static void leave(std::shared_ptr<deferred_report> one) { pending().push_back(std::move(one)); }
    /// Delivers what was left on this thread: first the texts, then the first error, which is thrown; further errors are dropped. Call
    /// with no lock held, as the last step of a call.
    static void settle() {
        if (!pending().empty()) {
            settle_now(std::exchange(pending(), {}));
        }
    }
    /// The same for these reports.
    static void settle_now(const std::vector<std::shared_ptr<deferred_report>>& all);

private:
    static std::vector<std::shared_ptr<deferred_report>>& pending() noexcept {
        static thread_local std::vector<std::shared_ptr<deferred_report>> all;
        return all;
    }
};

}  // namespace weir::observe
