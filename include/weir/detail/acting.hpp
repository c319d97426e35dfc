// The operation for which a thread acts, for code that destroys objects of operations later or on other threads.
#pragma once

#include <cstdint>

#include "weir/export.hpp"

namespace weir::detail {

/// An operation, by its place in its timeline; epoch 0 is none.
struct acting_operation {
    std::uint32_t timeline = 0;
    std::uint64_t epoch = 0;
};

/// The operation whose body the calling thread runs, or whose objects it destroys; none if it acts for the program itself.
[[nodiscard]] WEIR_EXPORT acting_operation acts_for() noexcept;

/// While it lives, the calling thread acts for `operation`. For no operation it changes nothing.
class WEIR_EXPORT acting_scope {
public:
    explicit acting_scope(acting_operation operation) noexcept;
    ~acting_scope();
    acting_scope(const acting_scope&) = delete;
    acting_scope& operator=(const acting_scope&) = delete;

private:
    acting_operation previous_;
};

}  // namespace weir::detail
