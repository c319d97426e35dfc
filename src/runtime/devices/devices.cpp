// The devices of the process.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/driver.hpp"
#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/description.hpp"
#include "backend/cuda/device/driver.hpp"
#include "backend/fork_part.hpp"
#include "backend/sim/driver.hpp"
#include "runtime/devices/cuda_simulation.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/devices/registered_devices.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

extern "C" {
// Initialized at program start, in check/environment.cpp and trace/environment.cpp.
extern const bool weir_check_environment;
extern const bool weir_trace_environment;
// Defined in array/prepare.cpp.
void weir_prepare_opened_device(weir::runtime::device_state& opened) noexcept;
}

namespace weir {

namespace runtime {

namespace {

// From a static library, a linker takes only the files that other files refer to. Every program that uses a device takes this file,
// so these references make WEIR_CHECK and WEIR_TRACE work in every program, whatever else it uses of the library.
[[gnu::used]] const bool* const environments[] = {&weir_check_environment, &weir_trace_environment};

constexpr int most_sims = device_state::first_stand_in;

using sim_list = std::array<std::atomic<device_state*>, most_sims + cuda_simulation::most_devices>;

/// The simulated devices made so far, by their numbers. An entry changes once, from null.
sim_list& sims() {
    static sim_list list{};
    return list;
}

/// The driver's devices made so far, by their numbers; null: not made yet.
struct gpu_list {
    detail::mutex making;  ///< guards the other two members
    std::vector<device_state*> all;
    std::deque<device_entry> listed;  ///< by their numbers; devices that `listed_gpu` has returned
};

gpu_list& gpus() {
    static auto* const one = new gpu_list;  // NOLINT(cppcoreguidelines-owning-memory): lives for ever
    return *one;
}

/// The simulated device, made at the first call.
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

/// Throws argument_error unless `id` is in [0, devices). `whose` is the middle of the message.
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

/// The driver that has the device. Throws state_error (a child whose parent used CUDA), device_error, argument_error.
const backend::cuda::opened_driver& driver_of_cuda(int id) {
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
    return opened;
}

device_state& cuda_device(int id) {
    if (const int stand_ins = cuda_simulation::devices(); stand_ins > 0) {
        expect_number(id, stand_ins, "the simulated ones are");
        return simulated(device_state::first_stand_in + id, "cuda:", id);
    }
    const backend::cuda::opened_driver& opened = driver_of_cuda(id);
    gpu_list& list = gpus();
    device_state* found = nullptr;
    {
        const std::lock_guard lock(list.making);
        list.all.resize(static_cast<std::size_t>(opened.devices));
        device_state*& one = list.all[static_cast<std::size_t>(id)];
        if (one == nullptr) {
            one =
                new device_state(device_kind::cuda, id, std::make_unique<backend::cuda::cuda_driver>(*opened.api, id));
        }
        found = one;
    }
    found->prepare_once(weir_prepare_opened_device);  // slow, so not under the lock
    return *found;
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

bool gpus_stayed_behind() noexcept { return backend::cuda::is_driver_of_parent(); }

device_state* pinning_device() {
    const bool is_simulated = cuda_simulation::devices() > 0;
    return is_simulated || backend::cuda::machine_driver().devices == 0 ? nullptr : &cuda_device(0);
}

std::vector<device_state*> devices_in_use() {
    std::vector<device_state*> made{&cpu_device(), &inline_device()};
    const std::vector<device_state*> real = cuda_devices_in_use();
    made.insert(made.end(), real.begin(), real.end());
    // Devices that stand for CUDA devices come before the other simulated ones, although their numbers come after.
    for (int i = 0; i < static_cast<int>(sims().size()); ++i) {
        const auto id = static_cast<std::size_t>((i + most_sims) % static_cast<int>(sims().size()));
        made.push_back(sims()[id].load(std::memory_order_acquire));
    }
    const std::vector<device_state*> registered = registered_devices();
    made.insert(made.end(), registered.begin(), registered.end());
    std::erase_if(made, [](const device_state* one) { return one == nullptr || one->stayed_behind(); });
    return made;
}

device_state& opened_device(device_kind kind, int id) {
    switch (kind) {
        case device_kind::cpu:
            return cpu_device();
        case device_kind::cpu_inline:
            return inline_device();
        case device_kind::cuda:
            return cuda_device(id);
        case device_kind::sim:
        case device_kind::registered:  // registered devices are opened when they are found
            break;
    }
    return id >= device_state::first_stand_in ? cuda_device(id - device_state::first_stand_in) : sim_device(id);
}

/// The device of that number; does not open it.
device listed_gpu(int id) {
    gpu_list& list = gpus();
    const std::lock_guard lock(list.making);
    while (list.listed.size() <= static_cast<std::size_t>(id)) {
        list.listed.emplace_back(device_kind::cuda, static_cast<int>(list.listed.size()));
    }
    return {detail::key, list.listed[static_cast<std::size_t>(id)]};
}

device_state* find_opened(const device_entry& one) noexcept {
    if (device_state* const known = one.opened.load(std::memory_order_acquire)) {
        return known;
    }
    const auto id = static_cast<std::size_t>(one.id);
    if (one.kind == device_kind::sim) {
        return sims()[id].load(std::memory_order_acquire);
    }
    gpu_list& list = gpus();
    const std::lock_guard lock(list.making);
    return id < list.all.size() ? list.all[id] : nullptr;
}

device_state& sim_device(int id) {
    if (id < 0 || id >= most_sims) {
        throw argument_error("there is no device sim:" + std::to_string(id) +
                             ": simulated devices are sim:0 to sim:" + std::to_string(most_sims - 1));
    }
    return simulated(id, "sim:", id);
}

namespace {

/// Devices other than the CPU stay with the parent of a fork.
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

// At static initialization, so that no fork finds them half constructed.
[[maybe_unused]] const gpu_list& gpus_at_start = gpus();
[[maybe_unused]] const device_state& cpu_at_start = cpu_device();
[[maybe_unused]] const device_state& inline_at_start = inline_device();

}  // namespace

}  // namespace runtime

device cpu() { return device(detail::key, runtime::cpu_device()); }

device cpu_inline() { return device(detail::key, runtime::inline_device()); }

device cuda(int id) { return device(detail::key, runtime::cuda_device(id)); }

device sim(int id) { return device(detail::key, runtime::sim_device(id)); }

std::vector<device> devices() {
    const int stand_ins = runtime::cuda_simulation::devices();
    const bool are_gone = stand_ins == 0 && backend::cuda::is_driver_of_parent();
    const int gpus = stand_ins > 0 || are_gone ? 0 : backend::cuda::machine_driver().devices;
    std::vector<device> all{cpu(), cpu_inline()};
    for (int id = 0; id < gpus; ++id) {
        all.push_back(runtime::listed_gpu(id));
    }
    for (int id = 0; id < stand_ins; ++id) {
        static_cast<void>(runtime::cuda_device(id));  // opens no GPU
    }
    for (runtime::device_state* const one : runtime::devices_in_use()) {
        if (one->kind() == device_kind::sim || one->kind() == device_kind::registered) {
            all.emplace_back(detail::key, *one);
        }
    }
    return all;
}

device_description device::describe() const {
    if (kind() == device_kind::cpu || kind() == device_kind::cpu_inline) {
        return {"host", state(detail::key).driver().total_memory(), "x86-64", "", {}};
    }
    if (kind() == device_kind::registered) {
        return {name(), state(detail::key).driver().total_memory(), "", "", {}};
    }
    if (kind() == device_kind::sim) {
        return {"simulated", state(detail::key).driver().total_memory(), "", "", {}};  // opens no GPU
    }
    const backend::cuda::opened_driver& opened = runtime::driver_of_cuda(id());
    const backend::cuda::description found = backend::cuda::describe(*opened.api, id(), opened.devices);
    device_description its_description{found.model,
                                       found.memory_bytes,
                                       "sm_" + std::to_string(found.major) + std::to_string(found.minor),
                                       found.pci_id,
                                       {}};
    for (const int peer : found.peers) {
        its_description.reaches.push_back(runtime::listed_gpu(peer));
    }
    return its_description;
}

namespace {

/// The number that is the rest of the name; nothing if the rest is not a number.
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
    if (runtime::device_state* const found = runtime::find_registered(name)) {
        return {detail::key, *found};
    }
    throw argument_error("there is no device \"" + std::string(name) +
                         "\": there are \"cpu\", \"cpu:inline\", \"cuda:0\" and so on, and \"sim:0\" to \"sim:" +
                         std::to_string(runtime::most_sims - 1) + "\"");
}

}  // namespace weir
