#include "support/fake_cuda.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "fake_cuda/control.hpp"
#include "fake_cuda/nvrtc_control.hpp"

namespace weir::test {

namespace {

/// Runs before the program's initialisers, which may open the driver.
__attribute__((constructor(101))) void name_the_libraries() {
    // Tests count compilations and loaded modules; those of what a device loads when it is opened call device::prepare.
    ::setenv("WEIR_PREPARE", "0", 0);
    if (::getenv("WEIR_CUDA_DRIVER") != nullptr) {
        return;  // a real one
    }
    ::setenv("WEIR_CUDA_DRIVER", WEIR_FAKE_CUDA_FILE, 1);
    ::setenv("WEIR_NVRTC_LIBRARY", WEIR_FAKE_NVRTC_FILE, 1);
    ::setenv("WEIR_CUFFT_LIBRARY", WEIR_FAKE_CUFFT_FILE, 1);
    const char* const cudss = ::getenv("WEIR_CUDSS_LIBRARY");
    if (cudss == nullptr || std::strcmp(cudss, "none") != 0) {  // none: the fake cuSOLVER solves
        ::setenv("WEIR_CUDSS_LIBRARY", WEIR_FAKE_CUDSS_FILE, 1);
    }
    ::setenv("WEIR_CUSOLVER_LIBRARY", WEIR_FAKE_CUSOLVER_FILE, 1);
    ::setenv("WEIR_CUBLASLT_LIBRARY", WEIR_FAKE_CUBLASLT_FILE, 1);
    // Kernels that the fake compiles are useful only to tests, and only while the fake stays the same.
    struct stat about {};
    if (::stat(WEIR_FAKE_NVRTC_FILE, &about) == 0) {
        char folder[sizeof WEIR_FAKE_CACHE + 64];
        std::snprintf(folder, sizeof folder, "%s/%lld-%ld%s", WEIR_FAKE_CACHE,
                      static_cast<long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec,
                      ::getenv("WEIR_REAL_NVRTC") != nullptr ? "-by-nvrtc" : "");
        ::setenv("WEIR_CACHE_DIR", folder, 1);
    }
}

/// Null if the variable names no library, or one without the symbol.
void* find(const char* variable, const char* symbol) {
    const char* const file = std::getenv(variable);
    void* const library = file != nullptr ? ::dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    return library != nullptr ? ::dlsym(library, symbol) : nullptr;
}

template <class Function>
Function* control(const char* variable, const char* symbol) {
    void* const found = find(variable, symbol);
    if (found == nullptr) {
        throw std::runtime_error(std::string(variable) + " does not name the fake: it has no " + symbol);
    }
    return reinterpret_cast<Function*>(found);
}

#define WEIR_DRIVER_CONTROL(name) (*control<decltype(name)>("WEIR_CUDA_DRIVER", #name))
#define WEIR_NVRTC_CONTROL(name) (*control<decltype(name)>("WEIR_NVRTC_LIBRARY", #name))

}  // namespace

bool fake_cuda::in_use() { return find("WEIR_CUDA_DRIVER", "weir_fake_calls") != nullptr; }

unsigned long long fake_cuda::calls(const char* name) { return WEIR_DRIVER_CONTROL(weir_fake_calls)(name); }
unsigned long long fake_cuda::own_calls(const char* name) { return WEIR_DRIVER_CONTROL(weir_fake_own_calls)(name); }
std::vector<std::string> fake_cuda::called() {
    std::vector<std::string> names;
    while (const char* const one = WEIR_DRIVER_CONTROL(weir_fake_called)(names.size())) {
        names.emplace_back(one);
    }
    return names;
}
void fake_cuda::forget_calls() { WEIR_DRIVER_CONTROL(weir_fake_forget_calls)(); }
void fake_cuda::fail(const char* name, unsigned long long nth, int error, bool for_good) {
    WEIR_DRIVER_CONTROL(weir_fake_fail)(name, nth, error, for_good ? 1 : 0);
}
void fake_cuda::fail_own(const char* name, int error) { WEIR_DRIVER_CONTROL(weir_fake_fail_own)(name, error); }
void fake_cuda::break_at(const char* name, unsigned long long nth, int error) {
    WEIR_DRIVER_CONTROL(weir_fake_break_at)(name, nth, error);
}
void fake_cuda::fail_no_more() { WEIR_DRIVER_CONTROL(weir_fake_fail_no_more)(); }
std::size_t fake_cuda::live(fake_thing what) { return WEIR_DRIVER_CONTROL(weir_fake_live)(static_cast<int>(what)); }
std::size_t fake_cuda::bytes_in_use(int device) { return WEIR_DRIVER_CONTROL(weir_fake_bytes_in_use)(device); }
void fake_cuda::set_total_memory(std::size_t bytes) { WEIR_DRIVER_CONTROL(weir_fake_set_total_memory)(bytes); }
void fake_cuda::stop(const char* name) { WEIR_DRIVER_CONTROL(weir_fake_stop)(name); }
void fake_cuda::stop_any(const char* name) { WEIR_DRIVER_CONTROL(weir_fake_stop_any)(name); }
void fake_cuda::go_on(const char* next) { WEIR_DRIVER_CONTROL(weir_fake_go_on)(next); }
bool fake_cuda::is_stopped() { return WEIR_DRIVER_CONTROL(weir_fake_is_stopped)() != 0; }
fake_cuda::ignoring_handles::ignoring_handles() { WEIR_DRIVER_CONTROL(weir_fake_ignore_handles)(1); }
fake_cuda::ignoring_handles::~ignoring_handles() { WEIR_DRIVER_CONTROL(weir_fake_ignore_handles)(0); }
fake_cuda::waiting_loads::waiting_loads() { WEIR_DRIVER_CONTROL(weir_fake_loading_waits)(1); }
fake_cuda::waiting_loads::~waiting_loads() { WEIR_DRIVER_CONTROL(weir_fake_loading_waits)(0); }
std::size_t fake_cuda::waiting_loads::now() { return WEIR_DRIVER_CONTROL(weir_fake_waiting_loads)(); }
std::array<unsigned, 4> fake_cuda::last_special_launch() {
    std::array<unsigned, 4> four{};
    WEIR_DRIVER_CONTROL(weir_fake_last_special_launch)(four.data());
    return four;
}
void fake_cuda::set_attribute(int which, int value) { WEIR_DRIVER_CONTROL(weir_fake_set_attribute)(which, value); }
unsigned long long fake_cuda::hold(const void* stream) {
    const unsigned long long id = WEIR_DRIVER_CONTROL(weir_fake_hold)(const_cast<void*>(stream));
    if (id == 0) {
        throw std::runtime_error("the fake driver has no such stream");
    }
    return id;
}
void fake_cuda::open(unsigned long long id) { WEIR_DRIVER_CONTROL(weir_fake_open)(id); }
void fake_cuda::hold_all() { WEIR_DRIVER_CONTROL(weir_fake_hold_all)(); }
void fake_cuda::open_all() { WEIR_DRIVER_CONTROL(weir_fake_open_all)(); }
std::size_t fake_cuda::pending(const void* stream) {
    return WEIR_DRIVER_CONTROL(weir_fake_pending)(const_cast<void*>(stream));
}
void fake_cuda::settle(const void* stream) { WEIR_DRIVER_CONTROL(weir_fake_settle)(const_cast<void*>(stream)); }
void fake_cuda::break_contexts(int error) { WEIR_DRIVER_CONTROL(weir_fake_break)(error); }
void fake_cuda::heal_contexts() { WEIR_DRIVER_CONTROL(weir_fake_heal)(); }
unsigned long long fake_cuda::compilations() { return WEIR_NVRTC_CONTROL(weir_fake_nvrtc_compilations)(); }
void fake_cuda::fail_next_compilation(int error) { WEIR_NVRTC_CONTROL(weir_fake_nvrtc_fail)(error); }

}  // namespace weir::test
