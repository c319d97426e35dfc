// What is loaded before its first use.
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/cuda/kernel_set.hpp"
#include "array/cuda/launch.hpp"
#include "array/cuda/prepare.hpp"
#include "backend/capability/capabilities.hpp"
#include "base/setting.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/diagnostics/debug_log.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

/// Whether devices get kernels when they are opened.
bool is_wanted_at_opening() noexcept {
    static const bool wanted = [] {
        constexpr detail::setting variable("WEIR_PREPARE");
        const char* const value = variable.value();
        if (value != nullptr && std::string_view(value) != "0" && std::string_view(value) != "1") {
            variable.refuse("kernels are loaded when a CUDA device is opened; say 0 to load each at its first use");
        }
        return value == nullptr || std::string_view(value) != "0";
    }();
    return wanted;
}

}  // namespace

/// Called once for each CUDA device, before a program can put work into its streams. A failure is no error here: the first use of a
/// kernel compiles it, and throws what is wrong.
extern "C" void weir_prepare_opened_device(runtime::device_state& opened) noexcept {
    try {
        const array_kernels::kernels* const in = opened.driver().can().kernels;
        if (is_wanted_at_opening() && in != nullptr) {
            array_kernels::prepare(*in, array_kernels::usual_sets());
        }
    } catch (const std::exception& failure) {
        runtime::debug_log("a CUDA device is open without the kernels of arrays, which are loaded at their first use:");
        runtime::debug_log(failure.what());
    }
}

void device::prepare(std::initializer_list<dtype> types) const {
    prepare(std::span<const dtype>(types.begin(), types.size()));
}

void device::prepare(std::span<const dtype> types) const {
    std::vector<array_kernels::kernel_set> sets = array_kernels::usual_sets();
    const auto add = [&](const std::vector<array_kernels::kernel_set>& more) {
        sets.insert(sets.end(), more.begin(), more.end());
    };
    for (const dtype& type : types) {
        if (!has_arithmetic(type)) {
            throw argument_type_error("prepare: arrays of " + name_of(type) +
                                      " are only moved, and copies of all types are there without it: leave it out");
        }
        add(array_kernels::sets_for(type));
        for (const dtype other : types.first(static_cast<std::size_t>(&type - types.data()))) {
            if (other != type) {
                add(array_kernels::sets_between(other, type));
            }
        }
    }
    if (const array_kernels::kernels* const in = array_kernels::kernels_of(*this)) {
        array_kernels::prepare(*in, sets);
    }
}

}  // namespace weir
