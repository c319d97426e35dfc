// Order between kernels, on a GPU as well: what `after` orders, how operands stay alive (scenario D1), and the driver's own order of
// default and blocking streams (S6).
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernel_gate.hpp"
#include "kernel_support.hpp"
#include "support/time_limit.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

constexpr const char* source = R"(
extern "C" __global__ void set(int* x, int value) { x[0] = value; }
extern "C" __global__ void sum(const int* x, const int* y, int* z, int more) { z[0] = x[0] + y[0] + more; }
)";

/// An array of one number, which all streams may use.
array number(std::int32_t value) {
    const stream s(cuda());
    array x = full({1}, value, dtype::int32, s);
    s.synchronize();
    return x;
}
auto view(array x) { return x.view<std::int32_t>(); }
std::int32_t value_of(const array& x) { return values_of<std::int32_t>(x)[0]; }

class KernelsInOrder : public ::testing::Test {
protected:
    event launch_set(const on& where, array& into, std::int32_t value) {
        return launch_event(where, set_, {1, 1}, out(view(into)), value);
    }
    event launch_sum(const on& where, const array& a, const array& b, array& into, std::int32_t more) {
        return launch_event(where, sum_, {1, 1}, in(view(a)), in(view(b)), out(view(into)), more);
    }

    time_limit limit_{120, "a kernel that waits to be let go"};
    /// Never unloaded: that may wait for a device that the next test holds.
    static const kernel& loaded(const char* name) {
        static auto* const all = new std::map<std::string, kernel>;
        if (!all->contains(name)) {
            all->emplace(name, kernel::from_source(source, name));
        }
        return all->at(name);
    }

    const kernel& set_ = loaded("set");
    const kernel& sum_ = loaded("sum");
    kernel_gate gate_;
    array zero_ = number(0);
    array x_ = number(0);
    array y_ = number(0);
};

/// The root, which waits until the test releases it; two that read what it writes; and one that reads what these write.
class D1Kernels : public KernelsInOrder {
protected:
    event launch_root() {
        gate_.hold(root_);
        return launch_set(root_, x_, 1);
    }
    void synchronize() {
        for (const stream* one : {&root_, &left_, &right_, &join_}) {
            one->synchronize();
        }
    }

    stream root_{cuda()};
    stream left_{cuda()};
    stream right_{cuda()};
    stream join_{cuda()};
    array z_ = number(0);
    array w_ = number(0);
};

TEST_F(D1Kernels, ADiamondOfEvents) {
    const ordering_scope manual(ordering_mode::manual);
    const event x = launch_root();
    const event y = launch_sum(on(left_).after(x), x_, zero_, y_, 10);
    const event z = launch_sum(on(right_).after(x), x_, zero_, z_, 100);
    const event w = launch_sum(on(join_).after(y).after(z), y_, z_, w_, 1000);
    EXPECT_FALSE(x.done() || y.done() || z.done() || w.done());
    gate_.open();
    w.synchronize();
    EXPECT_TRUE(x.done() && y.done() && z.done());
    EXPECT_EQ(value_of(w_), 1112);
}

TEST_F(D1Kernels, AChainOfEventsThroughStreamsAndBack) {
    const ordering_scope manual(ordering_mode::manual);
    event last = launch_root();
    array* from = &x_;
    array* into = &y_;
    for (const stream* one : {&left_, &right_, &join_, &left_, &root_, &right_}) {
        last = launch_sum(on(*one).after(last), *from, zero_, *into, 1);
        from = std::exchange(into, into == &y_ ? &z_ : &y_);
    }
    EXPECT_FALSE(last.done());
    gate_.open();
    last.synchronize();
    EXPECT_EQ(value_of(*from), 7);
}

TEST_F(D1Kernels, ControlWithoutEventsTheOthersDoNotWait) {
    const ordering_scope manual(ordering_mode::manual);
    const event x = launch_root();
    launch_sum(left_, x_, zero_, y_, 10).synchronize();
    launch_sum(right_, x_, zero_, z_, 100).synchronize();
    launch_sum(join_, y_, z_, w_, 1000).synchronize();
    EXPECT_FALSE(x.done());
    gate_.open();
    synchronize();
    EXPECT_EQ(value_of(w_), 1110) << "of the root's old value";
}

