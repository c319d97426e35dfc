#include "calls/shared_library.hpp"

#include <dlfcn.h>

#include "weir/error.hpp"

namespace weir::calls {

namespace {

std::string last_error() {
    const char* text = ::dlerror();
    return text != nullptr ? text : "unknown error";
}

}  // namespace

shared_library::shared_library(const name& which) : file_(which.file), package_(which.package) {
    const char* const other = which.variable.value();
    if (other != nullptr) {
        file_ = other;
    }
    handle_ = ::dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
        return;
    }
    const std::string variable = which.variable.name();
    throw missing_library("cannot open " + file_ + (other != nullptr ? ", which " + variable + " names" : "") + " (" +
                          last_error() + "): install the package " + package_ +
                          " (Debian, Ubuntu), or name a library with the same interface in " + variable);
}

void* shared_library::try_find(const char* symbol) const noexcept { return ::dlsym(handle_, symbol); }

void* shared_library::address_of(const char* symbol) const {
    if (void* address = try_find(symbol)) {
        return address;
    }
    throw missing_library(file_ + " has no function " + symbol + ": it is not what the package " + package_ +
                          " (Debian, Ubuntu) has");
}

}  // namespace weir::calls
