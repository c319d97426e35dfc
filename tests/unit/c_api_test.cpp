// The interface for C (weir.h): programs in plain C, held by gates, and what only C++ can look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "c_api/handles.hpp"
#include "support/fake_cuda.hpp"
#include "support/time_limit.hpp"
#include "unit/c_api_plain.h"
#include "unit/cuda_support.hpp"
#include "unit/kernel_gate.hpp"
#include "weir/weir.hpp"

namespace weir::test {
namespace {

using ::testing::HasSubstr;

/// A gate for the C side.
class c_gate {
public:
    [[nodiscard]] test_gate functions() {
        return {[](void* self, weir_stream* stream) { static_cast<c_gate*>(self)->gate_.hold(stream->value); },
                [](void* self) { static_cast<c_gate*>(self)->gate_.open(); }, this};
    }

private:
    testing::gate gate_;
};

using c_program = int (*)(const char* device, const test_gate* gate);

void expect_right(c_program program, const char* device) {
    c_gate gate;
    const test_gate functions = gate.functions();
    EXPECT_EQ(program(device, &functions), 0) << "the line of c_api_plain.c; the last error is: " << weir_last_error();
}

class CApi : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CApi, ::testing::Values("cpu", "sim:0", "cuda:0"), [](const auto& which) {
    return std::string(which.param).substr(0, std::string(which.param).find(':'));
});

TEST_P(CApi, O1TwoStreamsShareABuffer) { expect_right(c_two_streams_share_a_buffer, GetParam()); }
TEST_P(CApi, S2S3EventsOrderTwoStreams) { expect_right(c_events_order_two_streams, GetParam()); }
TEST_P(CApi, K5ATokenOrdersHostTasks) { expect_right(c_a_token_orders_host_tasks, GetParam()); }

TEST(CApiOnTheCpu, X6AScopeIsAnOperationOfItsStream) { expect_right(c_a_scope_on_the_host, "cpu"); }
TEST(CApiOnTheCpu, L4WrappedMemoryIsReleasedOnceAfterItsUse) {
    expect_right(c_wrapped_memory_is_released_once_after_its_use, "cpu");
}
TEST(CApiOnTheCpu, K4FailuresAreTold) { expect_right(c_failures_are_told, "cpu"); }
TEST(CApiOnTheCpu, WhatIsRefused) { expect_right(c_what_is_refused, "cpu"); }

/// Handles that are dropped at the end of a test.
template <class Handle, void (*Drop)(Handle*)>
struct dropped {
    Handle* handle = nullptr;
    dropped() = default;
    dropped(const dropped&) = delete;
    dropped& operator=(const dropped&) = delete;
    ~dropped() { Drop(handle); }
};
using c_stream = dropped<weir_stream, weir_stream_drop>;
using c_buffer = dropped<weir_buffer, weir_buffer_drop>;

weir_device* opened(const char* name) {
    weir_device* found = nullptr;
    EXPECT_EQ(weir_device_open(name, &found), WEIR_OK) << weir_last_error();
    return found;
}

/// An access scope, from which a stream of C++ is held.
class CScope : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(weir_stream_create(opened("cpu"), "scope", 0, 0, &mine_.handle), WEIR_OK) << weir_last_error();
        ASSERT_EQ(weir_buffer_allocate(mine_.handle, 16, nullptr, &x_.handle), WEIR_OK) << weir_last_error();
        ASSERT_EQ(weir_stream_synchronize(mine_.handle), WEIR_OK);
    }
    [[nodiscard]] weir_access* begin(int use) const {
        const weir_operand all = weir_operand_of(x_.handle, use);
        const weir_site site = {"scope", __FILE__, __func__, __LINE__};
        weir_access* scope = nullptr;
        EXPECT_EQ(weir_access_begin(mine_.handle, &all, 1, &site, &scope), WEIR_OK) << weir_last_error();
        return scope;
    }
    [[nodiscard]] array elements() const { return {x_.handle->value, dtype::uint8, {16}}; }

    c_stream mine_;
    c_buffer x_;
    const stream other_;
};

TEST_F(CScope, WhatConflictsComesAfterTheEnd) {
    weir_access* const scope = begin(WEIR_OUT);
    array x = elements();
    const completion after = fill(other_, x, 3);
    EXPECT_FALSE(after.done());
    static_cast<unsigned char*>(weir_access_pointer(scope, 0))[5] = 9;
    EXPECT_EQ(weir_access_end(scope), WEIR_OK);
    after.synchronize();
    EXPECT_EQ(x.read<std::uint8_t>()[5], 3);
}

TEST_F(CScope, BeginsAfterWhatConflicts) {
    const time_limit limit(120, "a scope that does not begin");
    array x = elements();
    testing::gate held;
    held.hold(other_);
    fill(other_, x, 3);
    std::atomic<bool> has_begun{false};
    std::thread beside([&] {
        weir_access* const scope = begin(WEIR_INOUT);
        has_begun = true;
        unsigned char* const bytes = static_cast<unsigned char*>(weir_access_pointer(scope, 0));
        EXPECT_EQ(bytes[5], 3);
        EXPECT_EQ(weir_access_end(scope), WEIR_OK);
    });
    // Its operation is in the stream, and waits there.
    while (explain(x).to_string().find("\"scope\"") == std::string::npos && !has_begun) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(has_begun);
    held.open();
    beside.join();
    EXPECT_TRUE(has_begun);
}

