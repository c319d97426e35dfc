// cuModule*, cuFunc*, cuOccupancy*, cuLaunchKernel and cuLaunchKernelEx.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "block.hpp"
#include "control.hpp"
#include "driver.hpp"
#include "image.hpp"
#include "module_table.hpp"

namespace weir_fake {

/// A shared object of the host in memory.
struct loaded_image {
    void* library = nullptr;
    int file = -1;
    const weir_shim::kernel* kernels = nullptr;
    void (*set_view)(weir_shim::view*) = nullptr;

    loaded_image() = default;
    loaded_image(const loaded_image&) = delete;
    loaded_image& operator=(const loaded_image&) = delete;
    ~loaded_image() {
        if (library != nullptr) {
            ::dlclose(library);
        }
        // After the library is closed: the loader distinguishes libraries by a name that contains the file descriptor.
        if (file >= 0) {
            ::close(file);
        }
    }
};

struct function_slot {
    module_slot* of = nullptr;
    const weir_shim::kernel* kernel = nullptr;
    int dynamic_shared = 48 << 10;
};

struct module_slot {
    context* in = nullptr;
    std::shared_ptr<loaded_image> image;
    std::vector<function_slot*> functions;
};

namespace {

struct module_tables {
    slots<module_slot> modules;
    slots<function_slot> functions;
};

module_tables& tables() {
    static auto* const all = new module_tables;
    return *all;
}

bool write_all(int file, const char* data, std::size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = ::write(file, data, bytes);
        if (written <= 0) {
            return false;
        }
        data += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

/// Returns null, with the error. Without the lock: the loader runs the image's initialisers.
std::shared_ptr<loaded_image> load(const void* image, CUresult& error) {
    const auto* const start = static_cast<const char*>(image);
    // Byte by byte: anything else than an image may be shorter.
    for (std::size_t i = 0; i < sizeof image_magic; ++i) {
        if (start[i] != image_magic[i]) {
            error = start[0] == '\x7f' || start[0] == '\0' ? invalid_image : invalid_ptx;
            return nullptr;
        }
    }
    image_header header;
    std::memcpy(&header, image, sizeof header);
    if (header.is_ptx == 0 ? header.architecture != 90 : header.architecture > 90) {
        error = no_binary_for_gpu;
        return nullptr;
    }
    auto made = std::make_shared<loaded_image>();
    made->file = ::memfd_create("weir-fake-cuda", MFD_CLOEXEC);
    if (made->file >= 0 && write_all(made->file, start + sizeof header, header.bytes)) {
        const std::string name = "/proc/self/fd/" + std::to_string(made->file);
        made->library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (made->library == nullptr) {
        error = invalid_image;
        return nullptr;
    }
    made->kernels = static_cast<const weir_shim::kernel*>(::dlsym(made->library, "weir_fake_kernels"));
    made->set_view = reinterpret_cast<void (*)(weir_shim::view*)>(::dlsym(made->library, "weir_fake_set_view"));
    error = made->kernels != nullptr && made->set_view != nullptr ? success : invalid_image;
    return error == success ? made : nullptr;
}

/// Whether a module has the kernel under that name: the name of the symbol, as with the real driver.
bool is_called(const weir_shim::kernel& what, const char* name) {
    Dl_info found{};
    return ::dladdr(what.address, &found) != 0 && found.dli_saddr == what.address &&
           std::strcmp(found.dli_sname, name) == 0;
}

/// The values of the arguments, copied when the kernel is launched.
struct argument_values {
    std::vector<std::vector<std::max_align_t>> values;
    std::vector<void*> addresses;

    argument_values(const weir_shim::kernel& of, void** from) {
        for (unsigned i = 0; i < of.count; ++i) {
            auto& value = values.emplace_back(of.sizes[i] / sizeof(std::max_align_t) + 1);
            std::memcpy(value.data(), from[i], of.sizes[i]);
        }
        for (auto& value : values) {
            addresses.push_back(value.data());
        }
    }
};

bool is_sound(const weir_shim::dim3& grid, const weir_shim::dim3& block) {
    return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
           block.x > 0 && block.y > 0 && block.z > 0 && block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
           block.x * block.y * block.z <= 1024;
}

}  // namespace

std::size_t live_modules() { return tables().modules.live(); }

}  // namespace weir_fake

using namespace weir_fake;

namespace {
enum jit_option { error_log_buffer = 5, error_log_buffer_bytes = 6 };

/// The message of the driver's compiler about an image that it refuses.
void tell_why(CUresult error, unsigned options, const int* names, void** values) {
    char* text = nullptr;
    std::size_t bytes = 0;
    for (unsigned i = 0; i < options; ++i) {
        if (names[i] == error_log_buffer) {
            text = static_cast<char*>(values[i]);
        } else if (names[i] == error_log_buffer_bytes) {
            bytes = reinterpret_cast<std::uintptr_t>(values[i]);
        }
    }
    if (text != nullptr && bytes > 0) {
        std::snprintf(text, bytes, "%s", error == invalid_ptx ? "ptxas fatal   : not made by the fake NVRTC" : "");
    }
}
}  // namespace

WEIR_FAKE_EXPORT CUresult cuModuleLoadDataEx(CUmodule* made, const void* image, unsigned options, int* names,
                                             void** values) {
    call in("cuModuleLoadDataEx");
    if (in.failed()) {
        return in.error();
    }
    if (image == nullptr || options > 64) {
        return invalid_value;
    }
    if (driver().loading_waits) {
        ++driver().waiting_loads;
        drain(in.lock(), in.in());
        --driver().waiting_loads;
    }
    in.lock().unlock();
    CUresult error = success;
    auto loaded = load(image, error);
    in.lock().lock();
    if (loaded) {
        *made = tables().modules.take();
        (*made)->in = &in.in();
        (*made)->image = std::move(loaded);
    } else {
        tell_why(error, options, names, values);
    }
    return error;
}

WEIR_FAKE_EXPORT CUresult cuModuleUnload(CUmodule what) {
    std::shared_ptr<loaded_image> gone;  // closed without the lock
    call in("cuModuleUnload");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().modules.contains(what)) {
        return invalid_handle;
    }
    for (function_slot* const each : what->functions) {
        tables().functions.give_back(each);
    }
    gone = std::move(what->image);
    tables().modules.give_back(what);
    in.lock().unlock();
    return success;
}

WEIR_FAKE_EXPORT CUresult cuModuleGetFunction(CUfunction* found, CUmodule of, const char* name) {
    call in("cuModuleGetFunction");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().modules.contains(of)) {
        return invalid_handle;
    }
    for (function_slot* const each : of->functions) {
        if (is_called(*each->kernel, name)) {
            *found = each;
            return success;
        }
    }
    for (const weir_shim::kernel* each = of->image->kernels; each->address != nullptr; ++each) {
        if (is_called(*each, name)) {
            *found = tables().functions.take();
            **found = {of, each, 48 << 10};
            of->functions.push_back(*found);
            return success;
        }
    }
    return not_found;
}

