#include "support/fake_cufft.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "fake_cuda/cufft_control.hpp"

namespace weir::test {

namespace {

template <class Function>
Function* control(const char* symbol) {
    const char* const file = std::getenv("WEIR_CUFFT_LIBRARY");
    void* const library = file != nullptr ? ::dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* const found = library != nullptr ? ::dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        throw std::runtime_error(std::string("WEIR_CUFFT_LIBRARY does not name the fake: it has no ") + symbol);
    }
    return reinterpret_cast<Function*>(found);
}

#define WEIR_CUFFT_CONTROL(name) (*control<decltype(name)>(#name))

}  // namespace

unsigned long long fake_cufft::calls(const char* name) { return WEIR_CUFFT_CONTROL(weir_fake_cufft_calls)(name); }
void fake_cufft::fail(const char* name, unsigned long long nth, int status) {
    WEIR_CUFFT_CONTROL(weir_fake_cufft_fail)(name, nth, status);
}
std::size_t fake_cufft::plans() { return WEIR_CUFFT_CONTROL(weir_fake_cufft_plans)(); }
void fake_cufft::set_workspace(std::size_t bytes) { WEIR_CUFFT_CONTROL(weir_fake_cufft_set_workspace)(bytes); }
unsigned long long fake_cufft::mistakes() { return WEIR_CUFFT_CONTROL(weir_fake_cufft_mistakes)(); }

}  // namespace weir::test
