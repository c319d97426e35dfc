#pragma once

#include <utility>

#include "frontier/point.hpp"

namespace weir::observe {

/// Sets, while it lives, the operation for which the calling thread acts: the thread runs the operation's body, or destroys objects that
/// were kept until the operation was complete. Every place where a thread of Weir's runs code of the program makes one. Nests, as inline
/// queues do.
class acting_for {
public:
    explicit acting_for(frontiers::point operation) noexcept : previous_(std::exchange(current_, operation)) {}
    ~acting_for() { current_ = previous_; }
    acting_for(const acting_for&) = delete;
    acting_for& operator=(const acting_for&) = delete;

    /// Epoch 0 if the thread acts for the program itself and not for an operation.
    [[nodiscard]] static frontiers::point current() noexcept { return current_; }

    /// For detail::acting_scope, which code outside of this library uses.
    static void set(frontiers::point operation) noexcept { current_ = operation; }

private:
    static inline thread_local frontiers::point current_{};
    frontiers::point previous_;
};

}  // namespace weir::observe
