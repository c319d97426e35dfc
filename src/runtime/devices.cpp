// The devices of the process.
#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/driver.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/sim/driver.hpp"
#include "runtime/device_state.hpp"
#include "weir/error.hpp"

namespace weir {

namespace runtime {

namespace {

constexpr int most_sims = 16;

/// Those that were asked for. An entry changes once, from null.
std::array<std::atomic<device_state*>, most_sims>& sims() {
    static std::array<std::atomic<device_state*>, most_sims> list{};
    return list;
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
    const backend::cuda::opened_driver& opened = backend::cuda::machine_driver();
    if (opened.api == nullptr) {
        throw device_error("there is no device cuda:" + std::to_string(id) + ": " + opened.why_not);
    }
    if (id < 0 || id >= opened.devices) {
        throw argument_error("there is no device cuda:" + std::to_string(id) + ": the driver has cuda:0" +
                             (opened.devices == 1 ? "" : " to cuda:" + std::to_string(opened.devices - 1)));
    }
    static std::mutex making;  // guards the list
    static auto* const list = new std::vector<device_state*>(static_cast<std::size_t>(opened.devices));
    const std::lock_guard lock(making);
    device_state*& one = (*list)[static_cast<std::size_t>(id)];
    if (one == nullptr) {
        one = new device_state(device_kind::cuda, id, std::make_unique<backend::cuda::cuda_driver>(*opened.api, id));
    }
    return *one;
}

device_state& sim_device(int id) {
    if (id < 0 || id >= most_sims) {
        throw argument_error("there is no device sim:" + std::to_string(id) +
                             ": simulated devices are sim:0 to sim:" + std::to_string(most_sims - 1));
    }
    static std::mutex making;  // guards the making of devices
    std::atomic<device_state*>& one = sims()[static_cast<std::size_t>(id)];
    if (device_state* const known = one.load(std::memory_order_acquire)) {
        return *known;
    }
    const std::lock_guard lock(making);
    if (one.load(std::memory_order_relaxed) == nullptr) {
        one.store(new device_state(device_kind::sim, id, std::make_unique<backend::sim::sim_driver>(id)),
                  std::memory_order_release);
    }
    return *one.load(std::memory_order_relaxed);
}

}  // namespace runtime

device cpu() { return device(runtime::cpu_device()); }

device cpu_inline() { return device(runtime::inline_device()); }

device cuda(int id) { return device(runtime::cuda_device(id)); }

device sim(int id) { return device(runtime::sim_device(id)); }

std::vector<device> devices() {
    std::vector<device> all{cpu(), cpu_inline()};
    for (int id = 0; id < backend::cuda::machine_driver().devices; ++id) {
        all.push_back(cuda(id));
    }
    for (const auto& one : runtime::sims()) {
        if (runtime::device_state* const known = one.load(std::memory_order_acquire)) {
            all.emplace_back(*known);
        }
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
