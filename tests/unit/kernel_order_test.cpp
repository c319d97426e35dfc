// Scenario D1 by kernels: what `after` orders, and what operands live on. A kernel that waits for another stream holds the first
// one, so the order is certain on a GPU as well.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "kernel_support.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

constexpr const char* source = R"(
extern "C" __global__ void wait_and_set(unsigned long long flag, int* x, int value) {
    while (*(volatile int*)flag == 0) {
        __nanosleep(100);
    }
    x[0] = value;
}
extern "C" __global__ void set(int* x, int value) { x[0] = value; }
extern "C" __global__ void sum(const int* x, const int* y, int* z, int more) { z[0] = x[0] + y[0] + more; }
)";

/// The root, which waits until it is let go; two that read what it writes; and one that reads what these write.
class D1Kernels : public ::testing::Test {
protected:
    [[nodiscard]] static kernel made(const char* name) { return kernel::from_source(source, name); }
    [[nodiscard]] static array number(std::int32_t value) {
        const stream s(cuda());
        array x = full({1}, value, dtype::int32, s);
        s.synchronize();
        return x;
    }
    static auto view(const array& x) { return x.view<std::int32_t>(); }

    event launch_root(const on& where) {
        // The flag is not declared: what sets it is to run beside.
        const auto flag = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(flag_.device_data()));
        return launch_event(where, wait_and_set_, {1, 1, 0, true}, flag, out(view(x_)), 1);
    }
    event launch_sum(const on& where, const array& a, const array& b, const array& into, std::int32_t more) {
        return launch_event(where, sum_, {1, 1}, in(view(a)), in(view(b)), out(view(into)), more);
    }
    void let_go() { launch(release_, set_, {1, 1}, inout(view(flag_)), 1); }
    void synchronize() {
        for (const stream* one : {&release_, &root_, &left_, &right_, &join_}) {
            one->synchronize();
        }
    }
    [[nodiscard]] static std::int32_t value_of(const array& x) { return values_of<std::int32_t>(x)[0]; }

    time_limit limit_{120, "a kernel that waits to be let go"};
    kernel wait_and_set_ = made("wait_and_set");
    kernel set_ = made("set");
    kernel sum_ = made("sum");
    stream release_{cuda()};
    stream root_{cuda()};
    stream left_{cuda()};
    stream right_{cuda()};
    stream join_{cuda()};
    array flag_ = number(0);
    array zero_ = number(0);
    array x_ = number(0);
    array y_ = number(0);
    array z_ = number(0);
    array w_ = number(0);
};

TEST_F(D1Kernels, ADiamondOfEvents) {
    const ordering_scope manual(ordering_mode::manual);
    const event x = launch_root(root_);
    const event y = launch_sum(on(left_).after(x), x_, zero_, y_, 10);
    const event z = launch_sum(on(right_).after(x), x_, zero_, z_, 100);
    const event w = launch_sum(on(join_).after(y).after(z), y_, z_, w_, 1000);
    EXPECT_FALSE(x.done() || y.done() || z.done() || w.done());
    let_go();
    w.synchronize();
    EXPECT_TRUE(x.done() && y.done() && z.done());
    EXPECT_EQ(value_of(w_), 1112);
}

TEST_F(D1Kernels, AChainOfEventsThroughStreamsAndBack) {
    const ordering_scope manual(ordering_mode::manual);
    event last = launch_root(root_);
    const array* from = &x_;
    const array* into = &y_;
    for (const stream* one : {&left_, &right_, &join_, &left_, &root_, &right_}) {
        last = launch_sum(on(*one).after(last), *from, zero_, *into, 1);
        from = std::exchange(into, into == &y_ ? &z_ : &y_);
    }
    EXPECT_FALSE(last.done());
    let_go();
    last.synchronize();
    EXPECT_EQ(value_of(*from), 7);
}

TEST_F(D1Kernels, ControlWithoutEventsTheOthersDoNotWait) {
    const ordering_scope manual(ordering_mode::manual);
    const event x = launch_root(root_);
    launch_sum(left_, x_, zero_, y_, 10).synchronize();
    launch_sum(right_, x_, zero_, z_, 100).synchronize();
    launch_sum(join_, y_, z_, w_, 1000).synchronize();
    EXPECT_FALSE(x.done());
    let_go();
    synchronize();
    EXPECT_EQ(value_of(w_), 1110) << "of the root's old value";
}

TEST_F(D1Kernels, OrderedByWeirNoEventIsNeeded) {
    static_cast<void>(launch_root(root_));
    static_cast<void>(launch_sum(left_, x_, zero_, y_, 10));
    static_cast<void>(launch_sum(right_, x_, zero_, z_, 100));
    const event w = launch_sum(join_, y_, z_, w_, 1000);
    EXPECT_FALSE(w.done());
    let_go();
    EXPECT_EQ(value_of(w_), 1112);
}

TEST_F(D1Kernels, OperandsThatAreDroppedLiveOnWithoutAnyEvent) {
    array temporary = number(5);
    static_cast<void>(launch_root(root_));
    // Behind the root, in its stream: no dependency at all, and yet to run.
    const event end = launch_sum(root_, x_, temporary, w_, 0);
    temporary = {};
    // One of these would lie there. Not waited for: memory may come with a wait for its last use.
    std::vector<array> others;
    for (int i = 0; i < 8; ++i) {
        others.push_back(full({1}, 77, dtype::int32, left_));
    }
    EXPECT_FALSE(end.done());
    let_go();
    end.synchronize();
    EXPECT_EQ(value_of(w_), 6);
}

}  // namespace
}  // namespace weir::test
