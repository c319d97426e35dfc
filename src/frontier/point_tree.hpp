#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "frontier/point.hpp"

namespace weir::frontiers {

/// A set of points, at most one for each timeline, for when there are many: a tree of which copies share what they have
/// in common (a persistent radix tree, sixteen-fold). Copying costs nothing, raising one point a path of nodes,
/// and uniting two sets what they differ in. So a chain of operations through N streams costs memory that grows with
/// N log N, and not with the square of N.
///
/// Copies may be used by several threads, one object only by one at a time. Nodes count their owners, as the parts of a
/// std::shared_ptr do. Whatever throws leaves the set as it was.
class point_tree {
public:
    point_tree() = default;
    point_tree(const point_tree& other) noexcept;
    point_tree(point_tree&& other) noexcept
        : root_(std::exchange(other.root_, nullptr)), height_(std::exchange(other.height_, 0)) {}
    point_tree& operator=(const point_tree& other) noexcept {
        point_tree copied(other);
        std::swap(root_, copied.root_);
        std::swap(height_, copied.height_);
        return *this;
    }
    point_tree& operator=(point_tree&& other) noexcept {
        point_tree taken(std::move(other));
        std::swap(root_, taken.root_);
        std::swap(height_, taken.height_);
        return *this;
    }
    ~point_tree();

    [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept;

    /// The epoch of the point on `timeline`; 0 if there is none.
    [[nodiscard]] epoch at(timeline_id timeline) const noexcept;

    /// Adds `p`, or raises the point on its timeline to it. Keeps the larger of two epochs. May throw std::bad_alloc.
    void merge(point p);

    /// Adds or raises all points of `other`. Keeps the larger of two epochs, each. May throw std::bad_alloc.
    void merge(const point_tree& other);

    /// Calls `visit(point)` for each, in the order of their timelines.
    template <class Visit>
    void for_each(Visit&& visit) const {
        auto call = [&](point p) { visit(p); };
        visit_all([](void* to, point p) { (*static_cast<decltype(call)*>(to))(p); }, &call);
    }

private:
    struct node;
    class owner;

    void visit_all(void (*visit)(void* to, point p), void* to) const;
    void grow(unsigned height);

    node* root_ = nullptr;
    unsigned height_ = 0;  ///< of the root; a leaf has none
};

}  // namespace weir::frontiers
