// The least that a tracker must do, for comparison: Weir's price above this is the price of its other promises.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda_device.hpp"

namespace weir::bench {

/// Inserts the missing waits between a few streams, and nothing else: one thread, one device, whole arrays, no memory to give
/// back, no failures, no reports. It knows which waits others imply, as Weir does, and records one event for all streams that wait
/// for the same operation.
class least_tracker {
public:
    static constexpr std::size_t most_streams = 8;

    /// The state of one array: the operation that wrote it last, and those that have read it since.
    struct memory {
        std::size_t writer = 0;
        std::uint64_t written = 0;  ///< 0: no operation
        std::array<std::uint64_t, most_streams> read{};
    };

    least_tracker(const driver::context& in, std::size_t streams) : streams_(streams) {
        for (std::size_t i = 0; i < streams; ++i) {
            raw_.push_back(std::make_unique<raw_stream>(in));
            events_.push_back(std::make_unique<raw_event>(in));
        }
    }

    [[nodiscard]] const raw_stream& stream(std::size_t which) const noexcept { return *raw_[which]; }
    [[nodiscard]] std::size_t waits() const noexcept { return waits_; }
    void synchronize() const {
        for (const auto& one : raw_) {
            one->synchronize();
        }
    }

    /// The next operation of stream `of`, which reads and writes these, has nothing to wait for any more.
    void order(std::size_t of, std::span<memory* const> reads, memory& write) {
        clock need{};
        need[write.writer] = write.written;
        for (std::size_t i = 0; i < streams_; ++i) {
            need[i] = std::max(need[i], write.read[i]);
        }
        for (const memory* one : reads) {
            need[one->writer] = std::max(need[one->writer], one->written);
        }
        clock& seen = seen_[of];
        clock after = seen;
        for (std::size_t i = 0; i < streams_; ++i) {
            if (need[i] > seen[i] && !is_implied(need, i, seen)) {
                wait(of, i, need[i]);
                const clock& theirs = at(i, need[i]);
                for (std::size_t j = 0; j < most_streams; ++j) {
                    after[j] = std::max(after[j], theirs[j]);
                }
            }
        }
        const std::uint64_t epoch = ++tails_[of];
        after[of] = epoch;
        seen = after;
        at(of, epoch) = after;
        for (memory* one : reads) {
            one->read[of] = epoch;
        }
        write.writer = of;
        write.written = epoch;
        write.read = {};
    }

private:
    using clock = std::array<std::uint64_t, most_streams>;
    static constexpr std::size_t kept = 128;  ///< how many of a stream's latest operations other streams may wait for

    [[nodiscard]] clock& at(std::size_t of, std::uint64_t epoch) noexcept { return clocks_[of][epoch % kept]; }
    /// Whether an operation of another stream, which is waited for too, comes after what stream `which` did.
    [[nodiscard]] bool is_implied(const clock& need, std::size_t which, const clock& seen) noexcept {
        for (std::size_t other = 0; other < streams_; ++other) {
            if (other != which && need[other] > seen[other] && at(other, need[other])[which] >= need[which]) {
                return true;
            }
        }
        return false;
    }
    void wait(std::size_t waiter, std::size_t of, std::uint64_t epoch) {
        if (recorded_[of] < epoch) {
            events_[of]->record(*raw_[of]);
            recorded_[of] = tails_[of];
        }
        events_[of]->hold(*raw_[waiter]);
        ++waits_;
    }

    std::size_t streams_;
    std::vector<std::unique_ptr<raw_stream>> raw_;
    std::vector<std::unique_ptr<raw_event>> events_;
    clock tails_{};
    clock recorded_{};
    std::array<clock, most_streams> seen_{};
    std::array<std::array<clock, kept>, most_streams> clocks_{};
    std::size_t waits_ = 0;
};

}  // namespace weir::bench