TEST_F(D1Kernels, OrderedByWeirNoEventIsNeeded) {
    static_cast<void>(launch_root());
    static_cast<void>(launch_sum(left_, x_, zero_, y_, 10));
    static_cast<void>(launch_sum(right_, x_, zero_, z_, 100));
    const event w = launch_sum(join_, y_, z_, w_, 1000);
    EXPECT_FALSE(w.done());
    gate_.open();
    EXPECT_EQ(value_of(w_), 1112);
}

TEST_F(D1Kernels, OperandsThatAreDroppedLiveOnWithoutAnyEvent) {
    array temporary = number(5);
    static_cast<void>(launch_root());
    // Behind the root, in its stream: it has no dependency, and has not run yet.
    const event end = launch_sum(root_, x_, temporary, w_, 0);
    temporary = {};
    // One of these would get that memory. Not waited for: memory may come with a wait for its last use.
    std::vector<array> others;
    for (int i = 0; i < 8; ++i) {
        others.push_back(full({1}, 77, dtype::int32, left_));
    }
    EXPECT_FALSE(end.done());
    gate_.open();
    end.synchronize();
    EXPECT_EQ(value_of(w_), 6);
}

/// CUDA's implicit order (rule S6, scenario F5), by kernels.
class S6Kernels : public KernelsInOrder {
protected:
    /// Writes x on `first`, which is held, and reads it on `second`, with the program's own order alone. Returns the value that was read:
    /// 1 from before the write, 5 from the write. If they are not ordered, the read is given time to overtake.
    std::int32_t read_behind(const stream& first, const stream& second, bool is_ordered) {
        const ordering_scope manual(ordering_mode::manual);
        static_cast<void>(launch_set(second, x_, 1));
        cuda().synchronize();
        kernel_gate gate;
        gate.hold(first);
        const event written = launch_set(first, x_, 5);
        const event read = launch_sum(second, x_, zero_, y_, 0);
        constexpr int often = 100'000;
        for (int i = 0; !is_ordered && i < often && !read.done(); ++i) {
            std::this_thread::yield();
        }
        EXPECT_TRUE(!is_ordered || !read.done());
        EXPECT_FALSE(written.done());
        gate.open();
        cuda().synchronize();
        return value_of(y_);
    }

    static stream numbered(std::uintptr_t handle) { return stream::adopt({reinterpret_cast<void*>(handle)}, cuda()); }

    stream legacy_ = numbered(1);
    stream of_thread_ = numbered(2);
    stream blocking_{cuda(), {.blocking = true}};
};

TEST_F(S6Kernels, TheLegacyStreamComesAfterBlockingOnesAndTheyAfterIt) {
    EXPECT_EQ(read_behind(blocking_, legacy_, true), 5);
    EXPECT_EQ(read_behind(legacy_, blocking_, true), 5);
    EXPECT_EQ(read_behind(of_thread_, legacy_, true), 5);
    EXPECT_EQ(read_behind(legacy_, of_thread_, true), 5);
}

/// Two streams of a GPU may share one of its queues, and then run in order all the same: so of several streams one must not be held up.
TEST_F(S6Kernels, ControlOtherStreamsAreNotOrdered) {
    const auto one_is_free = [](const stream_options& how, const auto& read) {
        std::vector<stream> tried;
        bool is_free = false;
        for (int tries = 0; tries < 8 && !is_free; ++tries) {
            tried.emplace_back(cuda(), how);
            is_free = read(tried.back()) == 1;
        }
        return is_free;
    };
    EXPECT_TRUE(one_is_free({}, [&](const stream& one) { return read_behind(legacy_, one, false); }));
    EXPECT_TRUE(one_is_free({}, [&](const stream& one) { return read_behind(one, legacy_, false); }));
    EXPECT_TRUE(
        one_is_free({.blocking = true}, [&](const stream& one) { return read_behind(one, of_thread_, false); }));
}

}  // namespace
}  // namespace weir::test
