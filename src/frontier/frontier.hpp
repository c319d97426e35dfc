#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "frontier/kept_memory.hpp"
#include "frontier/point.hpp"
#include "frontier/point_tree.hpp"
#include "frontier/small_vector.hpp"
#include "weir/detail/rare.hpp"

namespace weir::frontiers {

/// A set of points, at most one for each timeline (rule O10). It stands for everything at or before its points:
/// a timeline that is absent is *not* covered.
///
/// Each of the first timelines has a fixed place for its point; most programs have no other timelines. Merging and lookup then take the
/// same few steps, whatever is in the set. Few other points are kept as a vector sorted by timeline, so that merging and comparing is
/// one linear pass; many are kept as a tree that shares its parts with the copies of the frontier.
///
/// The base class of frontiers with different capacity: one on the stack has room for all first timelines (`frontier`); one that
/// histories keep, of which there are many, has room for as many as it needs (order::shared_frontier). The places lie right behind this
/// object: a derived class must reserve room for them there, with nothing else before them.
class frontier_base {
public:
    /// Timelines below this number are the first timelines.
    static constexpr timeline_id direct = 64;
    /// Up to so many points of other timelines are kept in place, without a further allocation.
    static constexpr std::size_t in_place = 8;
    /// The number of first timelines that come into use together.
    static constexpr timeline_id stride = 4;

    frontier_base(const frontier_base&) = delete;
    frontier_base& operator=(const frontier_base&) = delete;

    /// The epoch covered on `timeline`; 0 if none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept {
        if (timeline < direct) {
            return at_first(timeline);
        }
        return others_ == nullptr ? 0 : others_->at(timeline);
    }

    /// The same for a first timeline.
    [[nodiscard]] epoch at_first(timeline_id timeline) const noexcept {
        return timeline < first_end() ? first()[timeline] : 0;
    }

    /// Whether `p` is at or before this frontier.
    [[nodiscard]] bool covers(point p) const noexcept { return p.at <= at(p.timeline); }

    /// Whether every point of `other` is at or before this frontier.
    [[nodiscard]] bool dominates(const frontier_base& other) const noexcept;

    /// Raises this frontier to cover `p`, for which it must have room. Keeps the larger of two epochs. May throw std::bad_alloc.
    void merge(point p) {
        if (p.timeline < direct) {
            merge_first(p);
        } else {
            merge_other(p);
        }
    }

    /// Raises this frontier to cover everything that `other` covers, for which it must have room. Keeps the larger of two epochs on each
    /// timeline. May throw std::bad_alloc.
    void merge(const frontier_base& other) {
        if (other.others_ != nullptr) {
            merge_others(*other.others_);
        }
        merge_first(other);
    }

    /// @{
    /// The same for points of the first timelines only. Needs no memory.
    void merge_first(point p) noexcept {
        extend(p.timeline / stride + 1);
        raise_place(p);
    }
    void merge_first(const frontier_base& other) noexcept {
        extend(other.first_used_);
        merge_places(other);
    }
    /// Both at once, if this frontier already has a place for each point (`has_places_for`). `other` may be null.
    [[gnu::always_inline]] void merge_in_place(const frontier_base* other, point p) noexcept {
        if (other != nullptr) {
            merge_places(*other);
        }
        raise_place(p);
    }
    /// Whether this frontier has a place for each point of `other`, which may be null, and for `p`.
    [[nodiscard, gnu::always_inline]] bool has_places_for(const frontier_base* other, point p) const noexcept {
        return p.timeline < first_end() && (other == nullptr || other->first_used_ <= first_used_);
    }
    /// Replaces the points of the first timelines by those of `other`. There must be room for them.
    void take_first(const frontier_base& other) noexcept {
        first_used_ = other.first_used_;
        const std::size_t end = first_end();
        // A loop of short copies: a call of memcpy would cost too much for a few bytes.
        for (std::size_t place = 0; place < end; place += stride) {
            std::copy_n(other.first() + place, stride, first() + place);
        }
    }
    /// @}

