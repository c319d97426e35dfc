#include <algorithm>
#include <utility>

#include "backend/cuda/device/driver.hpp"
#include "backend/sim/driver.hpp"
#include "backend/timeline.hpp"
#include "frontier/point.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/interruption.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"
#include "weir/testing.hpp"

namespace weir::testing {

namespace {

backend::sim::sim_driver& driver_of(runtime::device_state& device) {
    if (device.kind() != device_kind::sim) {
        throw argument_error(std::string(device.driver().name()) +
                             " is no simulated device: make one with weir::sim(0)");
    }
    return static_cast<backend::sim::sim_driver&>(device.driver());  // devices of this kind have this driver
}

}  // namespace

void run_host_code_on(device of) {
    if (of.state(detail::key).stands_for_cuda()) {
        return;
    }
    if (of.kind() != device_kind::cuda) {
        throw argument_error(of.name() + " runs host code as it is: this is for CUDA devices");
    }
    static_cast<backend::cuda::cuda_driver&>(of.state(detail::key).driver()).run_host_code();
}

simulated::simulated(device of, const sim_settings& settings) : device_(&of.state(detail::key)) {
    backend::sim::sim_driver& driver = driver_of(*device_);
    const backend::timeline_table& timelines = backend::timeline_table::instance();
    const std::vector<frontiers::point> tails = device_->tails();
    if (!std::all_of(tails.begin(), tails.end(), [&](frontiers::point one) { return timelines.is_complete(one); })) {
        throw state_error("operations are pending on " + of.name() +
                          ": how it behaves changes only while it is idle; call device::synchronize first");
    }
    before_ = driver.settings();
    driver.configure(settings);
}

void simulated::await_idle() const {
    for (const frontiers::point& tail : device_->tails()) {
        backend::timeline_table::instance().host_wait(tail);
    }
}

simulated::~simulated() {
    const weir::detail::interruptible none(nullptr);
    await_idle();
    driver_of(*device_).restore(std::move(before_));
}

}  // namespace weir::testing
