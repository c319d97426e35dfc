#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "backend/fetch.hpp"

namespace weir::backend {

/// An unbounded first-in-first-out list of records of different sizes, for one producer and one consumer at a time. Records
/// lie one behind the other in segments that are reused, so that in the steady state nothing is allocated.
///
/// The producer calls reserve, then push for each record, then commit: the consumer sees records from commit on.
class record_ring {
public:
    record_ring() = default;
    ~record_ring();
    record_ring(const record_ring&) = delete;
    record_ring& operator=(const record_ring&) = delete;

    /// Records start at addresses of this alignment and take multiples of it.
    static constexpr std::size_t alignment = alignof(std::max_align_t);

    [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept {
        return (bytes + alignment - 1) / alignment * alignment;
    }

    /// Producer: makes room for records of `bytes` together (each rounded). Throws std::bad_alloc.
    void reserve(std::size_t bytes) {
        if (tail_ == nullptr || written_ + bytes > tail_->capacity) {
            add_segment(bytes);
        }
    }
    /// Producer: room for one record, within what was reserved.
    [[nodiscard]] void* push(std::size_t bytes) noexcept {
        std::byte* const at = data(tail_) + written_;
        if (written_ + fetched_ahead + bytes <= tail_->capacity) {
            // The consumer has read these bytes, so that they are in the cache of its processor, which has to give them up.
            for (std::size_t i = 0; i < bytes; i += cache_line) {
                fetch_for_writing(at + fetched_ahead + i);
            }
        }
        written_ += static_cast<std::uint32_t>(rounded(bytes));
        return at;
    }
    /// Producer: lets the consumer see what was pushed.
    void commit() noexcept { tail_->committed.store(written_, std::memory_order_release); }

    /// Consumer: the oldest record, or null.
    [[nodiscard]] void* front() noexcept {
        // Loads what the producer writes only when all records seen so far are used up: each such load costs both threads.
        return read_ < seen_ ? data(head_) + read_ : look();
    }
    /// Consumer: whether `front` can return a record without loading what the producer writes.
    [[nodiscard]] bool has_seen() const noexcept { return read_ < seen_; }
    /// Consumer: drops the oldest record, which took `bytes`.
    void pop(std::size_t bytes) noexcept { read_ += static_cast<std::uint32_t>(rounded(bytes)); }

private:
    struct segment {
        std::atomic<std::uint32_t> committed{0};
        std::uint32_t capacity = 0;
        std::atomic<segment*> next{nullptr};
        alignas(alignment) std::byte data[alignment];  // `capacity` bytes follow
    };
    void add_segment(std::size_t bytes);
    void* look() noexcept;
    static segment* make(std::size_t capacity);
    static void destroy(segment* one) noexcept;
    static std::byte* data(segment* one) noexcept { return one->data; }

    static constexpr std::size_t cache_line = 64;
    /// Some records: covers the time that the other processor takes to give up a line.
    static constexpr std::size_t fetched_ahead = 512;
    static constexpr std::size_t first_capacity = 1024;
    static constexpr std::size_t largest_capacity = 32768;

    // Written by the producer.
    alignas(64) segment* tail_ = nullptr;
    std::uint32_t written_ = 0;
    std::size_t next_capacity_ = first_capacity;
    std::atomic<segment*> first_{nullptr};  ///< the first segment ever, for the consumer to start with
    // Written by the consumer.
    alignas(64) segment* head_ = nullptr;
    std::uint32_t read_ = 0;
    std::uint32_t seen_ = 0;  ///< head_->committed when last looked at
    // Handed from consumer to producer: a segment for reuse.
    alignas(64) std::atomic<segment*> spare_{nullptr};
};

}  // namespace weir::backend
