// The devices of the process.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/driver.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/fork_part.hpp"
#include "backend/sim/driver.hpp"
#include "runtime/cuda_simulation.hpp"
#include "runtime/device_state.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

extern "C" {
// Initialised when the program starts: by check/environment.cpp and trace/environment.cpp.
extern const bool weir_check_environment;
extern const bool weir_trace_environment;
}

namespace weir {

namespace runtime {

namespace {

// Of a static library a linker takes only the files that others refer to. Every program that uses a device takes this file, and
// so WEIR_CHECK and WEIR_TRACE work in every program, whatever else it uses of the library and however it was linked.
[[gnu::used]] const bool* const environments[] = {&weir_check_environment, &weir_trace_environment};

constexpr int most_sims = device_state::first_stand_in;

using sim_list = std::array<std::atomic<device_state*>, most_sims + cuda_simulation::most_devices>;

/// Those that were asked for, by their numbers. An entry changes once, from null.
sim_list& sims() {
    static sim_list list{};
    return list;
}

/// Those of the driver that were asked for, by their numbers; null: not yet.
struct gpu_list {
    detail::mutex making;  ///< guards `all`
    std::vector<device_state*> all;
};

gpu_list& gpus() {
    static auto* const one = new gpu_list;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

/// Makes it if need be.
device_state& simulated(int id, const char* prefix, int number) {
    static detail::mutex making;  // guards the making of devices
    std::atomic<device_state*>& one = sims()[static_cast<std::size_t>(id)];
    if (device_state* const known = one.load(std::memory_order_acquire)) {
        return *known;
    }
    const std::lock_guard lock(making);
    if (one.load(std::memory_order_relaxed) == nullptr) {
        auto driver = std::make_unique<backend::sim::sim_driver>(prefix + std::to_string(number));
        one.store(new device_state(device_kind::sim, id, std::move(driver)), std::memory_order_release);
    }
    return *one.load(std::memory_order_relaxed);
}

/// Throws argument_error unless the driver, or whatever else stands in the message, has such a device.
void expect_number(int id, int devices, const char* whose) {
    if (id < 0 || id >= devices) {
        throw argument_error("there is no device cuda:" + std::to_string(id) + ": " + whose + " cuda:0" +
                             (devices == 1 ? "" : " to cuda:" + std::to_string(devices - 1)));
    }
}

}  // namespace

// Devices are never destroyed: threads and arrays may use them until the very end.

device_state& cpu_device() {
    static auto* const one = new device_state(device_kind::cpu, 0, std::make_unique<backend::cpu::cpu_driver>());
    return *one;
}

device_state& inline_device() {
    static auto* const one =
        new device_state(device_kind::cpu_inline, 0, std::make_unique<backend::cpu::cpu_driver>(true), &cpu_device());
    return *one;
}

device_state& cuda_device(int id) {
    if (const int stand_ins = cuda_simulation::devices(); stand_ins > 0) {
        expect_number(id, stand_ins, "the simulated ones are");
        return simulated(device_state::first_stand_in + id, "cuda:", id);
    }
    if (backend::cuda::is_driver_of_parent()) {
        throw state_error(
            "CUDA cannot be used in this process, which was forked from one that had used it: its driver does "
            "not survive a fork. Start the child as a new program (in Python, multiprocessing's method "
            "spawn), or fork before the first use of CUDA; the CPU can be used here");
    }
    const backend::cuda::opened_driver& opened = backend::cuda::machine_driver();
    if (opened.api == nullptr) {
        throw device_error("there is no device cuda:" + std::to_string(id) + ": " + opened.why_not);
    }
    expect_number(id, opened.devices, "the driver has");
    gpu_list& list = gpus();
    const std::lock_guard lock(list.making);
    list.all.resize(static_cast<std::size_t>(opened.devices));
    device_state*& one = list.all[static_cast<std::size_t>(id)];
    if (one == nullptr) {
        one = new device_state(device_kind::cuda, id, std::make_unique<backend::cuda::cuda_driver>(*opened.api, id));
    }
    return *one;
}

std::vector<device_state*> cuda_devices_in_use() {
    gpu_list& list = gpus();
    const std::lock_guard lock(list.making);
    std::vector<device_state*> made;
    std::copy_if(list.all.begin(), list.all.end(), std::back_inserter(made), [](auto* one) { return one != nullptr; });
    return made;
}

std::vector<device_state*> cuda_devices_with_context() {
    std::vector<device_state*> all = cuda_devices_in_use();
    if (all.empty()) {
        return all;
    }
    const backend::cuda::opened_driver& opened = backend::cuda::machine_driver();
    for (int id = 0; id < opened.devices; ++id) {
        if (std::any_of(all.begin(), all.end(), [&](const device_state* one) { return one->id() == id; })) {
            continue;
        }
        backend::cuda::device_number number = 0;
        unsigned flags = 0;
        int is_active = 0;
        backend::cuda::expect(*opened.api, opened.api->device_get(&number, id), "cuDeviceGet");
        backend::cuda::expect(*opened.api, opened.api->primary_context_state(number, &flags, &is_active),
                              "cuDevicePrimaryCtxGetState");
        if (is_active != 0) {
            all.push_back(&cuda_device(id));
        }
    }
    return all;
}

std::vector<device_state*> devices_in_use() {
    std::vector<device_state*> made{&cpu_device(), &inline_device()};
    const std::vector<device_state*> real = cuda_devices_in_use();
    made.insert(made.end(), real.begin(), real.end());
    // Those that stand for CUDA devices come before the others, though their numbers come after.
    for (int i = 0; i < static_cast<int>(sims().size()); ++i) {
        const auto id = static_cast<std::size_t>((i + most_sims) % static_cast<int>(sims().size()));
        made.push_back(sims()[id].load(std::memory_order_acquire));
    }
    std::erase_if(made, [](const device_state* one) { return one == nullptr || one->stayed_behind(); });
    return made;
}

device_state& sim_device(int id) {
    if (id < 0 || id >= most_sims) {
        throw argument_error("there is no device sim:" + std::to_string(id) +
                             ": simulated devices are sim:0 to sim:" + std::to_string(most_sims - 1));
    }
    return simulated(id, "sim:", id);
}

namespace {

/// Devices other than the CPU stay with the parent.
class devices_part final : public backend::fork_part {
    void begin_child() noexcept override {
        for (std::atomic<device_state*>& one : sims()) {
            if (device_state* const known = one.load(std::memory_order_relaxed)) {
                known->begin_child();
            }
        }
        for (device_state* one : gpus().all) {
            if (one != nullptr) {
                one->begin_child();
            }
        }
    }
};
devices_part devices_at_fork;

// So that no fork finds them half made.
[[maybe_unused]] const gpu_list& gpus_at_start = gpus();
[[maybe_unused]] const device_state& cpu_at_start = cpu_device();
[[maybe_unused]] const device_state& inline_at_start = inline_device();

}  // namespace

}  // namespace runtime

device cpu() { return device(runtime::cpu_device()); }

device cpu_inline() { return device(runtime::inline_device()); }

device cuda(int id) { return device(runtime::cuda_device(id)); }

device sim(int id) { return device(runtime::sim_device(id)); }

std::vector<device> devices() {
    const int stand_ins = runtime::cuda_simulation::devices();
    const bool are_gone = stand_ins == 0 && backend::cuda::is_driver_of_parent();
    const int cuda_devices = stand_ins > 0 ? stand_ins : are_gone ? 0 : backend::cuda::machine_driver().devices;
    for (int id = 0; id < cuda_devices; ++id) {
        static_cast<void>(runtime::cuda_device(id));
    }
    std::vector<device> all;
    for (runtime::device_state* const one : runtime::devices_in_use()) {
        all.emplace_back(*one);
    }
    return all;
}

namespace {

/// The number that makes up the rest of the name.
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
    if (!name.starts_with(prefix)) {
        return std::nullopt;
    }
    const std::string_view number = name.substr(prefix.size());
    int id = 0;
    const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), id);
    const bool is_number = failure == std::errc() && end == number.data() + number.size() && id >= 0;
    return is_number ? std::optional(id) : std::nullopt;
}

}  // namespace

device device::from_name(std::string_view name) {
    if (name == "cpu") {
        return cpu();
    }
    if (name == "cpu:inline") {
        return cpu_inline();
    }
    if (const std::optional<int> id = number_after("cuda:", name); id) {
        return cuda(*id);
    }
    if (const std::optional<int> id = number_after("sim:", name); id && *id < runtime::most_sims) {
        return sim(*id);
    }
    throw argument_error("there is no device \"" + std::string(name) +
                         "\": there are \"cpu\", \"cpu:inline\", \"cuda:0\" and so on, and \"sim:0\" to \"sim:" +
                         std::to_string(runtime::most_sims - 1) + "\"");
}

}  // namespace weir