    /// The number of strides of the first timelines that are in use.
    [[nodiscard, gnu::always_inline]] timeline_id strides() const noexcept { return first_used_; }
    /// The number of strides of the first timelines for which there is room.
    [[nodiscard, gnu::always_inline]] timeline_id room() const noexcept { return room_; }

    /// Drops every point for which `complete(point)` is true: what is complete counts as ordered (rule O10).
    template <class Complete>
    void prune(Complete&& complete) {
        for (timeline_id i = 0; i < first_end(); ++i) {
            first()[i] = first()[i] != 0 && complete(point{i, first()[i]}) ? 0 : first()[i];
        }
        if (others_ == nullptr) {
            return;
        }
        if (others_->is_tree()) {
            others kept;
            others_->many.for_each([&](const point& p) {
                if (!complete(p)) {
                    kept.merge(p);
                }
            });
            *others_ = std::move(kept);
        } else {
            small& few = others_->few;
            few.erase(std::remove_if(few.begin(), few.end(), [&](const point& p) { return complete(p); }), few.end());
        }
        if (others_->size() == 0) {
            others_.reset();
        }
    }

    /// The same, but only where it pays: not while the frontier is small, and, if the last pruning of a large one found few complete
    /// points, only after a number of merges. So frontiers stay small where work completes; where it does not, visiting all points adds
    /// little to each merge.
    template <class Complete>
    void prune_at_times(Complete&& complete) {
        if (!is_large() || ++others_->merges < others_->prune_at) {
            return;
        }
        const std::size_t interval = others_->prune_at;
        const std::size_t before = size();
        prune(complete);
        const bool was_worth_it = size() <= before - before / 4;
        if (others_ != nullptr) {
            others_->merges = 0;
            others_->prune_at =
                was_worth_it ? 1 : static_cast<std::uint32_t>(std::min(2 * interval, merges_for_each * size()));
        }
    }

    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        const auto first_ones = first_end() - std::count(first(), first() + first_end(), epoch{0});
        return static_cast<std::size_t>(first_ones) + (others_ == nullptr ? 0 : others_->size());
    }
    /// Whether it has points of the first timelines only: merging such a frontier needs no memory.
    [[nodiscard]] bool has_first_alone() const noexcept { return others_ == nullptr; }
    /// Whether it has so many points that merging, copying and lookup depend on their number.
    [[nodiscard]] bool is_large() const noexcept { return others_ != nullptr && others_->is_large(); }

    /// Calls `visit(point)` for each point, in the order of their timelines.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (timeline_id i = 0; i < first_end(); ++i) {
            if (first()[i] != 0) {
                visit(point{i, first()[i]});
            }
        }
        if (others_ != nullptr) {
            std::for_each(others_->few.begin(), others_->few.end(), visit);
            others_->many.for_each(visit);
        }
    }

    friend bool operator==(const frontier_base& a, const frontier_base& b) noexcept {
        return a.size() == b.size() && a.dominates(b) && b.dominates(a);
    }

protected:
    /// A frontier without points, and with room for `room` strides of the first timelines.
    explicit frontier_base(timeline_id room) noexcept : room_(room) {}
    ~frontier_base() = default;

    /// @{
    /// Replaces the points by those of `other`, for which there must be room.
    void assign(const frontier_base& other) {
        others_ = other.others_ == nullptr ? nullptr : std::make_unique<others>(*other.others_);
        take_first(other);
    }
    void assign(frontier_base&& other) noexcept {
        others_ = std::move(other.others_);
        take_first(other);
    }
    /// @}

