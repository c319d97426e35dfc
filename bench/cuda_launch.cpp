// What a launch costs the host, with and without Weir, and what it costs to alternate between two streams.
#include <cstddef>
#include <memory>
#include <vector>

#include "contest.hpp"
#include "cuda_device.hpp"
#include "cuda_least.hpp"

namespace weir::bench {

namespace {

/// Fewer than the driver takes before it blocks.
constexpr std::size_t launches = 500;

/// A ring of events: the next one is the event that was used longest ago.
class event_rotation {
public:
    event_rotation(const driver::context& in, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            all_.push_back(std::make_unique<raw_event>(in));
        }
    }
    [[nodiscard]] const raw_event& next() noexcept { return *all_[used_++ % all_.size()]; }

private:
    std::vector<std::unique_ptr<raw_event>> all_;
    std::size_t used_ = 0;
};

struct setting : launch_setting {
    stream s2{on};
    raw_stream r2{*in};
    raw_event e1{*in};
    raw_event e2{*in};
    event_rotation many1{*in, 8};
    event_rotation many2{*in, 8};
    least_tracker least{*in, 2};
    least_tracker::memory known;  ///< of the array

    void synchronize() const {
        launch_setting::synchronize();
        s2.synchronize();
        r2.synchronize();
        least.synchronize();
    }
};

template <class Turn>
make_contestant contestant_of(const char* name, std::size_t operations, Turn turn) {
    return [=] {
        const auto with = std::make_shared<setting>();
        const auto settle = [with] { with->synchronize(); };
        return contestant{name, operations, [with, turn] { turn(*with); }, settle, settle};
    };
}

void launch_tracked(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        launch(with.s1, with.empty_kernel, {1, 32}, inout<double>(with.x));
    }
}

void launch_with_event(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        const event over = launch_event(with.s1, with.empty_kernel, {1, 32}, inout<double>(with.x));
    }
}

void launch_raw(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        with.r1.launch(with.empty_kernel, {&with.address});
    }
}

void launch_raw_as(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        with.r1.launch_as(with.empty_kernel, {&with.address});
    }
}

struct launch_by_hand {
    driver::function_handle what;
    const driver::context* in;
    decltype(setting::address) address;

    void operator()(detail::queue_handle into) {
        void* argument = &address;
        in->api().launch(what, 1, 1, 1, 32, 1, 1, 0, static_cast<driver::stream_handle>(into.value), &argument,
                         nullptr);
    }
};

/// The share of the tracking in Weir's price: the same operation, whose body is the launch by hand.
void launch_in_body(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        launch_by_hand body{static_cast<driver::function_handle>(with.empty_kernel.handle()), with.in, with.address};
        detail::submit_work(with.s1, runtime::work_kind::device, detail::native_task{body}, inout<double>(with.x));
    }
}

/// By the driver, with a query of the current context, as every library makes that shares it.
void launch_raw_asking(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        const driver::in_context here(*with.in);
        with.r1.launch(with.empty_kernel, {&with.address});
    }
}

/// An operation with an empty body.
void submit_empty(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        detail::submit_work(with.s1, runtime::work_kind::device, detail::native_task{empty_task{}},
                            inout<double>(with.x));
    }
}

/// The same launches on a stream that Weir does not know, each made beside an empty tracked operation.
void launch_beside(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        detail::submit_work(with.s1, runtime::work_kind::device, detail::native_task{empty_task{}},
                            inout<double>(with.x));
        with.r1.launch(with.empty_kernel, {&with.address});
    }
}

void alternate_tracked(setting& with) {
    for (std::size_t i = 0; i < launches / 2; ++i) {
        launch(with.s1, with.empty_kernel, {1, 32}, inout<double>(with.x));
        launch(with.s2, with.empty_kernel, {1, 32}, inout<double>(with.x));
    }
}

/// With one event for each stream.
template <class Put>
void alternate_by_hand(setting& with, Put&& put) {
    bench::alternate_by_hand(
        launches / 2, with.r1, with.r2, put, [&]() -> const raw_event& { return with.e1; },
        [&]() -> const raw_event& { return with.e2; });
}

void alternate_raw(setting& with) {
    alternate_by_hand(with, [&](const raw_stream& on) { on.launch(with.empty_kernel, {&with.address}); });
}

void alternate_raw_as(setting& with) {
    alternate_by_hand(with, [&](const raw_stream& on) { on.launch_as(with.empty_kernel, {&with.address}); });
}

void alternate_with_many_events(setting& with) {
    bench::alternate_by_hand(
        launches / 2, with.r1, with.r2, [&](const raw_stream& on) { on.launch(with.empty_kernel, {&with.address}); },
        [&]() -> const raw_event& { return with.many1.next(); },
        [&]() -> const raw_event& { return with.many2.next(); });
}

void launch_least(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        with.least.order(0, {}, with.known);
        with.least.stream(0).launch(with.empty_kernel, {&with.address});
    }
}

void alternate_least(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        with.least.order(i % 2, {}, with.known);
        with.least.stream(i % 2).launch(with.empty_kernel, {&with.address});
    }
}

void record_and_wait(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        with.e1.record(with.r1);
        with.e1.hold(with.r2);
    }
}

void allocate_and_drop(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        array y = empty(1024, dtype::float64, with.s1);
    }
}

void allocate_raw(setting& with) {
    for (std::size_t i = 0; i < launches; ++i) {
        driver::device_pointer memory = 0;
        with.in->api().memory_alloc_async(&memory, 8192, with.r1.handle());
        with.in->api().memory_free_async(memory, with.r1.handle());
    }
}

const contest launching("cuda/launch", "an empty kernel that changes one array, on one stream", comparison::with_peers,
                        {contestant_of("Weir", launches, launch_tracked),
                         contestant_of("Weir, launch in the body", launches, launch_in_body),
                         contestant_of("Weir, nothing in the body", launches, submit_empty),
                         contestant_of("driver beside Weir's operations", launches, launch_beside),
                         contestant_of("driver, asking for the context", launches, launch_raw_asking),
                         contestant_of("the least tracker", launches, launch_least),
                         contestant_of("driver, cuLaunchKernelEx", launches, launch_raw_as),
                         contestant_of("driver", launches, launch_raw)});
const contest launching_event("cuda/launch_event", "the same, with an event for each launch", comparison::with_peers,
                              {contestant_of("Weir", launches, launch_with_event),
                               contestant_of("driver, no event", launches, launch_raw)});
const contest alternating("cuda/ping_pong", "two streams in turn change one array", comparison::with_peers,
                          {contestant_of("Weir", launches, alternate_tracked),
                           contestant_of("the least tracker", launches, alternate_least),
                           contestant_of("driver, events by hand, cuLaunchKernelEx", launches, alternate_raw_as),
                           contestant_of("driver, by hand, eight events each", launches, alternate_with_many_events),
                           contestant_of("driver, events by hand", launches, alternate_raw)});
const contest allocating("cuda/allocate", "8 KiB, dropped at once, on one stream", comparison::with_peers,
                         {contestant_of("Weir", launches, allocate_and_drop),
                          contestant_of("cuMemAllocAsync, cuMemFreeAsync", launches, allocate_raw)});
const contest waiting("cuda/record_and_wait", "the driver's own, for the arithmetic of the task graphs",
                      comparison::with_peers, {contestant_of("driver", launches, record_and_wait)});

}  // namespace

}  // namespace weir::bench
