// The failure of any one operation of a program (rules K4, L6): independent results are right, dependent ones are
// refused, nothing is lost, and the same program runs without errors afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/lifetime/reaper.hpp"
#include "weir/weir.hpp"

namespace weir {
namespace {

constexpr std::int64_t count = 256;

/// Two independent chains of operations, each over two streams, with an intermediate array that is
/// dropped, a host task, an object that is kept alive and memory that others own.
class program {
public:
    explicit program(int failing) : failing_(failing) {}

    /// The number of operations in one chain.
    static constexpr int length = 5;

    void run() {
        for (int chain = 0; chain < 2; ++chain) {
            enqueue(chain);
        }
    }
    /// Whether the chain's result is right; false if it is refused. Throws std::logic_error if it is wrong.
    bool is_right(int chain) {
        try {
            const auto elements = results_[chain].read<double>();
            if (elements[0] != 8.0 + chain || elements[count - 1] != 8.0 + chain) {
                throw std::logic_error("a wrong result");
            }
            return true;
        } catch (const operation_error& refused) {
            EXPECT_EQ(refused.label(), "bad");
            return false;
        }
    }
    [[nodiscard]] int let_go() const { return *let_go_; }

private:
    void step(int number) const {
        if (number == failing_) {
            throw std::runtime_error("on purpose");
        }
    }
    void enqueue(int chain) {
        const int first = chain * length + 1;
        const stream a;
        const stream b;
        const auto label = [](const stream& s) { return on(s).label("bad"); };
        const auto memory = std::make_shared<std::array<double, count>>();
        array lent(buffer::wrap(memory->data(), sizeof(*memory), cpu(), [memory, n = let_go_] { ++*n; }),
                   dtype::float64, count);
        results_[chain] = empty(count, dtype::float64, b);
        access(
            label(a),
            [this, first, chain](native_stream, std::span<double> x) {
                step(first);
                std::fill(x.begin(), x.end(), 1.0 + chain);
            },
            out(lent.view<double>()));
        array middle = empty(count, dtype::float64, a);
        access(
            label(b),
            [this, first](auto, auto x, auto y) {
                step(first + 1);
                std::transform(x.begin(), x.end(), y.begin(), [](double one) { return one + 2; });
            },
            in(lent.view<double>()), out(middle.view<double>()));
        const completion task = host_task(
            label(a),
            [this, first](std::span<double> y) {
                step(first + 2);
                for (double& one : y) {
                    one += 2;
                }
            },
            inout(middle.view<double>()));
        keep_alive(task, std::shared_ptr<void>(nullptr, [n = let_go_](void*) { ++*n; }));
        access(
            label(a),
            [this, first](auto, auto y, auto z) {
                step(first + 3);
                std::transform(y.begin(), y.end(), z.begin(), [](double one) { return one + 2; });
            },
            in(middle.view<double>()), out(results_[chain].view<double>()));
        middle = {};
        access(
            label(b),
            [this, first](native_stream, std::span<double> z) {
                step(first + 4);
                for (double& one : z) {
                    one += 1;
                }
            },
            inout(results_[chain].view<double>()));
    }

    int failing_;
    std::shared_ptr<std::atomic<int>> let_go_ = std::make_shared<std::atomic<int>>(0);
    array results_[2];
};

TEST(K4L6, WhicheverOperationFailsTheRestIsRightAndNothingIsLost) {
    const std::size_t live = memory::stats().live;
    for (int failing = 0; failing <= 2 * program::length; ++failing) {
        SCOPED_TRACE("operation " + std::to_string(failing));
        {
            program one(failing);
            one.run();
            for (int chain = 0; chain < 2; ++chain) {
                const bool fails = failing > chain * program::length && failing <= (chain + 1) * program::length;
                EXPECT_EQ(one.is_right(chain), !fails) << "chain " << chain;
            }
            runtime::reaper::wait_until_empty();
            EXPECT_EQ(one.let_go(), 4) << "what was lent, and what was kept alive, of both chains";
            program clean(0);
            clean.run();
            EXPECT_TRUE(clean.is_right(0));
            EXPECT_TRUE(clean.is_right(1));
            runtime::reaper::wait_until_empty();
        }
        try {
            cpu().synchronize();
        } catch (const operation_error&) {
            // the failure was not reported by the streams, which are gone
        }
        EXPECT_EQ(memory::stats().live, live);
    }
}

}  // namespace
}  // namespace weir
