#include "support/fake_cudss.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "fake_cuda/cudss_control.hpp"

namespace weir::test {

namespace {

template <class Function>
Function* cudss_control(const char* symbol) {
    const char* const file = std::getenv("WEIR_CUDSS_LIBRARY");
    void* const library = file != nullptr ? ::dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* const found = library != nullptr ? ::dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        throw std::runtime_error(std::string("WEIR_CUDSS_LIBRARY does not name the fake: it has no ") + symbol);
    }
    return reinterpret_cast<Function*>(found);
}

#define WEIR_CUDSS_CONTROL(name) (*cudss_control<decltype(name)>(#name))

}  // namespace

unsigned long long fake_cudss::calls(const char* name) { return WEIR_CUDSS_CONTROL(weir_fake_cudss_calls)(name); }
unsigned long long fake_cudss::phases(int phase) { return WEIR_CUDSS_CONTROL(weir_fake_cudss_phases)(phase); }
void fake_cudss::fail(const char* name, unsigned long long nth, int status) {
    WEIR_CUDSS_CONTROL(weir_fake_cudss_fail)(name, nth, status);
}
std::size_t fake_cudss::objects() { return WEIR_CUDSS_CONTROL(weir_fake_cudss_objects)(); }
unsigned long long fake_cudss::mistakes() { return WEIR_CUDSS_CONTROL(weir_fake_cudss_mistakes)(); }

}  // namespace weir::test
