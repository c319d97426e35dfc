// A receiver of NVTX ranges in both forms: a library with NVTX's functions, and a tool that gives its functions to the program.
// Writes a line for each call to the file that WEIR_FAKE_NVTX_LOG names.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define WEIR_FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int depth = 0;

void note(const char* form, const char* what, const char* name) {
    if (std::FILE* const log = std::fopen(std::getenv("WEIR_FAKE_NVTX_LOG"), "a")) {
        std::fprintf(log, "%s %s %s\n", form, what, name);
        std::fclose(log);
    }
}

int tools_push(const char* name) {
    note("tool", "push", name);
    return depth++;
}
int tools_pop() {
    note("tool", "pop", "");
    return --depth;
}

// The layout of NVTX 3's header.
struct callbacks {
    std::size_t struct_size;
    int (*get_module_function_table)(int module, void**** table, unsigned* size);
};

}  // namespace

WEIR_FAKE_EXPORT int nvtxRangePushA(const char* name) {
    note("library", "push", name);
    return depth++;
}

WEIR_FAKE_EXPORT int nvtxRangePop() {
    note("library", "pop", "");
    return --depth;
}

WEIR_FAKE_EXPORT int InitializeInjectionNvtx2(const void* (*export_table)(std::uint32_t)) {
    constexpr std::uint32_t callbacks_id = 1;
    constexpr int core = 1;
    constexpr unsigned range_push_a = 9;
    constexpr unsigned range_pop = 11;
    const auto* const given = static_cast<const callbacks*>(export_table(callbacks_id));
    if (given == nullptr || given->struct_size < sizeof(callbacks)) {
        return 0;
    }
    void*** table = nullptr;
    unsigned size = 0;
    if (given->get_module_function_table(core, &table, &size) != 1 || size <= range_pop) {
        return 0;
    }
    *table[range_push_a] = reinterpret_cast<void*>(&tools_push);
    *table[range_pop] = reinterpret_cast<void*>(&tools_pop);
    return 1;
}
