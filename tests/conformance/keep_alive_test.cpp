// Scenario D4: kept objects are released after the work, not before, and exactly once, also if something fails.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/devices.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

using test::here;
using testing::gate;

/// Counts its releases. Moved-from objects do not count.
class counts {
public:
    explicit counts(std::atomic<int>& released) : released_(&released) {}
    counts(counts&& other) noexcept : released_(std::exchange(other.released_, nullptr)) {}
    counts& operator=(counts&&) = delete;
    ~counts() {
        if (released_ != nullptr) {
            ++*released_;
        }
    }

private:
    std::atomic<int>* released_;
};

class D4 {
protected:
    /// A thread of Weir's releases objects, soon after the event is over.
    void expect_released(int wanted) {
        while (released < wanted) {
            std::this_thread::yield();
        }
        EXPECT_EQ(released, wanted);
    }

    stream s{here()};
    gate held;
    std::atomic<int> released{0};
};

WEIR_CONFORMANCE_F(D4, ReleasedAfterTheEventNotBeforeAndExactlyOnce) {
    held.hold(s);
    int seen = -1;
    const completion work = parallel_for(s, 1, [&](auto) { seen = released; });
    keep_alive(work, counts(released), counts(released));
    EXPECT_EQ(released, 0);
    held.open();
    parallel_for(s, 1, [](auto) {}).synchronize();
    EXPECT_EQ(seen, 0);
    expect_released(2);
}

WEIR_CONFORMANCE_F(D4, ControlWhatNobodyKeepsGoesBeforeTheWork) {
    held.hold(s);
    int seen = -1;
    const completion work = parallel_for(s, 1, [&](auto) { seen = released; });
    { const counts nobodys(released); }
    held.open();
    work.synchronize();
    EXPECT_EQ(seen, 1);
}

WEIR_CONFORMANCE_F(D4, ReleasedAtOnceIfThereIsNothingToWaitFor) {
    keep_alive(event(), counts(released));
    EXPECT_EQ(released, 1);
    const completion over = parallel_for(s, 1, [](auto) {});
    over.synchronize();
    keep_alive(over, counts(released));
    EXPECT_EQ(released, 2);
}

WEIR_CONFORMANCE_F(D4, ReleasedIfTheOperationFailsOrDoesNotRun) {
    const stream other(here());
    array x = zeros(1, dtype::float64, s);
    held.hold(s);
    const completion failed = access(
        s, [](auto...) { throw std::runtime_error("overflow"); }, out(x.view<double>()));
    const completion depends = access(
        other, [](auto...) {}, in(x.view<double>()));
    keep_alive(failed, counts(released));
    keep_alive(depends, counts(released));
    held.open();
    EXPECT_THROW(depends.synchronize(), operation_error);
    EXPECT_THROW(failed.synchronize(), operation_error);
    parallel_for(s, 1, [](auto) {}).synchronize();
    parallel_for(other, 1, [](auto) {}).synchronize();
    expect_released(2);
}

WEIR_CONFORMANCE_F(D4, NothingIsTakenIfKeepingOrEnqueueingFails) {
    struct no_copy {
        std::shared_ptr<int> what;
        explicit no_copy(std::shared_ptr<int> kept) : what(std::move(kept)) {}
        no_copy(const no_copy&) { throw std::bad_alloc(); }
        no_copy& operator=(const no_copy&) = delete;
        ~no_copy() = default;
    };
    held.hold(s);
    const completion work = parallel_for(s, 1, [](auto) {});
    const auto kept = std::make_shared<int>(1);
    const no_copy object(kept);
    EXPECT_THROW(keep_alive(work, std::shared_ptr<int>(kept), object), std::bad_alloc);
    EXPECT_EQ(kept.use_count(), 2) << "ours, and that of the object that could not be copied";
    stream closed;
    closed.close();
    EXPECT_THROW(parallel_for(closed, 1, [kept](auto) {}), state_error);
    EXPECT_EQ(kept.use_count(), 2);
    held.open();
}

WEIR_CONFORMANCE_F(D4, EightThreadsKeepObjectsAfterTheSameEventAndAfterTheirOwn) {
    constexpr int threads = 8;
    constexpr int each = 500;
    held.hold(s);
    const completion shared = parallel_for(s, 1, [](auto) {});
    std::vector<std::thread> all;
    std::atomic<int> ready{0};
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            const stream mine(here());
            for (int i = 0; i < each; ++i) {
                keep_alive(shared, counts(released));
                keep_alive(parallel_for(mine, 1, [](auto) {}), counts(released));
                if (i == each / 2 && ++ready == threads) {
                    held.open();  // in the middle of it
                }
            }
            parallel_for(mine, 1, [](auto) {}).synchronize();
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    parallel_for(s, 1, [](auto) {}).synchronize();
    expect_released(2 * threads * each);
}

}  // namespace
}  // namespace weir
