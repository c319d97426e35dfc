#include "cli/info_cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/driver_api.hpp"
#include "backend/cuda/nvrtc_api.hpp"
#include "runtime/cuda_simulation.hpp"
#include "runtime/device_state.hpp"
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

/// The file that a function comes from.
template <class Function>
std::string file_of(Function* function) {
    Dl_info about{};
    const bool is_known = ::dladdr(reinterpret_cast<const void*>(function), &about) != 0 && about.dli_fname != nullptr;
    return is_known ? about.dli_fname : "an unknown file";
}

std::string in_words(const device& which) {
    gpu::device_context& in = gpu::context_of(which.state().driver());
    std::size_t free = 0;
    std::size_t total = 0;
    {
        const gpu::in_relaxed_context here(in);
        in.expect(in.api().memory_info(&free, &total), "cuMemGetInfo");
    }
    return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {} of memory, {} free", in.device_name(),
                       in.attribute(gpu::device_attribute::compute_capability_major),
                       in.attribute(gpu::device_attribute::compute_capability_minor),
                       in.attribute(gpu::device_attribute::multiprocessor_count), size_in_words(total),
                       size_in_words(free));
}

/// Which of the other devices its copies go to and come from straight, where there are several.
std::string reach_in_words(const device& which, int count) {
    if (count < 2) {
        return "";
    }
    const gpu::device_context& in = gpu::context_of(which.state().driver());
    std::string found;
    for (int id = 0; id < count; ++id) {
        gpu::device_number other = 0;
        int can = 0;
        if (id != in.number() && in.api().device_get(&other, id) == gpu::success &&
            in.api().device_can_access_peer(&can, in.device(), other) == gpu::success && can != 0) {
            found += fmt::format("{} cuda:{}", found.empty() ? "" : ",", id);
        }
    }
    return found.empty() ? ", reaches no other device: copies to one go by way of the host" : ", reaches" + found;
}

void print_devices(int count) {
    for (int id = 0; id < count; ++id) {
        const std::string name = "cuda:" + std::to_string(id);
        try {
            line(name.c_str(), in_words(cuda(id)) + reach_in_words(cuda(id), count));
        } catch (const error& why) {
            line(name.c_str(), std::string("cannot be used: ") + why.what());
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

/// What not every driver has, and what is done without it.
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

/// Whether CUDA devices are simulated, or WEIR_SIMULATE says something about it that is wrong.
bool print_simulated() {
    try {
        const int count = runtime::cuda_simulation::devices();
        for (int id = 0; id < count; ++id) {
            const device each = cuda(id);
            line(each.name().c_str(), fmt::format("simulated, {} of memory; CUDA C++, PTX and cubins do not run on it",
                                                  size_in_words(each.state().driver().total_memory())));
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
    print_devices(opened.devices);
    line("driver", fmt::format("{} (CUDA {}; {} is the oldest that will do)", file_of(opened.api->init),
                               version_text(opened.version), version_text(gpu::smallest_driver_version)));
    print_compiler(opened.version);
    print_later_functions(*opened.api);
}

}  // namespace weir::cli
