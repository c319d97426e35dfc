#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "order/mode.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/ordering.hpp"
#include "weir/detail/submission.hpp"

namespace weir::runtime {

/// Whether Weir or the program orders each access of an operation (rule O5).
class modes {
public:
    explicit modes(const stream_state& of)
        : unless_the_array_says_(
              order::effective_mode(std::nullopt, of.ordering(), scope_ordering(), process_ordering())) {}

    [[nodiscard]] ordering_mode of(const access_request& access) const noexcept {
        if (access.in_every_mode) {
            return ordering_mode::automatic;
        }
        return order::effective_mode(access.target->ordering(), std::nullopt, std::nullopt, unless_the_array_says_);
    }
    [[nodiscard]] bool are_all_automatic(std::span<const access_request> accesses) const noexcept {
        return std::all_of(accesses.begin(), accesses.end(),
                           [&](const access_request& access) { return of(access) == ordering_mode::automatic; });
    }

private:
    ordering_mode unless_the_array_says_;
};

}  // namespace weir::runtime
