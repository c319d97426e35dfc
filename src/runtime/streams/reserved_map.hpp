#pragma once

#include <cstddef>
#include <map>
#include <new>
#include <utility>
#include <vector>

namespace weir::runtime {

/// A std::map that keeps some entries in reserve, so that a few can be added when no memory is left. Not synchronized.
template <class Key, class Value>
class reserved_map {
public:
    using map = std::map<Key, Value>;

    /// Throws std::bad_alloc.
    reserved_map() {
        spare_.reserve(spares);
        refill();
        if (spare_.size() < spares) {
            throw std::bad_alloc();
        }
    }

    /// The entry of `key`, new if there is none; null if there is no memory for it.
    [[nodiscard]] Value* find_or_add(const Key& key) noexcept {
        if (const auto known = entries_.find(key); known != entries_.end()) {
            return &known->second;
        }
        try {
            Value& added = entries_[key];
            refill();
            return &added;
        } catch (const std::bad_alloc&) {
            return add_from_reserve(key);
        }
    }

    [[nodiscard]] map& entries() noexcept { return entries_; }

private:
    static constexpr std::size_t spares = 16;

    /// Refills the reserve as far as there is memory.
    void refill() noexcept {
        try {
            while (spare_.size() < spares) {
                map one;
                one.emplace();
                spare_.push_back(one.extract(one.begin()));
            }
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next call tries again
        }
    }

    Value* add_from_reserve(const Key& key) noexcept {
        if (spare_.empty()) {
            return nullptr;
        }
        auto node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = key;
        return &entries_.insert(std::move(node)).position->second;
    }

    map entries_;
    std::vector<typename map::node_type> spare_;
};

}  // namespace weir::runtime
