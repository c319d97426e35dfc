// How many programs the tests run, from which seed, and what happens if one of them hangs.
#pragma once

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "support/effort.hpp"
#include "support/fake_cuda.hpp"

namespace random_programs {

inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Whether one program is to be replayed.
inline bool is_replay() {
    return std::getenv("WEIR_TEST_SEED") != nullptr && std::getenv("WEIR_TEST_PROGRAMS") == nullptr;
}
inline std::uint64_t first_seed() { return number_from("WEIR_TEST_SEED", 1); }
/// One `share`-th of the programs that are asked for.
inline std::uint64_t wanted_programs(std::uint64_t share = 1) {
    const std::uint64_t all = number_from("WEIR_TEST_PROGRAMS", weir::test::sanitized ? 500 : 10'000);
    return is_replay() ? 1 : (all + share - 1) / share;
}

/// All of them on a GPU; a twentieth on the fake driver, whose threads are slower.
inline std::uint64_t wanted_cuda_programs() { return wanted_programs(weir::test::fake_cuda::in_use() ? 20 : 1); }

/// How to run one program again.
inline std::string replay_command(std::uint64_t seed, const std::string& test) {
    return "WEIR_TEST_SEED=" + std::to_string(seed) + " build/release/tests/property/random_programs/" +
           program_invocation_short_name + " --gtest_filter=" + test;
}

/// Ends the process, with the seed and how to replay it, if a program hangs.
class watchdog {
public:
    explicit watchdog(std::string test) : test_(std::move(test)), thread_([this] { watch(); }) {}
    ~watchdog() {
        {
            const std::lock_guard lock(mutex_);
            over_ = true;
        }
        wake_.notify_all();
        thread_.join();
    }
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

    /// This program starts now.
    void start(std::uint64_t seed) {
        const std::lock_guard lock(mutex_);
        seed_ = seed;
        started_ = std::chrono::steady_clock::now();
    }

private:
    static constexpr std::chrono::seconds patience{weir::test::sanitized ? 240 : 60};

    void watch() {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, std::chrono::seconds(1), [&] { return over_; })) {
            if (std::chrono::steady_clock::now() - started_ > patience) {
                std::fprintf(stderr, "the program of seed %llu hangs: %s\n", static_cast<unsigned long long>(seed_),
                             replay_command(seed_, test_).c_str());
                std::abort();
            }
        }
    }

    std::string test_;
    std::mutex mutex_;  ///< guards what follows
    std::condition_variable wake_;
    bool over_ = false;
    std::uint64_t seed_ = 0;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::thread thread_;
};

}  // namespace random_programs
