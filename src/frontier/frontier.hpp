#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "frontier/point.hpp"
#include "frontier/point_tree.hpp"
#include "frontier/small_vector.hpp"
#include "weir/detail/rare.hpp"

namespace weir::frontiers {

/// A set of points, at most one for each timeline (rule O10). It stands for everything at or before its points:
/// a timeline that is absent is *not* covered.
///
/// The first timelines have their points each in a place of its own, as most programs have no others: merging and asking take
/// the same few steps, whatever is in the set. The other points are kept as a vector sorted by timeline while there are few,
/// so that merging and comparing is one linear pass; many as a tree that shares its parts with the copies of the frontier.
class frontier {
public:
    /// The timelines below this are the first ones.
    static constexpr timeline_id direct = 64;
    /// As many points of other timelines take no memory beyond the frontier's own.
    static constexpr std::size_t in_place = 8;

    frontier() noexcept {}  // NOLINT(modernize-use-equals-default): places that are not in use stay as they are
    frontier(const frontier& other)
        : has_others_(other.has_others_),
          merges_(other.merges_),
          prune_at_(other.prune_at_),
          many_(other.many_),
          few_(other.few_) {
        take_first(other);
    }
    frontier(frontier&& other) noexcept
        : has_others_(other.has_others_),
          merges_(other.merges_),
          prune_at_(other.prune_at_),
          many_(std::move(other.many_)),
          few_(std::move(other.few_)) {
        take_first(other);
    }
    frontier& operator=(const frontier& other) { return *this = frontier(other); }
    frontier& operator=(frontier&& other) noexcept {
        has_others_ = other.has_others_;
        merges_ = other.merges_;
        prune_at_ = other.prune_at_;
        many_ = std::move(other.many_);
        few_ = std::move(other.few_);
        take_first(other);
        return *this;
    }
    ~frontier() = default;

    /// The epoch covered on `timeline`; 0 if none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept {
        if (timeline < direct) {
            return at_first(timeline);
        }
        if (is_tree()) {
            return many_.at(timeline);
        }
        for (const point& p : few_) {
            if (p.timeline >= timeline) {
                return p.timeline == timeline ? p.at : 0;
            }
        }
        return 0;
    }

    /// The same for one of the first timelines.
    [[nodiscard]] epoch at_first(timeline_id timeline) const noexcept {
        return timeline < first_end() ? first_[timeline] : 0;
    }

    /// Whether `p` is at or before this frontier.
    [[nodiscard]] bool covers(point p) const noexcept { return p.at <= at(p.timeline); }

    /// Whether every point of `other` is at or before this frontier.
    [[nodiscard]] bool dominates(const frontier& other) const noexcept;

    /// Raises this frontier to cover `p`. Keeps the larger of two epochs. May throw std::bad_alloc.
    void merge(point p) {
        if (p.timeline < direct) {
            merge_first(p);
        } else {
            merge_other(p);
        }
    }

    /// Raises this frontier to cover everything that `other` covers. Keeps the larger of two epochs, each. May throw
    /// std::bad_alloc.
    void merge(const frontier& other) {
        if (other.has_others_) {
            merge_others(other);
        }
        merge_first(other);
    }

    /// @{
    /// The same for what has points of the first timelines alone. Needs no memory.
    void merge_first(point p) noexcept {
        extend(p.timeline / stride + 1);
        raise_place(p);
    }
    void merge_first(const frontier& other) noexcept {
        extend(other.first_used_);
        merge_places(other);
    }
    /// Both at once, where it has a place for each point already: else it does nothing and answers false. `other` may be null.
    [[nodiscard, gnu::always_inline]] bool merge_in_place(const frontier* other, point p) noexcept {
        if (p.timeline >= first_end()) {
            return false;
        }
        if (other != nullptr) {
            if (other->first_used_ > first_used_) {
                return false;
            }
            merge_places(*other);
        }
        raise_place(p);
        return true;
    }
    /// The points of the first timelines are those of another one from now on.
    void take_first(const frontier& other) noexcept {
        first_used_ = other.first_used_;
        const std::size_t end = first_end();
        for (std::size_t place = 0; place < end; place += stride) {  // not a call for a few bytes
            std::copy_n(other.first_.data() + place, stride, first_.data() + place);
        }
    }
    /// @}

