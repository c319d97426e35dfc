#pragma once

#include <cstddef>
#include <map>
#include <new>
#include <utility>
#include <vector>

namespace weir::runtime {

/// A std::map that keeps some entries in reserve, so that a few can be added when no memory is left. Not synchronised.
template <class Key, class Value>
class reserved_map {
public:
    using map = std::map<Key, Value>;

    /// Throws std::bad_alloc.
    reserved_map() {
        spare_.reserve(spares);
        refill();
    }

    /// The entry of `key`, new if there is none; null if there is no room for it.
    [[nodiscard]] Value* find_or_add(const Key& key) noexcept {
        try {
            Value& found = entries_[key];
            refill();
            return &found;
        } catch (const std::bad_alloc&) {
            if (spare_.empty()) {
                return nullptr;
            }
            auto node = std::move(spare_.back());
            spare_.pop_back();
            node.key() = key;
            return &entries_.insert(std::move(node)).position->second;
        }
    }

    [[nodiscard]] map& entries() noexcept { return entries_; }

private:
    static constexpr std::size_t spares = 16;

    void refill() {
        while (spare_.size() < spares) {
            map one;
            one.emplace();
            spare_.push_back(one.extract(one.begin()));
        }
    }

    map entries_;
    std::vector<typename map::node_type> spare_;
};

}  // namespace weir::runtime
