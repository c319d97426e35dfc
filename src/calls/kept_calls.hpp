#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "backend/hot_mutex.hpp"
#include "frontier/small_vector.hpp"
#include "weir/array.hpp"
#include "weir/device.hpp"
#include "weir/scalar.hpp"

namespace weir::calls {

/// Everything that a call's description depends on, in words. Calls with equal keys are the same call on other arrays.
class call_key {
public:
    void add(std::uint64_t word) {
        words_.push_back(word);
        hash_ = std::rotl((hash_ ^ word) * 0x9E3779B97F4A7C15U, 29);
    }
    void add(std::int64_t number) { add(static_cast<std::uint64_t>(number)); }
    void add(double number) { add(std::bit_cast<std::uint64_t>(number)); }
    void add(std::span<const std::int64_t> numbers) {
        add(static_cast<std::uint64_t>(numbers.size()));
        for (const std::int64_t each : numbers) {
            add(each);
        }
    }
    /// With its kind: 1 and 1.0 are different numbers.
    void add(const scalar& number) {
        add(static_cast<std::uint64_t>(number.value().index()));
        std::visit(
            [this](auto value) {
                if constexpr (std::is_same_v<decltype(value), std::complex<double>>) {
                    add(value.real());
                    add(value.imag());
                } else if constexpr (std::is_same_v<decltype(value), double>) {
                    add(value);
                } else {
                    add(static_cast<std::uint64_t>(value));
                }
            },
            number.value());
    }
    /// Its device, its element type and its shape.
    void add(const array& operand) {
        if (operand.size() > 0) {
            const device home = operand.device();
            add(static_cast<std::uint64_t>(home.kind()) << 32U | static_cast<std::uint32_t>(home.id()));
        }
        add(std::uint64_t{operand.dtype().key()});
        add(operand.shape().extents());
    }

    [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
    friend bool operator==(const call_key& a, const call_key& b) noexcept {
        return a.hash_ == b.hash_ && a.words_ == b.words_;
    }

private:
    std::uint64_t hash_ = 0;
    detail::small_vector<std::uint64_t, 24> words_;
};

/// The descriptions of stateless calls that were made lately, each with what its executions prepared. So a repeated call costs about as
/// much as the execution of a plan. Keeps at most `most`, and then drops the one that was used longest ago; a call that is being made, and
/// work that is pending, share what they need. Any thread.
template <class Entry>
class kept_calls {
public:
    static constexpr std::size_t most = 64;

    kept_calls() = default;
    kept_calls(const kept_calls&) = delete;
    kept_calls& operator=(const kept_calls&) = delete;
    ~kept_calls() = default;

    /// The entry of that key. `make` makes it, a shared_ptr, if there is none; what it throws is passed on, and nothing is kept.
    template <class Make>
    [[nodiscard]] std::shared_ptr<Entry> get(const call_key& key, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            if (const std::size_t at = place_of(key); at < entries_.size()) {
                entries_[at].used = ++clock_;
                return entries_[at].what;
            }
        }
        std::shared_ptr<Entry> made = make();
        known added{key, made, 0};  // holds what is dropped, until the lock is released
        const std::lock_guard lock(mutex_);
        if (const std::size_t at = place_of(key); at < entries_.size()) {
            return entries_[at].what;  // another thread was faster
        }
        added.used = ++clock_;
        if (entries_.size() < most) {
            hashes_.reserve(most);
            entries_.reserve(most);
            hashes_.push_back(key.hash());
            entries_.push_back(std::move(added));
            return made;
        }
        const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                             [](const known& a, const known& b) { return a.used < b.used; });
        hashes_[static_cast<std::size_t>(oldest - entries_.begin())] = key.hash();
        std::swap(*oldest, added);
        return made;
    }

    /// Drops all.
    void clear() noexcept {
        std::vector<known> dropped;
        const std::lock_guard lock(mutex_);
        dropped.swap(entries_);
        hashes_.clear();
    }
    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return entries_.size();
    }

private:
    struct known {
        call_key key;
        std::shared_ptr<Entry> what;
        std::uint64_t used;
    };
    /// The number of entries if it is not there.
    [[nodiscard]] std::size_t place_of(const call_key& key) const noexcept {
        for (std::size_t i = 0; i < hashes_.size(); ++i) {
            if (hashes_[i] == key.hash() && entries_[i].key == key) {
                return i;
            }
        }
        return entries_.size();
    }

    mutable backend::hot_mutex mutex_;  ///< guards the others; a leaf in the lock order
    std::vector<std::uint64_t> hashes_;
    std::vector<known> entries_;
    std::uint64_t clock_ = 0;
};

}  // namespace weir::calls
