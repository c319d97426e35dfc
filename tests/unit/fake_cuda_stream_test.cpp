// The fake CUDA driver's streams and events.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "unit/fake_cuda_support.hpp"

namespace weir::test {
namespace {

class fake_cuda_streams : public fake_cuda_test {
protected:
    void SetUp() override {
        fake_cuda_test::SetUp();
        device_pointer managed = 0;
        ASSERT_EQ(api.memory_alloc_managed(&managed, 16 * sizeof(std::uint64_t), memory_attach_global), success);
        values = reinterpret_cast<std::uint64_t*>(managed);
        std::fill(values, values + 16, 0);
    }
    void TearDown() override {
        fake_cuda_test::TearDown();
        EXPECT_EQ(api.memory_free(device_address(values)), success);
    }
    /// Enqueues a write of a value.
    void write(stream_handle on, int place, std::uint64_t value) const {
        ASSERT_EQ(api.stream_write_value(on, device_address(values + place), value, 0), success);
    }
    /// Enqueues a copy from one place to another.
    void copy(stream_handle on, int to, int from) const {
        ASSERT_EQ(api.copy_async(device_address(values + to), device_address(values + from), 8, on), success);
    }
    [[nodiscard]] std::uint64_t value(int place) const { return __atomic_load_n(values + place, __ATOMIC_SEQ_CST); }

