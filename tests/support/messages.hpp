// The message of an exception.
#pragma once

#include <string>

namespace weir::test {

/// The message of the error that `call` must throw.
template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace weir::test
