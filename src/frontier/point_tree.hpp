#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "frontier/point.hpp"

namespace weir::frontiers {

/// A set of many points, at most one for each timeline: a tree whose copies share the parts that they have in common (a persistent radix
/// tree, sixteen-fold). Copying it costs nothing, raising one point costs a path of nodes, and uniting two sets costs what they differ
/// in. So the memory of a chain of operations through N streams grows with N log N, and not with the square of N.
///
/// Several threads may use copies of a set, but only one at a time may use one object. Nodes count their owners, as the control block of a
/// std::shared_ptr does. A function that throws leaves the set unchanged.
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

    /// Adds or raises all points of `other`. Keeps the larger of two epochs on each timeline. May throw std::bad_alloc.
    void merge(const point_tree& other);

    /// Calls `visit(point)` for each point, in the order of their timelines.
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
    unsigned height_ = 0;  ///< height of the root; a leaf has height 0
};

}  // namespace weir::frontiers