WEIR_FAKE_EXPORT CUresult cuFuncLoad(CUfunction of) {
    call in("cuFuncLoad");
    if (in.failed()) {
        return in.error();
    }
    return tables().functions.contains(of) ? success : invalid_handle;
}

namespace {
enum function_attribute { max_threads_per_block = 0, shared_size = 1, max_dynamic_shared_size = 8 };
}

WEIR_FAKE_EXPORT CUresult cuFuncGetAttribute(int* value, int which, CUfunction of) {
    call in("cuFuncGetAttribute");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    switch (which) {
        case max_threads_per_block:
            *value = 1024;
            return success;
        case shared_size:
            *value = 0;
            return success;
        case max_dynamic_shared_size:
            *value = of->dynamic_shared;
            return success;
        default:
            return invalid_value;
    }
}

WEIR_FAKE_EXPORT CUresult cuFuncSetAttribute(CUfunction of, int which, int value) {
    call in("cuFuncSetAttribute");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    if (which != max_dynamic_shared_size || value < 0 || value > 227 << 10) {
        return invalid_value;
    }
    of->dynamic_shared = value;
    return success;
}

namespace {

/// Of one multiprocessor, by what devices of compute capability 9.0 have; no kernel here needs many registers.
unsigned most_active_blocks(unsigned threads, std::size_t shared_bytes) {
    const unsigned by_threads = 2048 / ((threads + 31) / 32 * 32);
    const auto by_memory = static_cast<unsigned>((std::size_t{228} << 10) / (shared_bytes + 1024));
    return std::min({32U, by_threads, by_memory});
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction of, int threads,
                                                                      std::size_t shared_bytes) {
    call in("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    if (threads < 1 || threads > 1024 || shared_bytes > static_cast<std::size_t>(of->dynamic_shared)) {
        return invalid_value;
    }
    *blocks = static_cast<int>(most_active_blocks(static_cast<unsigned>(threads), shared_bytes));
    return success;
}

namespace {

CUresult launch_kernel(call& in, CUfunction what, const unsigned (&grid)[3], const unsigned (&block)[3],
                       unsigned shared_bytes, CUstream handle, void** arguments, void** extra) {
    const auto on = in.failed() ? nullptr : in.stream_of(handle);
    if (!on) {
        return in.error();
    }
    // The function and the stream must be of one context.
    if (!tables().functions.contains(what) || what->of->in != &in.in() || on->in != &in.in()) {
        return invalid_handle;
    }
    if (extra != nullptr) {
        return not_supported;
    }
    launch how{what->kernel,
               what->of->image->set_view,
               {grid[0], grid[1], grid[2]},
               {block[0], block[1], block[2]},
               shared_bytes,
               nullptr};
    if (!is_sound(how.grid, how.block) || shared_bytes > static_cast<unsigned>(what->dynamic_shared) ||
        (arguments == nullptr && what->kernel->count > 0)) {
        return invalid_value;
    }
    auto values = std::make_shared<argument_values>(*what->kernel, arguments);
    how.arguments = values->addresses.data();
    enqueue(in.lock(), on, {{}, [how, values, image = what->of->image] { return run(how); }});
    return success;
}

/// CUlaunchAttribute.
enum launch_attribute_id { cooperative = 2, cluster_dimension = 4 };
struct launch_attribute {
    int id;
    int padding;
    unsigned value[16];
};
/// CUlaunchConfig.
struct launch_settings {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    CUstream stream;
    const launch_attribute* attributes;
    unsigned attribute_count;
};

/// Notes what the attributes ask for; the kernel's blocks run one after the other all the same.
CUresult note_attributes(const launch_settings& as) {
    std::array<unsigned, 4> special{};
    for (unsigned i = 0; i < as.attribute_count; ++i) {
        const launch_attribute& one = as.attributes[i];
        if (one.id == cooperative) {
            special[3] = one.value[0];
        } else if (one.id == cluster_dimension) {
            std::copy_n(one.value, 3, special.begin());
        } else {
            return not_supported;
        }
    }
    const unsigned in_cluster = special[0] * special[1] * special[2];
    const unsigned threads = as.block[0] * as.block[1] * as.block[2];
    const unsigned most = 4 * most_active_blocks(std::max(1U, threads), as.shared_bytes);
    if (special[3] != 0 && as.grid[0] * as.grid[1] * as.grid[2] > most) {
        return cooperative_launch_too_large;
    }
    for (unsigned axis = 0; in_cluster != 0 && axis < 3; ++axis) {
        if (in_cluster > 8 || as.grid[axis] % special[axis] != 0) {
            return invalid_cluster_size;
        }
    }
    driver().last_special_launch = special;
    return success;
}

}  // namespace

WEIR_FAKE_EXPORT CUresult cuLaunchKernel(CUfunction what, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         CUstream handle, void** arguments, void** extra) {
    call in("cuLaunchKernel", handle);
    return launch_kernel(in, what, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, handle,
                         arguments, extra);
}

WEIR_FAKE_EXPORT CUresult cuLaunchKernelEx(const launch_settings* as, CUfunction what, void** arguments, void** extra) {
    call in("cuLaunchKernelEx", as->stream);
    if (const CUresult refused = as->attribute_count == 0 ? success : note_attributes(*as); refused != success) {
        return refused;
    }
    return launch_kernel(in, what, as->grid, as->block, as->shared_bytes, as->stream, arguments, extra);
}

WEIR_FAKE_EXPORT CUresult cuFuncGetParamInfo(CUfunction of, std::size_t index, std::size_t* offset,
                                             std::size_t* bytes) {
    call in("cuFuncGetParamInfo");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    if (index >= of->kernel->count) {
        return invalid_value;
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i <= index; ++i) {
        at = (at + of->kernel->alignments[i] - 1) / of->kernel->alignments[i] * of->kernel->alignments[i];
        *offset = at;
        at += of->kernel->sizes[i];
    }
    *bytes = of->kernel->sizes[index];
    return success;
}

WEIR_FAKE_EXPORT CUresult cuFuncGetParamCount(CUfunction of, std::size_t* count) {
    call in("cuFuncGetParamCount");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    *count = of->kernel->count;
    return success;
}

WEIR_FAKE_EXPORT CUresult cuFuncGetName(const char** name, CUfunction of) {
    call in("cuFuncGetName");
    if (in.failed()) {
        return in.error();
    }
    if (!tables().functions.contains(of)) {
        return invalid_handle;
    }
    Dl_info found{};
    *name = ::dladdr(of->kernel->address, &found) != 0 ? found.dli_sname : nullptr;
    return *name != nullptr ? success : invalid_handle;
}