private:
    using small = detail::small_vector<point, in_place>;
    static constexpr std::size_t limit = 32;  ///< with more other points than this, they are kept as a tree
    static constexpr std::size_t merges_for_each = 4;

    /// The points of all timelines that are not first timelines.
    struct others final : detail::keeps_memory<others> {
        std::uint32_t merges = 0;    ///< number of merges since the last pruning
        std::uint32_t prune_at = 1;  ///< number of merges after which to prune
        point_tree many;             ///< all points, or none
        small few;                   ///< all points, or none

        [[nodiscard]] bool is_tree() const noexcept { return !many.empty(); }
        [[nodiscard]] bool is_large() const noexcept { return is_tree() || few.size() > in_place; }
        [[nodiscard]] std::size_t size() const noexcept { return is_tree() ? many.size() : few.size(); }
        [[nodiscard]] epoch at(timeline_id timeline) const noexcept {
            if (is_tree()) {
                return many.at(timeline);
            }
            for (const point& p : few) {
                if (p.timeline >= timeline) {
                    return p.timeline == timeline ? p.at : 0;
                }
            }
            return 0;
        }
        void become_tree();
        void merge(point p);
        void merge(const others& other);
        void merge_few(const small& other);
        void merge_trees(const others& other);
    };

    [[nodiscard, gnu::always_inline]] epoch* first() noexcept {
        return std::launder(reinterpret_cast<epoch*>(reinterpret_cast<std::byte*>(this) + sizeof(frontier_base)));
    }
    [[nodiscard, gnu::always_inline]] const epoch* first() const noexcept {
        return std::launder(
            reinterpret_cast<const epoch*>(reinterpret_cast<const std::byte*>(this) + sizeof(frontier_base)));
    }

    static void raise(epoch& mine, epoch theirs) noexcept { mine = mine < theirs ? theirs : mine; }
    /// There must be a place for the point.
    void raise_place(point p) noexcept { raise(first()[p.timeline], p.at); }
    /// There must be a place for each point.
    [[gnu::always_inline]] void merge_places(const frontier_base& other) noexcept {
        static_assert(stride == 4, "it names each of them");
        const std::size_t end = other.first_end();
        epoch* const mine = first();
        const epoch* const theirs = other.first();
        for (std::size_t i = 0; i < end; i += stride) {
            raise(mine[i], theirs[i]);
            raise(mine[i + 1], theirs[i + 1]);
            raise(mine[i + 2], theirs[i + 2]);
            raise(mine[i + 3], theirs[i + 3]);
        }
    }
    /// Makes at least `strides` strides of the first timelines usable.
    [[gnu::always_inline]] void extend(timeline_id strides) noexcept {
        if (strides > first_used_) [[unlikely]] {
            detail::cold_path();
            extend_to(strides);
        }
    }
    [[gnu::noinline]] void extend_to(timeline_id strides) noexcept {
        std::fill(first() + first_end(), first() + std::size_t{strides} * stride, epoch{0});
        first_used_ = strides;
    }
    /// The end of the first timelines that may have a point.
    [[nodiscard]] timeline_id first_end() const noexcept { return first_used_ * stride; }
    void merge_other(point p);
    void merge_others(const others& theirs);

    /// Strides of the first timelines that may have a point; places beyond them are uninitialized.
    timeline_id first_used_ = 0;
    const timeline_id room_;
    std::unique_ptr<others> others_;  ///< null: there are no other points
};

/// A frontier that is a value, with room for all first timelines.
class frontier final : public frontier_base {
public:
    frontier() noexcept : frontier_base(direct / stride) {}
    explicit frontier(const frontier_base& of) : frontier() { assign(of); }
    frontier(const frontier& other) : frontier() { assign(other); }
    frontier(frontier&& other) noexcept : frontier() { assign(std::move(other)); }
    frontier& operator=(const frontier& other) { return *this = frontier(other); }
    frontier& operator=(frontier&& other) noexcept {
        assign(std::move(other));
        return *this;
    }
    ~frontier() = default;

private:
    [[maybe_unused]] alignas(epoch) std::byte places_[direct * sizeof(epoch)];  // uninitialized beyond those in use
};
static_assert(sizeof(frontier) == sizeof(frontier_base) + frontier::direct * sizeof(epoch));

}  // namespace weir::frontiers
