#pragma once

#include <utility>

#include "backend/own_variable.hpp"
#include "frontier/point.hpp"

namespace weir::backend {

/// For which operation the calling thread acts, while it lives: it runs the body, or destroys what was kept until the
/// operation was over. Whoever runs code of the user's on a thread of Weir's says so; nests, as inline queues do.
class acting_for {
public:
    explicit acting_for(frontiers::point operation) noexcept
        : of_thread_(&found_once(current_)), previous_(std::exchange(*of_thread_, operation)) {}
    ~acting_for() { *of_thread_ = previous_; }
    acting_for(const acting_for&) = delete;
    acting_for& operator=(const acting_for&) = delete;

    /// Epoch 0 if the thread acts for none, but for the program itself.
    [[nodiscard]] static frontiers::point current() noexcept { return current_; }

private:
    static inline thread_local frontiers::point current_{};
    frontiers::point* of_thread_;
    frontiers::point previous_;
};

}  // namespace weir::backend
