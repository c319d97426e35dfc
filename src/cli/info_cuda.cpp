#include "cli/info_cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/api/nvrtc_api.hpp"
#include "runtime/devices/cuda_simulation.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"

namespace weir::cli {

namespace {

namespace gpu = backend::cuda;

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string size_in_words(std::size_t bytes) {
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

void line(const char* what, const std::string& found) { fmt::print("  {:<26}{}\n", what, found); }

/// The file that contains a function.
template <class Function>
std::string file_of(Function* function) {
    Dl_info about{};
    const bool is_known = ::dladdr(reinterpret_cast<const void*>(function), &about) != 0 && about.dli_fname != nullptr;
    return is_known ? about.dli_fname : "an unknown file";
}

std::string in_words(const device_description& which) {
    return fmt::format("{}, {}, {} of memory, PCI {}", which.model, which.architecture,
                       size_in_words(which.memory_bytes), which.pci_id);
}

/// The other devices that a device copies to and from directly, if there are several devices.
std::string reach_in_words(const device_description& which, int count) {
    if (count < 2) {
        return "";
    }
    std::string found;
    for (const device& other : which.reaches) {
        found += fmt::format("{} {}", found.empty() ? "" : ",", other.name());
    }
    return found.empty() ? ", reaches no other device: copies to one go by way of the host" : ", reaches" + found;
}

/// Makes no context: looking at a device allocates no memory there.
void print_gpus(int count) {
    for (const device& each : devices()) {
        if (each.kind() != device_kind::cuda) {
            continue;
        }
        try {
            const device_description found = each.describe();
            line(each.name().c_str(), in_words(found) + reach_in_words(found, count));
        } catch (const error& why) {
            line(each.name().c_str(), std::string("cannot be used: ") + why.what());
        }
    }
}

void print_compiler(int driver_version) {
    try {
        const gpu::nvrtc_api& compiler = gpu::nvrtc(driver_version);
        line("NVRTC", fmt::format("{} ({}.{})", file_of(compiler.get_version), compiler.major, compiler.minor));
        line("CUDA's headers", compiler.headers.empty() ? "not beside NVRTC: kernels that include any need an option -I"
                                                        : compiler.headers);
    } catch (const missing_library& missing) {
        line("NVRTC", std::string("missing: ") + missing.what());
    }
}

/// Prints the functions that not every driver has, and what Weir does without them.
void print_later_functions(const gpu::driver_api& api) {
    const auto print = [](const char* name, bool is_there, const char* since, const char* use, const char* otherwise) {
        line(name, is_there ? fmt::format("found: {}", use)
                            : fmt::format("missing (driver {} and later have it): {}", since, otherwise));
    };
    print("cuLaunchKernelEx", api.launch_as != nullptr, "11.8", "a launch costs the host a hundredth less",
          "kernels are launched by cuLaunchKernel");
    print("cuStreamGetId", api.stream_id != nullptr, "12.0",
          "adopted streams are known by numbers that never come again",
          "adopted streams are known by their handles, and a new stream that gets an old handle is taken for the old "
          "one");
    print("cuFuncGetName", api.function_name != nullptr, "12.3", "kernels of other libraries are called by their names",
          "kernels of other libraries have no names in messages");
    print("cuFuncLoad", api.function_load != nullptr, "12.4", "kernels are loaded when they are made",
          "kernels may be loaded at their first launch, which may then wait for the device");
    print("cuFuncGetParamInfo", api.function_parameter != nullptr, "12.4",
          "launches check how many arguments there are",
          "launches do not check how many arguments there are unless the kernel has a signature");
    print(
        "cuFuncGetParamCount", api.function_parameter_count != nullptr, "13.2",
        "kernels are asked for as many parameters as they have",
        "kernels are asked for parameters until there are no more, which compute-sanitizer reports as an error of that "
        "call");
    print("cuCtxRecordEvent", api.context_record_event != nullptr, "12.5",
          "one event tells when memory is free that was handed to libraries which do not say when they are done",
          "such memory comes back at weir::safe_point() alone, which then waits for the device");
}

/// Whether CUDA devices are simulated, or WEIR_SIMULATE has an invalid value.
bool print_simulated() {
    try {
        const int count = runtime::cuda_simulation::devices();
        for (int id = 0; id < count; ++id) {
            const device each = cuda(id);
            line(each.name().c_str(), fmt::format("simulated, {} of memory; CUDA C++, PTX and cubins do not run on it",
                                                  size_in_words(each.state(detail::key).driver().total_memory())));
        }
        return count > 0;
    } catch (const argument_error& wrong) {
        line("no device", wrong.what());
        return true;
    }
}

}  // namespace

void print_cuda() {
    fmt::print("\nCUDA\n");
    if (print_simulated()) {
        return;
    }
    const gpu::opened_driver& opened = gpu::machine_driver();
    if (opened.api == nullptr) {
        line("no device", opened.why_not);
        line("",
             "install NVIDIA's driver, or name its library in WEIR_CUDA_DRIVER; in a container, pass the devices on");
        print_compiler(13000);
        return;
    }
    print_gpus(opened.devices);
    line("driver", fmt::format("{} (CUDA {}; {} is the oldest that will do)", file_of(opened.api->init),
                               version_text(opened.version), version_text(gpu::smallest_driver_version)));
    print_compiler(opened.version);
    print_later_functions(*opened.api);
}

}  // namespace weir::cli
