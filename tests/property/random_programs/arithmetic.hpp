// What one operation of a random program computes. Interpreter and oracle share it, as part of what a program means.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace random_programs {

/// How elements are accessed where nothing races, so that the thread sanitizer reports a race after all.
struct plain_memory {
    static double load(const double& from) noexcept { return from; }
    static void store(double& to, double value) noexcept { to = value; }
};

/// The same for programs that race on purpose.
struct racing_memory {
    static double load(const double& from) noexcept {
        return std::atomic_ref(const_cast<double&>(from)).load(std::memory_order_relaxed);
    }
    static void store(double& to, double value) noexcept {
        std::atomic_ref(to).store(value, std::memory_order_relaxed);
    }
};

/// Mixes two numbers so that the order in which several are mixed shows in the result.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t z = a * 0x9e3779b97f4a7c15U + b + 0x632be59bd9b4e019U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

/// A number that a double holds exactly, made from 52 bits of `mixed`.
[[nodiscard]] constexpr double exact(std::uint64_t mixed) noexcept { return static_cast<double>(mixed >> 12U); }

/// The value that the step `number` brings to element `i` of its `which`-th range from outside.
[[nodiscard]] constexpr double fresh(int number, std::size_t which, std::size_t i) noexcept {
    return exact(mix(mix(static_cast<std::uint64_t>(number), which), i));
}

/// The value that a step that adds adds to element `i`: small, so that sums are exact.
[[nodiscard]] constexpr double addend(int number, std::size_t i) noexcept {
    return static_cast<double>(static_cast<std::size_t>(number) % 1009U + i + 1U);
}

/// The i-th step of an operation's loop: each range that is written gets at i the values of all ranges there, mixed with the
/// operation's number. Ranges may overlap; then earlier writes show in later reads.
template <class Memory>
void compute_at(int number, bool adds, std::size_t i, std::span<const std::span<const double>> reads,
                std::span<const std::span<double>> writes) noexcept {
    for (std::size_t which = 0; which < writes.size(); ++which) {
        if (i >= writes[which].size()) {
            continue;
        }
        double& target = writes[which][i];
        if (adds) {
            Memory::store(target, Memory::load(target) + addend(number, i));
            continue;
        }
        std::uint64_t mixed = mix(std::bit_cast<std::uint64_t>(fresh(number, which, i)),
                                  std::bit_cast<std::uint64_t>(Memory::load(target)));
        for (const std::span<const double>& read : reads) {
            mixed = mix(mixed, std::bit_cast<std::uint64_t>(Memory::load(read[i % read.size()])));
        }
        Memory::store(target, exact(mixed));
    }
}

/// How often `compute_at` is called.
[[nodiscard]] inline std::size_t extent(std::span<const std::span<double>> writes) noexcept {
    std::size_t most = 0;
    for (const std::span<double>& write : writes) {
        most = write.size() > most ? write.size() : most;
    }
    return most;
}

/// How many of an operation's `all` steps have run when it fails.
[[nodiscard]] constexpr std::size_t done_before_failure(std::size_t all) noexcept { return all / 2; }

}  // namespace random_programs