    /// Drops every point for which `complete(point)` holds: what is complete counts as ordered (rule O10).
    template <class Complete>
    void prune(Complete&& complete) {
        for (timeline_id i = 0; i < first_end(); ++i) {
            first_[i] = first_[i] != 0 && complete(point{i, first_[i]}) ? 0 : first_[i];
        }
        if (is_tree()) {
            frontier kept;
            many_.for_each([&](const point& p) {
                if (!complete(p)) {
                    kept.merge(p);
                }
            });
            kept.take_first(*this);
            *this = std::move(kept);
        } else {
            few_.erase(std::remove_if(few_.begin(), few_.end(), [&](const point& p) { return complete(p); }),
                       few_.end());
            has_others_ = !few_.empty();
        }
    }

    /// The same, but only where it pays: not while it is small, and, where few of many turned out to be
    /// complete, only now and then. So frontiers stay small where work gets over, and where it does not, looking at all points
    /// costs each merge little.
    template <class Complete>
    void prune_at_times(Complete&& complete) {
        if (!is_large() || ++merges_ < prune_at_) {
            return;
        }
        const std::size_t interval = prune_at_;
        const std::size_t before = size();
        prune(complete);
        const bool was_worth_it = size() <= before - before / 4;
        merges_ = 0;
        prune_at_ = was_worth_it ? 1 : static_cast<std::uint32_t>(std::min(2 * interval, merges_for_each * size()));
    }

    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        const auto first = first_end() - std::count(first_.begin(), first_.begin() + first_end(), epoch{0});
        return static_cast<std::size_t>(first) + (is_tree() ? many_.size() : few_.size());
    }
    /// Whether it has points of the first timelines alone: to merge such ones needs no memory.
    [[nodiscard]] bool has_first_alone() const noexcept { return !has_others_; }
    /// Whether merging, copying and asking take longer, the more points there are.
    [[nodiscard]] bool is_large() const noexcept { return is_tree() || few_.size() > in_place; }

    /// Calls `visit(point)` for each, in the order of their timelines.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (timeline_id i = 0; i < first_end(); ++i) {
            if (first_[i] != 0) {
                visit(point{i, first_[i]});
            }
        }
        std::for_each(few_.begin(), few_.end(), visit);
        many_.for_each(visit);
    }

    friend bool operator==(const frontier& a, const frontier& b) noexcept {
        return a.size() == b.size() && a.dominates(b) && b.dominates(a);
    }

private:
    using small = detail::small_vector<point, in_place>;
    static constexpr timeline_id stride = 4;  ///< so many first timelines come into use together
    static constexpr std::size_t limit = 32;  ///< more other points make a tree
    static constexpr std::size_t merges_for_each = 4;

    static void raise(epoch& mine, epoch theirs) noexcept { mine = mine < theirs ? theirs : mine; }
    /// With a place for the point.
    void raise_place(point p) noexcept { raise(first_[p.timeline], p.at); }
    /// With a place for each point.
    [[gnu::always_inline]] void merge_places(const frontier& other) noexcept {
        static_assert(stride == 4, "it names each of them");
        const std::size_t end = other.first_end();
        for (std::size_t i = 0; i < end; i += stride) {
            raise(first_[i], other.first_[i]);
            raise(first_[i + 1], other.first_[i + 1]);
            raise(first_[i + 2], other.first_[i + 2]);
            raise(first_[i + 3], other.first_[i + 3]);
        }
    }
    /// So many strides of the first timelines are in use at least.
    [[gnu::always_inline]] void extend(timeline_id strides) noexcept {
        if (strides > first_used_) [[unlikely]] {
            detail::rare();
            extend_to(strides);
        }
    }
    [[gnu::noinline]] void extend_to(timeline_id strides) noexcept {
        const timeline_id end = strides * stride;
        std::fill(first_.begin() + first_end(), first_.begin() + end, epoch{0});
        first_used_ = strides;
    }
    /// Behind the last of the first timelines of which there may be a point.
    [[nodiscard]] timeline_id first_end() const noexcept { return first_used_ * stride; }
    [[nodiscard]] bool is_tree() const noexcept { return !many_.empty(); }
    void become_tree();
    void merge_other(point p);
    void merge_others(const frontier& other);
    void merge_few(const small& other);
    void merge_trees(const frontier& other);

    // What is used of every frontier lies together.
    timeline_id first_used_ =
        0;                     ///< strides of the first timelines in which there may be a point: others are as they are
    bool has_others_ = false;  ///< there is something in `many_` or `few_`, or was going to be when memory ran out
    std::uint32_t merges_ = 0;         ///< since what is large was pruned
    std::uint32_t prune_at_ = 1;       ///< so many merges
    std::array<epoch, direct> first_;  ///< of the first timelines; 0: none
    point_tree many_;                  ///< all others, or none
    small few_;                        ///< the same
};

}  // namespace weir::frontiers
