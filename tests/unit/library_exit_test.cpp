// The process does not end while a library computes on the host: the library's destructors would take away what it uses.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "calls/shared_library.hpp"

namespace weir::calls {
namespace {

std::atomic<int> begun{0};  ///< calls that are or were in progress
std::atomic<int> over{0};
std::atomic<bool> has_begun_to_end{false};

/// Runs after all exit handlers, as the destructors of a library do.
[[gnu::destructor]] void last() {
    if (begun != 0) {
        std::_Exit(begun == over ? 42 : 43);
    }
}

/// A call that is over some time after the process has begun to end.
void visits() {
    const library_visit inside;
    ++begun;
    while (!has_begun_to_end) {
        std::this_thread::yield();
    }
    for (int i = 0; i < 10'000; ++i) {  // the process has time to end
        std::this_thread::yield();
    }
    ++over;
}

/// Ends the process while a thread is in a library, and others come while it ends.
[[noreturn]] void end_during_a_visit() {
    std::thread([] {
        std::thread([] {
            while (!has_begun_to_end) {
                std::this_thread::yield();
            }
            for (;;) {
                visits();
            }
        }).detach();
        visits();
    }).detach();
    while (begun == 0) {
        std::this_thread::yield();
    }
    std::atexit([] { has_begun_to_end = true; });
    std::exit(0);
}

TEST(LibraryExitDeathTest, S4TheEndOfTheProcessWaitsForACallInProgress) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(end_during_a_visit(), ::testing::ExitedWithCode(42), "");
}

TEST(LibraryExit, CallsNestAndAreAtOnceOnSeveralThreads) {
    const library_visit outer;
    const library_visit inner;
    std::thread([] { const library_visit beside; }).join();
}

}  // namespace
}  // namespace weir::calls