TEST_F(CScope, ControlUnderManualItComesDuringTheScope) {
    const ordering_scope manual(ordering_mode::manual);
    weir_access* const scope = begin(WEIR_OUT);
    array x = elements();
    fill(other_, x, 3).synchronize();
    static_cast<unsigned char*>(weir_access_pointer(scope, 0))[5] = 9;
    EXPECT_EQ(weir_access_end(scope), WEIR_OK);
    EXPECT_EQ(x.read<std::uint8_t>()[5], 9);
}

TEST_F(CScope, ReadersRunBesideAScopeThatReads) {
    weir_access* const scope = begin(WEIR_IN);
    const array x = elements();
    int seen = 0;
    host_task(
        other_, [&seen](std::span<const std::uint8_t>) { ++seen; }, in<std::uint8_t>(x))
        .synchronize();
    EXPECT_EQ(seen, 1);
    EXPECT_THAT(explain(x).to_string(), HasSubstr("\"scope\""));
    EXPECT_EQ(weir_access_end(scope), WEIR_OK);
}

TEST_F(CScope, CheckNamesTheLineOfC) {
    const check_scope watched;
    const ordering_scope manual(ordering_mode::manual);
    EXPECT_EQ(weir_access_end(begin(WEIR_OUT)), WEIR_OK);
    array x = elements();
    fill(other_, x, 3);
    const report found = watched.report();
    ASSERT_EQ(found.size(), 1U) << found.to_string();
    EXPECT_EQ(found.races()[0].first.label, "scope");
    EXPECT_THAT(found.races()[0].first.file, HasSubstr("c_api_test.cpp"));
}

TEST(CApiInline, AScopeTakesItsPlaceAtOnce) {
    c_stream s;
    c_buffer x;
    ASSERT_EQ(weir_stream_create(opened("cpu:inline"), nullptr, 0, 0, &s.handle), WEIR_OK);
    ASSERT_EQ(weir_buffer_allocate(s.handle, 16, nullptr, &x.handle), WEIR_OK);
    const weir_operand all = weir_operand_of(x.handle, WEIR_OUT);
    weir_access* scope = nullptr;
    ASSERT_EQ(weir_access_begin(s.handle, &all, 1, nullptr, &scope), WEIR_OK) << weir_last_error();
    static_cast<unsigned char*>(weir_access_pointer(scope, 0))[5] = 9;
    EXPECT_EQ(weir_access_end(scope), WEIR_OK);
    unsigned char seen = 0;
    EXPECT_EQ(weir_read(x.handle, 5, &seen, 1, nullptr), WEIR_OK);
    EXPECT_EQ(seen, 9);
}

TEST(CApiSim, MemoryThatTheHostCannotReachIsRefusedInAScope) {
    c_stream s;
    c_buffer x;
    ASSERT_EQ(weir_stream_create(opened("sim:0"), nullptr, 0, 0, &s.handle), WEIR_OK);
    ASSERT_EQ(weir_buffer_allocate(s.handle, 16, nullptr, &x.handle), WEIR_OK);
    const weir_operand all = weir_operand_of(x.handle, WEIR_OUT);
    weir_access* scope = nullptr;
    EXPECT_EQ(weir_access_begin(s.handle, &all, 1, nullptr, &scope), WEIR_ERROR_ARGUMENT);
    EXPECT_THAT(weir_last_error(), HasSubstr("sim:0"));
}

/// A scope whose native stream gets launches of another library: here of the driver's table, by a kernel of Weir's on an adopted stream.
class CScopeOnCuda : public ::testing::Test {
protected:
    static constexpr const char* source_ = R"(
extern "C" __global__ void add(int* x, int more) { x[0] += more; }
)";
    void SetUp() override {
        ASSERT_EQ(weir_stream_create(opened("cuda:0"), "mine", 0, 0, &mine_.handle), WEIR_OK) << weir_last_error();
        ASSERT_EQ(weir_buffer_allocate(mine_.handle, sizeof(int), nullptr, &x_.handle), WEIR_OK) << weir_last_error();
        const int start = 1;
        ASSERT_EQ(weir_write(mine_.handle, x_.handle, 0, &start, sizeof start, nullptr), WEIR_OK);
        ASSERT_EQ(weir_stream_synchronize(mine_.handle), WEIR_OK);
    }
    /// Launches as another library does: without declaring anything.
    void launch_theirs(weir_access* scope, int more) {
        const stream native = stream::adopt(native_stream{weir_access_native(scope)}, cuda());
        struct address {
            void* pointer;
        };
        launch(native, add_, {1, 1}, address{weir_access_pointer(scope, 0)}, more);
    }
    [[nodiscard]] array number() const { return {x_.handle->value, dtype::int32, {1}}; }

    kernel add_ = kernel::from_source(source_, "add");
    kernel_gate gate_;
    c_stream mine_;
    c_buffer x_;
    const stream other_{cuda()};
};

