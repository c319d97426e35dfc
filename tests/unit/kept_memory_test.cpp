// The memory that threads keep for the clocks that they make next.
#include "frontier/kept_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/scarce_memory.hpp"

namespace {

using weir::test::live_allocations;

struct thing : weir::detail::keeps_memory<thing> {
    double numbers[8] = {};
};
using things = std::vector<std::unique_ptr<thing>>;

things make(std::size_t count) {
    things made(count);
    for (auto& one : made) {
        one = std::make_unique<thing>();
    }
    return made;
}

/// How many more allocations there are after `run` than before, in a thread of its own.
template <class Run>
long growth_in_a_thread(Run&& run) {
    long grown = 0;
    std::thread([&] {
        const long before = live_allocations();
        run();
        grown = live_allocations() - before;
    }).join();
    return grown;
}

constexpr long count = 20;

TEST(KeptMemory, AThreadThatEndsWhatOthersMadeKeepsNothing) {
    things made = make(count);
    EXPECT_EQ(growth_in_a_thread([&] {
                  for (auto& one : made) {
                      one.reset();
                  }
              }),
              -count);
}

#ifndef __SANITIZE_ADDRESS__  // the address sanitizer must see each release
TEST(KeptMemory, AThreadUsesAgainWhatItMade) {
    growth_in_a_thread([] {
        for (int i = 0; i < 3; ++i) {
            const long before = live_allocations();
            things made = make(count);
            const long more = live_allocations() - before - 1;  // the list
            EXPECT_EQ(more, i == 0 ? count : 0);
        }
    });
}
#endif

TEST(KeptMemory, AThreadThatEndsKeepsNothing) {
    const long before = live_allocations();
    growth_in_a_thread([] { const things made = make(100); });
    EXPECT_EQ(live_allocations(), before);
}

}  // namespace