    std::uint64_t* values = nullptr;  ///< managed: device memory that the host may read
};

TEST_F(fake_cuda_streams, a_stream_does_its_entries_in_order) {
    const stream_handle stream = make_stream();
    for (std::uint64_t i = 1; i <= 500; ++i) {
        write(stream, 0, i);
        copy(stream, 1, 0);
    }
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(value(1), 500U);
    EXPECT_EQ(api.stream_destroy(stream), success);
}

TEST_F(fake_cuda_streams, a_held_stream_does_nothing_and_others_go_on) {
    const stream_handle held = make_stream();
    const stream_handle other = make_stream();
    fake_gate gate(held);
    write(held, 0, 1);
    write(other, 1, 1);
    EXPECT_EQ(api.stream_synchronize(other), success);
    EXPECT_EQ(api.stream_query(other), success);
    EXPECT_EQ(value(1), 1U);
    EXPECT_EQ(api.stream_query(held), error_not_ready);
    EXPECT_EQ(fake_cuda::pending(held), 1U);
    EXPECT_EQ(value(0), 0U);
    gate.open();
    EXPECT_EQ(api.stream_synchronize(held), success);
    EXPECT_EQ(value(0), 1U);
    EXPECT_EQ(api.stream_destroy(held), success);
    EXPECT_EQ(api.stream_destroy(other), success);
}

TEST_F(fake_cuda_streams, handles_are_recycled_and_ids_are_not) {
    std::set<unsigned long long> ids;
    stream_handle last = nullptr;
    for (int i = 0; i < 10; ++i) {
        const stream_handle stream = make_stream();
        EXPECT_TRUE(last == nullptr || last == stream);
        unsigned long long id = 0;
        EXPECT_EQ(api.stream_id(stream, &id), success);
        EXPECT_TRUE(ids.insert(id).second);
        EXPECT_EQ(api.stream_destroy(stream), success);
        last = stream;
    }
    constexpr result invalid_handle = 400;
    EXPECT_EQ(api.stream_query(last), invalid_handle);
    EXPECT_EQ(api.stream_destroy(last), invalid_handle);
}

TEST_F(fake_cuda_streams, a_stream_that_is_destroyed_while_busy_does_its_work) {
    const std::size_t before = fake_cuda::live(fake_thing::streams);
    const stream_handle stream = make_stream();
    fake_gate gate;
    write(stream, 0, 1);
    EXPECT_EQ(api.stream_destroy(stream), success);
    EXPECT_EQ(fake_cuda::live(fake_thing::streams), before);
    EXPECT_EQ(value(0), 0U);
    gate.open();
    EXPECT_EQ(api.context_synchronize(), success);
    EXPECT_EQ(value(0), 1U);
}

TEST_F(fake_cuda_streams, a_full_queue_blocks_its_caller_only) {
    const stream_handle full = make_stream();
    const stream_handle other = make_stream();
    fake_gate gate(full);
    for (std::uint64_t i = 1; i <= 1024; ++i) {
        write(full, 0, i);
    }
    EXPECT_EQ(fake_cuda::pending(full), 1024U);
    std::atomic<bool> opened = false;
    const unsigned long long calls = fake_cuda::calls("cuStreamWriteValue64_v2");
    std::thread writer([&] {
        ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
        write(full, 0, 1025);
        EXPECT_TRUE(opened);
    });
    while (fake_cuda::calls("cuStreamWriteValue64_v2") == calls) {
        std::this_thread::yield();
    }
    for (int i = 0; i < 100; ++i) {
        write(other, 1, 1);
        EXPECT_EQ(api.stream_synchronize(other), success);
        EXPECT_EQ(fake_cuda::pending(full), 1024U);
    }
    opened = true;
    gate.open();
    writer.join();
    EXPECT_EQ(api.stream_synchronize(full), success);
    EXPECT_EQ(value(0), 1025U);
    EXPECT_EQ(api.stream_destroy(full), success);
    EXPECT_EQ(api.stream_destroy(other), success);
}

TEST_F(fake_cuda_streams, the_legacy_stream_is_ordered_with_blocking_streams) {
    const stream_handle blocking = make_stream(0);
    const stream_handle not_blocking = make_stream(stream_non_blocking);
    fake_gate gate(blocking);
    write(blocking, 0, 1);
    copy(legacy_stream(), 1, 0);  // after the blocking stream
    write(not_blocking, 2, 1);    // beside both
    EXPECT_EQ(api.stream_synchronize(not_blocking), success);
    EXPECT_EQ(value(2), 1U);
    EXPECT_EQ(api.stream_query(nullptr), error_not_ready);
    gate.open();
    EXPECT_EQ(api.stream_synchronize(nullptr), success);
    EXPECT_EQ(value(1), 1U);
    {
        const fake_gate legacy_gate(legacy_stream());
        write(legacy_stream(), 3, 1);
        copy(blocking, 4, 3);  // after the legacy stream
        copy(not_blocking, 5, 3);
        EXPECT_EQ(api.stream_synchronize(not_blocking), success);
        EXPECT_EQ(api.stream_query(blocking), error_not_ready);
    }
    EXPECT_EQ(api.stream_synchronize(blocking), success);
    EXPECT_EQ(value(4), 1U);
    EXPECT_EQ(value(5), 0U) << "the control: it did not wait";
    EXPECT_EQ(api.stream_destroy(blocking), success);
    EXPECT_EQ(api.stream_destroy(not_blocking), success);
}

TEST_F(fake_cuda_streams, each_thread_has_a_default_stream_that_blocks_with_the_legacy_one) {
    unsigned long long mine = 0;
    unsigned long long other = 0;
    EXPECT_EQ(api.stream_id(per_thread_stream(), &mine), success);
    std::thread([&] {
        api.context_set_current(on_device(0).handle());
        EXPECT_EQ(api.stream_id(per_thread_stream(), &other), success);
    }).join();
    EXPECT_NE(mine, other);
    fake_gate gate(per_thread_stream());
    write(per_thread_stream(), 0, 1);
    copy(legacy_stream(), 1, 0);
    EXPECT_EQ(api.stream_query(legacy_stream()), error_not_ready);
    gate.open();
    EXPECT_EQ(api.stream_synchronize(legacy_stream()), success);
    EXPECT_EQ(value(1), 1U);
}

TEST_F(fake_cuda_streams, an_event_covers_what_was_there_when_it_was_recorded) {
    const stream_handle stream = make_stream();
    const event_handle event = make_event();
    EXPECT_EQ(api.event_query(event), success) << "never recorded";
    write(stream, 0, 1);
    fake_gate gate;
    EXPECT_EQ(api.event_record(event, stream), success);
    EXPECT_EQ(api.event_query(event), error_not_ready);
    gate.open();
    EXPECT_EQ(api.event_synchronize(event), success);
    const fake_gate later(stream);
    write(stream, 0, 2);  // not covered
    EXPECT_EQ(api.event_query(event), success);
    EXPECT_EQ(api.event_synchronize(event), success);
    EXPECT_EQ(value(0), 1U);
    EXPECT_EQ(api.event_destroy(event), success);
    EXPECT_EQ(api.stream_destroy(stream), success);
}

TEST_F(fake_cuda_streams, a_wait_takes_the_last_record_at_the_time_of_its_call) {
    const stream_handle first = make_stream();
    const stream_handle second = make_stream();
    const event_handle event = make_event();
    EXPECT_EQ(api.stream_wait_event(second, event, 0), success) << "never recorded";
    write(first, 0, 1);
    EXPECT_EQ(api.event_record(event, first), success);
    EXPECT_EQ(api.stream_synchronize(first), success);
    EXPECT_EQ(api.stream_wait_event(second, event, 0), success);
    fake_gate gate(first);
    write(first, 0, 2);
    EXPECT_EQ(api.event_record(event, first), success);
    copy(second, 1, 0);
    EXPECT_EQ(api.stream_synchronize(second), success) << "the later record changes nothing";
    EXPECT_EQ(value(1), 1U);
    EXPECT_EQ(api.stream_wait_event(second, event, 0), success);
    copy(second, 2, 0);
    EXPECT_EQ(api.stream_query(second), error_not_ready);
    EXPECT_EQ(api.event_destroy(event), success) << "a wait does not need the event any more";
    gate.open();
    EXPECT_EQ(api.stream_synchronize(second), success);
    EXPECT_EQ(value(2), 2U);
    EXPECT_EQ(api.stream_destroy(first), success);
    EXPECT_EQ(api.stream_destroy(second), success);
}

TEST_F(fake_cuda_streams, without_a_wait_a_stream_overtakes) {
    const stream_handle first = make_stream();
    const stream_handle second = make_stream();
    const fake_gate gate(first);
    write(first, 0, 1);
    copy(second, 1, 0);
    EXPECT_EQ(api.stream_synchronize(second), success);
    EXPECT_EQ(value(1), 0U);
    EXPECT_EQ(api.stream_destroy(first), success);
    EXPECT_EQ(api.stream_destroy(second), success);
}

TEST_F(fake_cuda_streams, a_stream_settles_at_a_wait_for_another_and_not_before) {
    const stream_handle first = make_stream();
    const stream_handle second = make_stream();
    const event_handle event = make_event();
    fake_cuda::settle(second);  // nothing was put into it
    {
        const fake_gate gate(first);
        write(first, 0, 1);
        EXPECT_EQ(api.event_record(event, first), success);
        for (std::uint64_t i = 1; i <= 500; ++i) {
            write(second, 1, i);
        }
        EXPECT_EQ(api.stream_wait_event(second, event, 0), success);
        copy(second, 2, 0);
        fake_cuda::settle(second);
        EXPECT_EQ(value(1), 500U);
        EXPECT_EQ(fake_cuda::pending(second), 2U) << "the wait and what is behind it";
    }
    EXPECT_EQ(api.stream_synchronize(first), success);
    fake_cuda::settle(second);
    EXPECT_EQ(fake_cuda::pending(second), 0U) << "the other is there, so that nothing holds it";
    EXPECT_EQ(value(2), 1U);
    EXPECT_EQ(api.event_destroy(event), success);
    EXPECT_EQ(api.stream_destroy(first), success);
    EXPECT_EQ(api.stream_destroy(second), success);
}

TEST_F(fake_cuda_streams, an_event_of_a_context_covers_hidden_and_destroyed_streams) {
    const stream_handle destroyed = make_stream();
    const event_handle event = make_event();
    fake_gate gate(destroyed);
    write(destroyed, 0, 1);
    EXPECT_EQ(api.context_record_event(on_device(0).handle(), event), success);
    EXPECT_EQ(api.event_query(event), error_not_ready);
    gate.open();
    EXPECT_EQ(api.event_synchronize(event), success);
    EXPECT_EQ(value(0), 1U);
    {
        const fake_gate all;
        write(destroyed, 0, 2);
        EXPECT_EQ(api.stream_destroy(destroyed), success);
        EXPECT_EQ(api.context_record_event(on_device(0).handle(), event), success);
        EXPECT_EQ(api.event_query(event), error_not_ready);
    }
    EXPECT_EQ(api.event_synchronize(event), success);
    EXPECT_EQ(value(0), 2U);
    EXPECT_EQ(api.event_destroy(event), success);
}

TEST_F(fake_cuda_streams, the_time_between_events_needs_events_with_times) {
    constexpr result invalid_handle = 400;
    const stream_handle stream = make_stream();
    const event_handle start = make_event(0);
    const event_handle end = make_event(0);
    const event_handle without = make_event();
    float milliseconds = -1;
    EXPECT_EQ(api.event_elapsed(&milliseconds, start, end), invalid_handle) << "never recorded";
    EXPECT_EQ(api.event_record(start, stream), success);
    EXPECT_EQ(api.event_record(without, stream), success);
    fake_gate gate(stream);
    EXPECT_EQ(api.event_record(end, stream), success);
    EXPECT_EQ(api.event_elapsed(&milliseconds, start, end), error_not_ready);
    gate.open();
    EXPECT_EQ(api.event_synchronize(end), success);
    EXPECT_EQ(api.event_elapsed(&milliseconds, start, end), success);
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(api.event_elapsed(&milliseconds, start, without), invalid_handle);
    for (const event_handle each : {start, end, without}) {
        EXPECT_EQ(api.event_destroy(each), success);
    }
    EXPECT_EQ(api.stream_destroy(stream), success);
}

TEST_F(fake_cuda_streams, contexts_keep_their_events_apart_and_wait_for_each_other) {
    constexpr result invalid_handle = 400;
    const stream_handle here = make_stream();
    const event_handle event = make_event();
    ASSERT_EQ(api.context_set_current(on_device(1).handle()), success);
    const stream_handle there = make_stream();
    EXPECT_EQ(api.event_record(event, there), invalid_handle);
    fake_gate gate(here);
    write(here, 0, 1);
    EXPECT_EQ(api.event_record(event, here), success);
    EXPECT_EQ(api.stream_wait_event(there, event, 0), success);
    copy(there, 1, 0);
    EXPECT_EQ(api.stream_query(there), error_not_ready);
    gate.open();
    EXPECT_EQ(api.stream_synchronize(there), success);
    EXPECT_EQ(value(1), 1U);
    for (const stream_handle each : {here, there}) {
        EXPECT_EQ(api.stream_destroy(each), success);
    }
    EXPECT_EQ(api.event_destroy(event), success);
}

TEST_F(fake_cuda_streams, a_stream_waits_for_a_value_in_memory) {
    const stream_handle waiting = make_stream();
    const stream_handle writing = make_stream();
    ASSERT_EQ(api.stream_wait_value(waiting, device_address(values), 5, wait_value_greater_or_equal), success);
    write(waiting, 1, 1);
    write(writing, 0, 4);
    EXPECT_EQ(api.stream_synchronize(writing), success);
    EXPECT_EQ(api.stream_query(waiting), error_not_ready);
    EXPECT_EQ(value(1), 0U);
    write(writing, 0, 6);
    EXPECT_EQ(api.stream_synchronize(waiting), success);
    EXPECT_EQ(value(1), 1U);
    int outside = 0;
    EXPECT_EQ(api.stream_write_value(writing, device_address(&outside), 1, 0), error_invalid_value);
    EXPECT_EQ(api.stream_destroy(waiting), success);
    EXPECT_EQ(api.stream_destroy(writing), success);
}

TEST_F(fake_cuda_streams, a_sticky_error_drops_pending_work_and_fails_all_calls) {
    constexpr result launch_failed = 719;
    const stream_handle stream = make_stream();
    const event_handle event = make_event();
    {
        const fake_gate gate(stream);
        write(stream, 0, 1);
        EXPECT_EQ(api.event_record(event, stream), success);
        fake_cuda::break_contexts(launch_failed);
        EXPECT_EQ(api.stream_synchronize(stream), launch_failed);
        EXPECT_EQ(api.event_query(event), launch_failed);
        EXPECT_EQ(api.context_synchronize(), launch_failed);
        device_pointer memory = 0;
        EXPECT_EQ(api.memory_alloc(&memory, 8), launch_failed);
    }
    // The process's, not the device's.
    ASSERT_EQ(api.context_set_current(on_device(1).handle()), success);
    EXPECT_EQ(api.context_synchronize(), launch_failed);
    EXPECT_EQ(api.stream_query(stream), launch_failed);
    ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
    fake_cuda::heal_contexts();
    EXPECT_EQ(value(0), 0U);
    write(stream, 0, 2);
    EXPECT_EQ(api.stream_synchronize(stream), success);
    EXPECT_EQ(value(0), 2U);
    EXPECT_EQ(api.event_destroy(event), success);
    EXPECT_EQ(api.stream_destroy(stream), success);
}

}  // namespace
}  // namespace weir::test
