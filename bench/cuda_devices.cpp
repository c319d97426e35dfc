// Two CUDA devices that pass one array to and fro: launches, copies, and events between streams of different devices.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "contest.hpp"
#include "cuda_device.hpp"

namespace weir::bench {

namespace {

device second_device() {
    try {
        return cuda(1);
    } catch (const device_error& why) {
        throw std::runtime_error(why.what());
    }
}

/// How a program without Weir copies from one device to the other.
enum class way { by_address, by_context };

template <std::int64_t Elements>
class two_devices {
public:
    /// There and back so often in a turn.
    static constexpr std::size_t rounds = Elements > 4096 ? 8 : 32;

    void tracked() {
        for (std::size_t i = 0; i < rounds; ++i) {
            for (std::size_t from = 0; from < 2; ++from) {
                side& here = sides_[from];
                side& there = sides_[1 - from];
                launch(here.s, here.empty_kernel, {1, 32}, inout<double>(here.x));
                copy(there.s, there.x, here.x);
            }
        }
        sides_[0].s.synchronize();
    }

    template <way Way>
    void by_hand() {
        for (std::size_t i = 0; i < rounds; ++i) {
            for (std::size_t from = 0; from < 2; ++from) {
                side& here = sides_[from];
                side& there = sides_[1 - from];
                void* address = here.x.device_data();
                make_current(*here.in);
                here.raw.launch_as(here.empty_kernel, {&address});
                here.is_over.record(here.raw);
                make_current(*there.in);
                here.is_over.hold(there.raw);
                if constexpr (Way == way::by_address) {
                    there.in->api().copy_async(address_of(there.x), address_of(here.x), bytes, there.raw.handle());
                } else {
                    there.in->api().copy_peer_async(address_of(there.x), there.in->handle(), address_of(here.x),
                                                    here.in->handle(), bytes, there.raw.handle());
                }
            }
        }
        sides_[0].raw.synchronize();
        make_current(*sides_[0].in);
    }

private:
    static constexpr std::size_t bytes = Elements * sizeof(double);
    static driver::device_pointer address_of(const array& x) {
        return reinterpret_cast<driver::device_pointer>(x.device_data());
    }

    struct side {
        explicit side(device of) : on(std::move(of)) {
            make_current(*in);
            s.synchronize();
        }
        device on;
        const driver::context* in = &context_of(on);
        kernel empty_kernel = kernel::from_source(empty_source, "empty", {}, on);
        stream s{on};
        array x = zeros({Elements}, dtype::float64, s);
        raw_stream raw{*in};
        raw_event is_over{*in};
    };
    std::array<side, 2> sides_{side(cuda_device()), side(second_device())};
};

template <class Setting>
make_contestant by(const char* name, void (Setting::*turn)()) {
    return [name, turn] {
        const auto with = std::make_shared<Setting>();
        return contestant{name, 2 * Setting::rounds, [with, turn]() { (*with.*turn)(); }};
    };
}

using few = two_devices<64>;
using many = two_devices<std::int64_t{1} << 23>;

const contest small_arrays("cuda/two_devices", "launch on one device, copy 512 bytes to the other, and back",
                           comparison::with_peers,
                           {by("Weir", &few::tracked), by("driver, cuMemcpyAsync", &few::by_hand<way::by_address>),
                            by("driver, cuMemcpyPeerAsync", &few::by_hand<way::by_context>)});

const contest large_arrays("cuda/two_devices_large", "the same with 64 MiB", comparison::with_peers,
                           {by("Weir", &many::tracked), by("driver, cuMemcpyAsync", &many::by_hand<way::by_address>),
                            by("driver, cuMemcpyPeerAsync", &many::by_hand<way::by_context>)});

}  // namespace

}  // namespace weir::bench
