#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>

#include "memory/block.hpp"
#include "order/history.hpp"
#include "runtime/streams/stream_state.hpp"
#include "weir/detail/intrusive.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

// --- limiting -----------------------------------------------------------------------------------------------------

class limiting_resource final : public memory_resource {
public:
    limiting_resource(std::size_t most, resource_ptr upstream) : most_(most), upstream_(std::move(upstream)) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        std::size_t live = live_.load(std::memory_order_relaxed);
        do {
            if (live > most_ || bytes > most_ - live) {
                throw out_of_memory("out of memory: " + std::to_string(bytes) + " bytes wanted, while " +
                                    std::to_string(live) + " are live of the " + std::to_string(most_) +
                                    " bytes that weir::memory::limiting allows. Drop arrays that are no longer "
                                    "needed, work in smaller parts, or allow more.");
            }
        } while (!live_.compare_exchange_weak(live, live + bytes, std::memory_order_relaxed));
        try {
            return allocate_from(upstream_, bytes, alignment, on, where);
        } catch (...) {
            live_.fetch_sub(bytes, std::memory_order_relaxed);
            throw;
        }
    }
    void dropped(std::uint64_t /*id*/, std::size_t bytes) noexcept override {
        live_.fetch_sub(bytes, std::memory_order_relaxed);
    }

    const std::size_t most_;
    const resource_ptr upstream_;
    std::atomic<std::size_t> live_{0};
};

// --- counting -----------------------------------------------------------------------------------------------------

class counter final : public counting_resource {
public:
    explicit counter(resource_ptr upstream) : upstream_(std::move(upstream)) {}

    figures counts() const override {
        const std::lock_guard lock(mutex_);
        return counts_;
    }

private:
    static void add(figure& to, std::size_t bytes) noexcept {
        ++to.count;
        to.bytes += bytes;
    }
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        try {
            buffer made = allocate_from(upstream_, bytes, alignment, on, where);
            const std::lock_guard lock(mutex_);
            add(counts_.live, bytes);
            add(counts_.total, bytes);
            counts_.peak.count = std::max(counts_.peak.count, counts_.live.count);
            counts_.peak.bytes = std::max(counts_.peak.bytes, counts_.live.bytes);
            return made;
        } catch (...) {
            const std::lock_guard lock(mutex_);
            add(counts_.failed, bytes);
            throw;
        }
    }
    void dropped(std::uint64_t /*id*/, std::size_t bytes) noexcept override {
        const std::lock_guard lock(mutex_);
        --counts_.live.count;
        counts_.live.bytes -= bytes;
    }

    const resource_ptr upstream_;
    mutable detail::mutex mutex_;  ///< guards counts_; a leaf in the lock order
    figures counts_;
};

// --- failing ------------------------------------------------------------------------------------------------------

/// A number in [0, 1) for each pair. Mixes as SplitMix64 does (G. L. Steele, D. Lea, C. H. Flood, 2014).
double draw(std::uint64_t seed, std::uint64_t number) noexcept {
    std::uint64_t z = seed + number * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return std::ldexp(static_cast<double>(z >> 11), -53);
}

class failure_maker final : public failing_resource {
public:
    failure_maker(failures_wanted which, resource_ptr upstream) : which_(which), upstream_(std::move(upstream)) {}

    std::uint64_t asked() const noexcept override { return asked_.load(std::memory_order_relaxed); }
    std::uint64_t failed() const noexcept override { return failed_.load(std::memory_order_relaxed); }

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        const std::uint64_t number = asked_.fetch_add(1, std::memory_order_relaxed) + 1;
        if (number == which_.at || draw(which_.seed, number) < which_.probability) {
            failed_.fetch_add(1, std::memory_order_relaxed);
            throw out_of_memory("out of memory on purpose: allocation " + std::to_string(number) + " of " +
                                std::to_string(bytes) + " bytes fails, as weir::memory::failing was told");
        }
        return allocate_from(upstream_, bytes, alignment, on, where);
    }

    const failures_wanted which_;
    const resource_ptr upstream_;
    std::atomic<std::uint64_t> asked_{0};
    std::atomic<std::uint64_t> failed_{0};
};

// --- allocating_stream --------------------------------------------------------------------------------------------

class forgetful_resource final : public memory_resource {
public:
    explicit forgetful_resource(resource_ptr upstream) : upstream_(std::move(upstream)) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        buffer made = allocate_from(upstream_, bytes, alignment, on, where);
        block& described = static_cast<block&>(*made.resource(detail::key));  // the resource of every buffer is a block
        described.history.reserve(1);
        described.forgets_all_but = detail::owner<runtime::stream_state>(&on.state(detail::key));
        return made;
    }

    const resource_ptr upstream_;
};

}  // namespace

resource_ptr limiting(std::size_t most, resource_ptr upstream) {
    return std::make_shared<limiting_resource>(most, std::move(upstream));
}

std::shared_ptr<counting_resource> counting(resource_ptr upstream) {
    return std::make_shared<counter>(std::move(upstream));
}

std::shared_ptr<failing_resource> failing(failures_wanted which, resource_ptr upstream) {
    if (!(which.probability >= 0 && which.probability <= 1)) {
        throw argument_error("failing with the probability " + std::to_string(which.probability) +
                             ": a probability is 0 to 1");
    }
    return std::make_shared<failure_maker>(which, std::move(upstream));
}

resource_ptr allocating_stream(resource_ptr upstream) {
    return std::make_shared<forgetful_resource>(std::move(upstream));
}

}  // namespace weir::memory
