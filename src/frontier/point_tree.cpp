#include "frontier/point_tree.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace weir::frontiers {

namespace {

constexpr unsigned bits = 4;
constexpr std::size_t fanout = std::size_t{1} << bits;

/// The index, in a node of `height`, of the part that holds `timeline`.
std::size_t part(timeline_id timeline, unsigned height) noexcept {
    return (timeline >> (bits * height)) & (fanout - 1);
}

/// Whether a tree of `height` has room for `timeline`.
bool reaches(unsigned height, timeline_id timeline) noexcept {
    return (std::uint64_t{timeline} >> (bits * (height + 1))) == 0;
}

}  // namespace

/// Part of a tree. A leaf holds the epochs of sixteen timelines, 0 where there is no point; any other node holds nodes. A node with
/// more than one owner does not change.
struct point_tree::node {
    explicit node(unsigned height) noexcept : leaf(height == 0) {
        if (leaf) {
            epochs.fill(0);
        } else {
            nodes.fill(nullptr);
        }
    }
    node(const node& other) noexcept : leaf(other.leaf), count(other.count) {
        if (leaf) {
            epochs = other.epochs;
            return;
        }
        nodes = other.nodes;
        for (node* const each : nodes) {
            own(each);
        }
    }
    node& operator=(const node&) = delete;
    ~node() {
        if (!leaf) {
            for (node* const each : nodes) {
                disown(each);
            }
        }
    }

    static node* own(node* one) noexcept {
        if (one != nullptr) {
            one->owners.fetch_add(1, std::memory_order::relaxed);
        }
        return one;
    }
    static void disown(node* one) noexcept {
        if (one != nullptr && one->owners.fetch_sub(1, std::memory_order::acq_rel) == 1) {
            delete one;
        }
    }

    /// Replaces a part of a node that is not a leaf.
    void put(std::size_t i, owner&& made) noexcept;

    /// Merges `p` into the node that `slot` owns; into a copy of it, if the node has other owners. Returns whether that adds a point.
    static bool raise(node*& slot, unsigned height, point p);

    std::atomic<std::uint32_t> owners{1};
    const bool leaf;
    std::uint32_t count = 0;  ///< number of points in it and below it
    union {
        std::array<epoch, fanout> epochs;
        std::array<node*, fanout> nodes;
    };
};

