#include "runtime/diagnostics/nvtx.hpp"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include "base/setting.hpp"
#include "observe/slow_path_reasons.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::runtime {

namespace {

using push_function = int (*)(const char* name);
using pop_function = int (*)();

push_function push = nullptr;  // written once, before nvtx_range::mode_ becomes `on`
pop_function pop = nullptr;

// The interface that tools expect of a program with NVTX ranges (NVTX 3, the part that all its languages share). The program calls
// the tool's InitializeInjectionNvtx2 with a function that returns tables by number. One table has a function that returns, for
// each module of NVTX, a list of places into which the tool writes its own functions.
using place_for_function = void*;
using get_table = const void* (*)(std::uint32_t table);
using initialize_injection = int (*)(get_table);

constexpr std::uint32_t table_of_callbacks = 1;
constexpr std::uint32_t table_of_versions = 3;
constexpr std::uint32_t nvtx_version = 3;
constexpr unsigned module_core = 1;
constexpr unsigned module_domains = 5;
constexpr std::size_t functions_of_module = 16;  ///< numbered from 1, in both modules
constexpr std::size_t core_range_push = 9;
constexpr std::size_t core_range_pop = 11;

/// The functions that the tool has written for one module, and the places where it writes them.
struct module_table {
    std::array<place_for_function, functions_of_module> functions{};
    std::array<place_for_function*, functions_of_module + 1> places{};  ///< the first and the last are null

    module_table() noexcept {
        for (std::size_t i = 1; i < functions_of_module; ++i) {
            places[i] = &functions[i];
        }
    }
};

module_table& core() {
    static module_table one;
    return one;
}

int module_functions(unsigned module, place_for_function*** places, unsigned* count) {
    static module_table domains;  // Weir uses none of these functions, but tools expect the table
    if (module != module_core && module != module_domains) {
        return 0;
    }
    if (places != nullptr) {
        *places = (module == module_core ? core() : domains).places.data();
    }
    if (count != nullptr) {
        *count = functions_of_module;
    }
    return 1;
}

struct callbacks_table {
    std::size_t size = sizeof(callbacks_table);
    int (*module_functions)(unsigned, place_for_function***, unsigned*) = &runtime::module_functions;
};

struct versions_table {
    std::size_t size = sizeof(versions_table);
    std::uint32_t version = nvtx_version;
    std::uint32_t reserved = 0;
    void (*set_tools_version)(std::uint32_t) = [](std::uint32_t) {};
};

const void* table(std::uint32_t which) {
    static const callbacks_table callbacks;
    static const versions_table versions;
    return which == table_of_callbacks  ? static_cast<const void*>(&callbacks)
           : which == table_of_versions ? static_cast<const void*>(&versions)
                                        : nullptr;
}

template <class Function>
Function find_in(void* library, const char* name) noexcept {
    return reinterpret_cast<Function>(::dlsym(library, name));
}

bool open_tool(const char* file) noexcept {
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const auto initialize =
        library != nullptr ? find_in<initialize_injection>(library, "InitializeInjectionNvtx2") : nullptr;
    if (initialize == nullptr || initialize(&table) != 1) {
        return false;
    }
    push = reinterpret_cast<push_function>(core().functions[core_range_push]);
    pop = reinterpret_cast<pop_function>(core().functions[core_range_pop]);
    return push != nullptr && pop != nullptr;
}

bool open_library(const char* file) noexcept {
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return false;
    }
    push = find_in<push_function>(library, "nvtxRangePushA");
    pop = find_in<pop_function>(library, "nvtxRangePop");
    return push != nullptr && pop != nullptr;
}

}  // namespace

/// Called once, by `begin`.
nvtx_range::mode nvtx_range::find() noexcept {
    constexpr detail::setting wanted("WEIR_NVTX");
    const char* const said = wanted.value();
    if (said == nullptr || std::string_view(said) == "0") {
        return mode::off;
    }
    if (std::string_view(said) != "1") {
        wanted.refuse("there are no NVTX ranges; say 1 to have them");
        return mode::off;
    }
    const char* const tool = std::getenv("NVTX_INJECTION64_PATH");
    const char* const named = detail::setting("WEIR_NVTX_LIBRARY").value();
    if ((tool != nullptr && *tool != '\0' && open_tool(tool)) ||
        open_library(named != nullptr ? named : "libnvToolsExt.so.1")) {
        return mode::on;
    }
    const std::string other = named != nullptr ? std::string("WEIR_NVTX_LIBRARY=") + named + " is none that can be used"
                                               : "WEIR_NVTX_LIBRARY names another file";
    wanted.refuse(
        ("there are no NVTX ranges, for there is nothing that takes them: run the program in a profiler (nsys "
         "profile ./program), which names its library in NVTX_INJECTION64_PATH, or install "
         "libnvToolsExt.so.1, which comes with CUDA up to 12 (" +
         other + ")")
            .c_str());
    return mode::off;
}

void nvtx_range::begin(const char* label) noexcept {
    // Keeps forks out: otherwise a child could wait for `found` to be initialized by a thread that it does not have.
    const detail::fork_section whole;
    static const mode found = find();
    mode_.store(found, std::memory_order_release);
    if (found == mode::off) {
        observe::slow_path_reasons::end(observe::slow_path_reasons::profiler);
    }
    if (found == mode::on && label != nullptr) {
        push(label);
        is_open_ = true;
    }
}

void nvtx_range::end() noexcept { pop(); }

}  // namespace weir::runtime
