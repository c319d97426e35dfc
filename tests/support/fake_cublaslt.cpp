#include "support/fake_cublaslt.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "fake_cuda/cublaslt_control.hpp"

namespace weir::test {

namespace {

template <class Function>
Function* cublaslt_control(const char* symbol) {
    const char* const file = std::getenv("WEIR_CUBLASLT_LIBRARY");
    void* const library = file != nullptr ? ::dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* const found = library != nullptr ? ::dlsym(library, symbol) : nullptr;
    if (found == nullptr) {
        throw std::runtime_error(std::string("WEIR_CUBLASLT_LIBRARY does not name the fake: it has no ") + symbol);
    }
    return reinterpret_cast<Function*>(found);
}

#define WEIR_CUBLASLT_CONTROL(name) (*cublaslt_control<decltype(name)>(#name))

}  // namespace

unsigned long long fake_cublaslt::calls(const char* name) {
    return WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_calls)(name);
}
void fake_cublaslt::fail(const char* name, unsigned long long nth, int status) {
    WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_fail)(name, nth, status);
}
std::size_t fake_cublaslt::objects() { return WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_objects)(); }
void fake_cublaslt::set_workspace(std::size_t bytes) { WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_set_workspace)(bytes); }
void fake_cublaslt::set_fastest(int algorithm) { WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_set_fastest)(algorithm); }
int fake_cublaslt::last_algorithm() { return WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_last_algorithm)(); }
unsigned fake_cublaslt::last_epilogue() { return WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_last_epilogue)(); }
unsigned long long fake_cublaslt::mistakes() { return WEIR_CUBLASLT_CONTROL(weir_fake_cublaslt_mistakes)(); }

}  // namespace weir::test
