#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "backend/hot_mutex.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"

namespace weir::runtime {

/// The resources of one operation, each once, in the order of their addresses, in which they are locked (rule O8). `Count` is the
/// number of accesses if the caller knows it at compile time, so that an operation with one operand needs no loop and no array.
template <std::size_t Count = std::dynamic_extent>
class operands {
public:
    static constexpr std::size_t few = 8;

    /// Makes room for `accesses` resources. Throws std::bad_alloc if they are more than `few`.
    explicit operands(std::size_t accesses) {
        if (accesses > few) [[unlikely]] {
            many_ = std::make_unique<resource*[]>(accesses);
            list_ = many_.get();
        }
    }
    ~operands() = default;
    operands(const operands&) = delete;
    operands& operator=(const operands&) = delete;

    /// Inserts a resource at its place; returns false if it is there already.
    bool add(resource* target) noexcept {
        std::size_t place = count_;
        for (; place != 0 && std::less<>()(target, list_[place - 1]); --place) {
            list_[place] = list_[place - 1];
        }
        if (place != 0 && list_[place - 1] == target) [[unlikely]] {
            for (; place != count_; ++place) {
                list_[place] = list_[place + 1];
            }
            return false;
        }
        list_[place] = target;
        ++count_;
        return true;
    }
    [[nodiscard]] std::span<resource* const> all() const noexcept { return {list_, count_}; }

private:
    std::array<resource*, few> few_;  // initialized only as far as it is used
    std::unique_ptr<resource*[]> many_;
    resource** list_ = few_.data();
    std::size_t count_ = 0;
};

template <>
class operands<1> {
public:
    explicit operands(std::size_t /*accesses*/) noexcept {}
    bool add(resource* target) noexcept {
        only_ = target;
        return true;
    }
    [[nodiscard]] std::span<resource* const, 1> all() const noexcept {
        return std::span<resource* const, 1>(&only_, 1);
    }

private:
    resource* only_ = nullptr;
};

/// The locks of an operation's resources, then of its stream. The calling thread is in a fork_section while it holds them.
template <std::size_t Count>
class operand_locks {
public:
    /// `stream`: null if the caller locks it by other means.
    [[gnu::always_inline]] operand_locks(std::span<resource* const, Count> resources, stream_state* stream) noexcept
        : resources_(resources), stream_(stream) {
        for (resource* const one : resources_) {
            one->mutex.within_section().lock();
        }
        if (stream_ != nullptr) {
            stream_->mutex.within_section().lock();
        }
    }
    [[gnu::always_inline]] ~operand_locks() {
        if (is_held_) {
            unlock();
        }
    }
    operand_locks(const operand_locks&) = delete;
    operand_locks& operator=(const operand_locks&) = delete;

    /// May be called once.
    [[gnu::always_inline]] void unlock() noexcept {
        is_held_ = false;
        if (stream_ != nullptr) {
            stream_->mutex.within_section().unlock();
        }
        for (std::size_t i = resources_.size(); i > 0; --i) {
            resources_[i - 1]->mutex.within_section().unlock();
        }
    }

private:
    std::span<resource* const, Count> resources_;
    stream_state* stream_;
    bool is_held_ = true;
};

}  // namespace weir::runtime
