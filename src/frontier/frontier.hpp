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
/// The first timelines have their points each in a place of its own, as most programs have no others: merging and asking take
/// the same few steps, whatever is in the set. The other points are kept as a vector sorted by timeline while there are few,
/// so that merging and comparing is one linear pass; many as a tree that shares its parts with the copies of the frontier.
///
/// This is what frontiers of different length have in common: one on the stack has room for all first timelines (`frontier`), one
/// that histories keep, of which there are many, for as many as it needs (order::shared_frontier). The places lie right behind this
/// object: what is derived from it has room for them there, and nothing else before them.
class frontier_base {
public:
    /// The timelines below this are the first ones.
    static constexpr timeline_id direct = 64;
    /// As many points of other timelines take one piece of memory.
    static constexpr std::size_t in_place = 8;
    /// So many first timelines come into use together.
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

    /// The same for one of the first timelines.
    [[nodiscard]] epoch at_first(timeline_id timeline) const noexcept {
        return timeline < first_end() ? first()[timeline] : 0;
    }

    /// Whether `p` is at or before this frontier.
    [[nodiscard]] bool covers(point p) const noexcept { return p.at <= at(p.timeline); }

    /// Whether every point of `other` is at or before this frontier.
    [[nodiscard]] bool dominates(const frontier_base& other) const noexcept;

    /// Raises this frontier to cover `p`, for which it has room. Keeps the larger of two epochs. May throw std::bad_alloc.
    void merge(point p) {
        if (p.timeline < direct) {
            merge_first(p);
        } else {
            merge_other(p);
        }
    }

    /// Raises this frontier to cover everything that `other` covers, for which it has room. Keeps the larger of two epochs, each.
    /// May throw std::bad_alloc.
    void merge(const frontier_base& other) {
        if (other.others_ != nullptr) {
            merge_others(*other.others_);
        }
        merge_first(other);
    }

    /// @{
    /// The same for what has points of the first timelines alone. Needs no memory.
    void merge_first(point p) noexcept {
        extend(p.timeline / stride + 1);
        raise_place(p);
    }
    void merge_first(const frontier_base& other) noexcept {
        extend(other.first_used_);
        merge_places(other);
    }
    /// Both at once, where it has a place for each point already: `has_places_for`. `other` may be null.
    [[gnu::always_inline]] void merge_in_place(const frontier_base* other, point p) noexcept {
        if (other != nullptr) {
            merge_places(*other);
        }
        raise_place(p);
    }
    /// Whether it has a place for each point of `other`, which may be null, and for `p`.
    [[nodiscard, gnu::always_inline]] bool has_places_for(const frontier_base* other, point p) const noexcept {
        return p.timeline < first_end() && (other == nullptr || other->first_used_ <= first_used_);
    }
    /// The points of the first timelines are those of another one from now on. There is room for them.
    void take_first(const frontier_base& other) noexcept {
        first_used_ = other.first_used_;
        const std::size_t end = first_end();
        for (std::size_t place = 0; place < end; place += stride) {  // not a call for a few bytes
            std::copy_n(other.first() + place, stride, first() + place);
        }
    }
    /// @}

    /// So many strides of the first timelines are in use, and
    [[nodiscard, gnu::always_inline]] timeline_id strides() const noexcept { return first_used_; }
    /// for so many there is room.
    [[nodiscard, gnu::always_inline]] timeline_id room() const noexcept { return room_; }

    /// Drops every point for which `complete(point)` holds: what is complete counts as ordered (rule O10).
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

    /// The same, but only where it pays: not while it is small, and, where few of many turned out to be
    /// complete, only now and then. So frontiers stay small where work gets over, and where it does not, looking at all points
    /// costs each merge little.
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
    /// Whether it has points of the first timelines alone: to merge such ones needs no memory.
    [[nodiscard]] bool has_first_alone() const noexcept { return others_ == nullptr; }
    /// Whether merging, copying and asking take longer, the more points there are.
    [[nodiscard]] bool is_large() const noexcept { return others_ != nullptr && others_->is_large(); }

    /// Calls `visit(point)` for each, in the order of their timelines.
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
    /// With no point, and room for so many strides of the first timelines.
    explicit frontier_base(timeline_id room) noexcept : room_(room) {}
    ~frontier_base() = default;

    /// @{
    /// Its points are those of another one from now on, for which there is room.
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
    static constexpr std::size_t limit = 32;  ///< more other points make a tree
    static constexpr std::size_t merges_for_each = 4;

    /// The points of all timelines that are not among the first ones.
    struct others final : detail::keeps_memory<others> {
        std::uint32_t merges = 0;    ///< since what is large was pruned
        std::uint32_t prune_at = 1;  ///< so many merges
        point_tree many;             ///< all of them, or none
        small few;                   ///< the same

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
    /// With a place for the point.
    void raise_place(point p) noexcept { raise(first()[p.timeline], p.at); }
    /// With a place for each point.
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
    /// So many strides of the first timelines are in use at least.
    [[gnu::always_inline]] void extend(timeline_id strides) noexcept {
        if (strides > first_used_) [[unlikely]] {
            detail::rare();
            extend_to(strides);
        }
    }
    [[gnu::noinline]] void extend_to(timeline_id strides) noexcept {
        std::fill(first() + first_end(), first() + std::size_t{strides} * stride, epoch{0});
        first_used_ = strides;
    }
    /// Behind the last of the first timelines of which there may be a point.
    [[nodiscard]] timeline_id first_end() const noexcept { return first_used_ * stride; }
    void merge_other(point p);
    void merge_others(const others& theirs);

    timeline_id first_used_ =
        0;  ///< strides of the first timelines in which there may be a point: others are as they are
    const timeline_id room_;
    std::unique_ptr<others> others_;  ///< null: none
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
    [[maybe_unused]] alignas(
        epoch) std::byte places_[direct * sizeof(epoch)];  // those that are not in use stay as they are
};
static_assert(sizeof(frontier) == sizeof(frontier_base) + frontier::direct * sizeof(epoch));

}  // namespace weir::frontiers