TEST_F(CScopeOnCuda, X6WhatOthersLaunchIsOrderedOnBothSides) {
    array x = number();
    gate_.hold(other_);
    launch(other_, add_, {1, 1}, inout<std::int32_t>(x), 10);
    const weir_operand all = weir_operand_of(x_.handle, WEIR_INOUT);
    weir_access* scope = nullptr;
    ASSERT_EQ(weir_access_begin(mine_.handle, &all, 1, nullptr, &scope), WEIR_OK) << weir_last_error();
    EXPECT_NE(weir_access_native(scope), nullptr);
    EXPECT_EQ(weir_access_pointer(scope, 0), weir_buffer_pointer(x_.handle));
    launch_theirs(scope, 100);
    ASSERT_EQ(weir_access_end(scope), WEIR_OK) << weir_last_error();
    const stream third(cuda());
    const completion last = fill(third, x, 7);
    EXPECT_FALSE(last.done()) << "it is behind work that Weir has not seen";
    int done = 1;
    EXPECT_EQ(weir_stream_done(mine_.handle, &done), WEIR_OK);
    EXPECT_EQ(done, 0) << "the host was not blocked";
    gate_.open();
    EXPECT_EQ(x.read<std::int32_t>()[0], 7);
}

TEST_F(CScopeOnCuda, X6WhatComesAfterTheEndWaitsForTheLaunches) {
    WEIR_NEEDS_FAKE();
    const weir_operand all = weir_operand_of(x_.handle, WEIR_INOUT);
    weir_access* scope = nullptr;
    ASSERT_EQ(weir_access_begin(mine_.handle, &all, 1, nullptr, &scope), WEIR_OK) << weir_last_error();
    ASSERT_EQ(weir_stream_synchronize(mine_.handle),
              WEIR_OK);  // else an event recorded late for it is behind the gate too
    gate_.hold(mine_.handle->value);
    launch_theirs(scope, 100);
    ASSERT_EQ(weir_access_end(scope), WEIR_OK) << weir_last_error();
    array x = number();
    const completion last = fill(other_, x, 7);
    fake_cuda::settle(other_.handle());  // however long it takes: it has had its chance to go ahead
    EXPECT_FALSE(last.done());
    gate_.open();
    EXPECT_EQ(x.read<std::int32_t>()[0], 7);
}

TEST_F(CScopeOnCuda, X6TheResultOfOthersIsThere) {
    const weir_operand all = weir_operand_of(x_.handle, WEIR_INOUT);
    weir_access* scope = nullptr;
    ASSERT_EQ(weir_access_begin(mine_.handle, &all, 1, nullptr, &scope), WEIR_OK) << weir_last_error();
    launch_theirs(scope, 100);
    ASSERT_EQ(weir_access_end(scope), WEIR_OK);
    array x = number();
    launch(other_, add_, {1, 1}, inout<std::int32_t>(x), 1000);
    int seen = 0;
    EXPECT_EQ(weir_read(x_.handle, 0, &seen, sizeof seen, nullptr), WEIR_OK) << weir_last_error();
    EXPECT_EQ(seen, 1101);
}

TEST(CApiOnCuda, K6PreparedTypesLoadNothing) {
    WEIR_NEEDS_FAKE();
    const stream s(cuda());
    const auto loads = [&](dtype type) {
        const array x = full({6}, 3, type, s);
        fake_cuda::forget_calls();
        const array y = compute(s, binary_operation::add, x, x);
        s.synchronize();
        return fake_cuda::calls("cuModuleLoadDataEx");
    };
    const char* const name = "float16";
    ASSERT_EQ(weir_device_prepare(opened("cuda:0"), &name, 1), WEIR_OK) << weir_last_error();
    EXPECT_EQ(loads(dtype::float16), 0U);
    EXPECT_GT(loads(dtype::uint16), 0U) << "another type: the negative control";
}

TEST_F(CScopeOnCuda, X6ControlWithoutAScopeTheOtherStreamDoesNotWait) {
    gate_.hold(mine_.handle->value);
    void* native = nullptr;
    ASSERT_EQ(weir_stream_native(mine_.handle, &native), WEIR_OK);
    const stream theirs = stream::adopt(native_stream{native}, cuda());
    struct address {
        void* pointer;
    };
    const completion hidden = launch(theirs, add_, {1, 1}, address{weir_buffer_pointer(x_.handle)}, 100);
    array x = number();
    fill(other_, x, 7).synchronize();
    EXPECT_FALSE(hidden.done());
    gate_.open();
    hidden.synchronize();
    EXPECT_EQ(x.read<std::int32_t>()[0], 107);
}

}  // namespace
}  // namespace weir::test
