#include "support/fake_pardiso.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "fake_mkl/pardiso_control.hpp"

namespace weir::test {

namespace {

constexpr const char* variable = "WEIR_PARDISO_LIBRARY";

void* pardiso_symbol(const char* symbol) {
    const char* const file = std::getenv(variable);
    void* const library = file != nullptr ? ::dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    return library != nullptr ? ::dlsym(library, symbol) : nullptr;
}

template <class Function>
Function* pardiso_control(const char* symbol) {
    void* const found = pardiso_symbol(symbol);
    if (found == nullptr) {
        throw std::runtime_error(std::string(variable) + " does not name the fake: it has no " + symbol);
    }
    return reinterpret_cast<Function*>(found);
}

#define WEIR_PARDISO_CONTROL(name) (*pardiso_control<decltype(name)>(#name))

}  // namespace

fake_pardiso::fake_pardiso() : has_set_it_(std::getenv(variable) == nullptr) {
    if (has_set_it_) {
        ::setenv(variable, WEIR_FAKE_PARDISO_FILE, 1);
    }
}

fake_pardiso::~fake_pardiso() {
    if (has_set_it_) {
        ::unsetenv(variable);
    }
}

bool fake_pardiso::in_use() { return pardiso_symbol("weir_fake_pardiso_phases") != nullptr; }

unsigned long long fake_pardiso::phases(int phase) { return WEIR_PARDISO_CONTROL(weir_fake_pardiso_phases)(phase); }
void fake_pardiso::fail(int phase, unsigned long long nth, int error) {
    WEIR_PARDISO_CONTROL(weir_fake_pardiso_fail)(phase, nth, error);
}
unsigned long long fake_pardiso::systems() { return WEIR_PARDISO_CONTROL(weir_fake_pardiso_systems)(); }
unsigned long long fake_pardiso::mistakes() { return WEIR_PARDISO_CONTROL(weir_fake_pardiso_mistakes)(); }

}  // namespace weir::test
