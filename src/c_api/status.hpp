// The folder c_api/ defines include/weir.h on the C++ interface. It is the topmost layer, may include every other but the command,
// and no exception leaves it: each function of it is one call of `guarded`.
#pragma once

#include <string>

#include "weir.h"
#include "weir/error.hpp"

namespace weir::c_api {

/// Keeps the message of the exception that is being handled for weir_last_error, and says which status it is.
[[nodiscard]] weir_status status_of_handled() noexcept;

/// What `act` comes to.
template <class Act>
[[nodiscard]] weir_status guarded(Act&& act) noexcept {
    try {
        act();
        return WEIR_OK;
    } catch (...) {
        return status_of_handled();
    }
}

/// What a pointer that the caller passed points to. Throws argument_error, which names the function and the parameter.
template <class T>
[[nodiscard]] T& expect(T* given, const char* function, const char* parameter) {
    if (given == nullptr) {
        throw argument_error(std::string(function) + " got null for `" + parameter + "`");
    }
    return *given;
}

/// Makes the result and stores it; until then it is null. `result`: where to, which may be null by mistake.
template <class T, class Make>
[[nodiscard]] weir_status make(T** result, const char* function, const char* parameter, Make&& make_it) noexcept {
    if (result != nullptr) {
        *result = nullptr;
    }
    return guarded([&] { expect(result, function, parameter) = make_it(); });
}

}  // namespace weir::c_api