/// Owns one node, or none.
class point_tree::owner {
public:
    explicit owner(node* owned = nullptr) noexcept : owned_(owned) {}
    owner(owner&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
    owner& operator=(owner&& other) noexcept {
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~owner() { node::disown(owned_); }

    static owner of(node* shared) noexcept { return owner(node::own(shared)); }
    [[nodiscard]] node* get() const noexcept { return owned_; }
    [[nodiscard]] node* release() noexcept { return std::exchange(owned_, nullptr); }

    /// A node with the points of both, which have the same height or are null.
    static owner united(node* one, node* other) {
        if (one == other || other == nullptr) {
            return of(one);
        }
        if (one == nullptr) {
            return of(other);
        }
        return one->leaf ? united_leaves(*one, *other) : united_nodes(*one, *other);
    }

private:
    static owner united_leaves(node& one, node& other) {
        bool is_one = true;
        bool is_other = true;
        for (std::size_t i = 0; i < fanout; ++i) {
            is_one = is_one && one.epochs[i] >= other.epochs[i];
            is_other = is_other && other.epochs[i] >= one.epochs[i];
        }
        if (is_one || is_other) {
            return of(is_one ? &one : &other);
        }
        owner made(new node(one));
        node& to = *made.get();
        to.count = 0;
        for (std::size_t i = 0; i < fanout; ++i) {
            to.epochs[i] = std::max(one.epochs[i], other.epochs[i]);
            to.count += to.epochs[i] != 0 ? 1U : 0U;
        }
        return made;
    }

    static owner united_nodes(node& one, node& other) {
        std::array<owner, fanout> parts;
        bool is_one = true;
        bool is_other = true;
        for (std::size_t i = 0; i < fanout; ++i) {
            parts[i] = united(one.nodes[i], other.nodes[i]);
            is_one = is_one && parts[i].get() == one.nodes[i];
            is_other = is_other && parts[i].get() == other.nodes[i];
        }
        if (is_one || is_other) {
            return of(is_one ? &one : &other);
        }
        owner made(new node(1));
        for (std::size_t i = 0; i < fanout; ++i) {
            made.get()->put(i, std::move(parts[i]));
        }
        return made;
    }

    node* owned_;
};

void point_tree::node::put(std::size_t i, owner&& made) noexcept {
    const auto points = [](const node* in) { return in == nullptr ? 0U : in->count; };
    count += points(made.get()) - points(nodes[i]);
    disown(std::exchange(nodes[i], made.release()));
}

bool point_tree::node::raise(node*& slot, unsigned height, point p) {
    if (slot == nullptr) {
        slot = new node(height);
    } else if (slot->owners.load(std::memory_order::acquire) > 1) {
        disown(std::exchange(slot, new node(*slot)));
    }
    // Up to here no point has changed, so running out of memory does no harm.
    const std::size_t i = part(p.timeline, height);
    bool added = false;
    if (slot->leaf) {
        added = slot->epochs[i] == 0;
        slot->epochs[i] = p.at;
    } else {
        added = raise(slot->nodes[i], height - 1, p);
    }
    slot->count += added ? 1U : 0U;
    return added;
}

point_tree::point_tree(const point_tree& other) noexcept : root_(node::own(other.root_)), height_(other.height_) {}

point_tree::~point_tree() { node::disown(root_); }

std::size_t point_tree::size() const noexcept { return root_ == nullptr ? 0 : root_->count; }

epoch point_tree::at(timeline_id timeline) const noexcept {
    if (!reaches(height_, timeline)) {
        return 0;
    }
    const node* in = root_;
    for (unsigned height = height_; in != nullptr && !in->leaf; --height) {
        in = in->nodes[part(timeline, height)];
    }
    return in == nullptr ? 0U : in->epochs[part(timeline, 0)];
}

/// Adds roots above the root until the tree has `height`.
void point_tree::grow(unsigned height) {
    if (root_ == nullptr) {
        height_ = std::max(height_, height);
    }
    while (height_ < height) {
        owner above(new node(height_ + 1));
        above.get()->put(0, owner(root_));
        root_ = above.release();
        ++height_;
    }
}

void point_tree::merge(point p) {
    if (p.at <= at(p.timeline)) {
        return;
    }
    unsigned height = height_;
    while (!reaches(height, p.timeline)) {
        ++height;
    }
    grow(height);
    if (root_ != nullptr) {
        node::raise(root_, height_, p);
        return;
    }
    // `root_` is set only once it has a point: no tree without points exists, even if memory runs out.
    struct fresh_tree {
        node* root = nullptr;
        ~fresh_tree() { node::disown(root); }
    } made;
    node::raise(made.root, height_, p);
    std::swap(root_, made.root);
}

void point_tree::merge(const point_tree& other) {
    if (other.empty()) {
        return;
    }
    point_tree theirs = other;
    theirs.grow(height_);
    grow(theirs.height_);
    node::disown(std::exchange(root_, owner::united(root_, theirs.root_).release()));
}

void point_tree::visit_all(void (*visit)(void* to, point p), void* to) const {
    const auto go = [&](const auto& self, const node* in, timeline_id first, unsigned height) -> void {
        if (in == nullptr) {
            return;
        }
        for (std::size_t i = 0; i < fanout; ++i) {
            const auto at = first + (static_cast<timeline_id>(i) << (bits * height));
            if (!in->leaf) {
                self(self, in->nodes[i], at, height - 1);
            } else if (in->epochs[i] != 0) {
                visit(to, {at, in->epochs[i]});
            }
        }
    };
    go(go, root_, 0, height_);
}

}  // namespace weir::frontiers
