#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weir/detail/footprint.hpp"
#include "weir/detail/intrusive.hpp"

namespace weir::order {

/// One dimension of a box, normalized.
struct dimension {
    std::uint64_t stride = 0;  ///< bytes, larger than 0
    std::uint64_t count = 0;   ///< at least 2
};

/// The bytes `i0 * stride0 + i1 * stride1 + ... + [0, run)` for all indices below the counts, from where its footprint
/// begins. Outermost dimension first, strides decreasing, immutable.
class box final : public detail::shared_object {
public:
    /// More dimensions than any array has.
    static constexpr std::size_t most_levels = 64;

    box(std::vector<dimension> dimensions, std::uint64_t run) : dimensions_(std::move(dimensions)), run_(run) {
        std::uint64_t span = run_;
        exact_ = dimensions_.size() <= most_levels;
        for (std::size_t i = dimensions_.size(); i-- > 0;) {
            exact_ = exact_ && span <= dimensions_[i].stride;
            span += dimensions_[i].stride * (dimensions_[i].count - 1);
            runs_ = runs_ > limit / dimensions_[i].count ? limit : runs_ * dimensions_[i].count;
        }
    }

    [[nodiscard]] std::span<const dimension> dimensions() const noexcept { return dimensions_; }
    [[nodiscard]] std::uint64_t run() const noexcept { return run_; }
    /// The number of its runs of bytes; `limit` if there are more.
    [[nodiscard]] std::uint64_t runs() const noexcept { return runs_; }
    /// Whether the parts of each dimension are disjoint, as those of arrays are. If not (windows that overlap), only the range from the
    /// first byte to the last is used.
    [[nodiscard]] bool exact() const noexcept { return exact_; }

private:
    static constexpr std::uint64_t limit = std::uint64_t{1} << 62;

    std::vector<dimension> dimensions_;
    std::uint64_t run_;
    std::uint64_t runs_ = 1;
    bool exact_ = true;
};

/// Calls `visit(first, count)` for each run of bytes of a footprint, until it returns false. Returns whether it never did. The runs of an
/// exact footprint are disjoint and come in increasing order.
template <class Visit>
bool for_each_run(const footprint& f, Visit&& visit) {
    if (!f.shape) {
        return visit(f.begin, f.end - f.begin);
    }
    const std::span<const dimension> all = f.shape->dimensions();
    std::array<std::uint64_t, box::most_levels> index{};
    for (;;) {
        std::uint64_t at = f.begin;
        for (std::size_t i = 0; i < all.size(); ++i) {
            at += index[i] * all[i].stride;
        }
        if (!visit(at, f.shape->run())) {
            return false;
        }
        std::size_t i = all.size();
        while (i > 0 && ++index[i - 1] == all[i - 1].count) {
            index[--i] = 0;
        }
        if (i == 0) {
            return true;
        }
    }
}

}  // namespace weir::order
