// Reports each device-side wait that is issued, and why. Layer: trace.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weir/export.hpp"

namespace weir {

namespace trace {
class wait_teller;
}

/// While it lives, reports each device-side wait that the process issues between streams in one line: which operation waits for which, on
/// which streams, and why (rule V2):
///
///     "square" (main.cpp:13) on the stream "compute" of cpu waits for "fill" (main.cpp:11) on the stream "load" of cpu:
///     it reads bytes [0, 4000) of memory #2, which that writes
///
/// (without the line break). `sink` gets the line on the thread whose call issued the wait, when that call returns, under no lock of
/// Weir's, in the order of the calls. It may use Weir, and must not throw. Costs nothing while there is no wait_log.
///
/// \code
/// weir::wait_log log([](const std::string& line) { std::clog << line << '\n'; });
/// \endcode
class WEIR_EXPORT wait_log {
public:
    /// Starts. Throws argument_error (an empty function), state_error (too many scopes are active), std::bad_alloc.
    [[nodiscard]] explicit wait_log(std::function<void(const std::string&)> sink);
    /// Stops.
    ~wait_log();
    wait_log(const wait_log&) = delete;
    wait_log& operator=(const wait_log&) = delete;

private:
    std::unique_ptr<trace::wait_teller> teller_;
};

}  // namespace weir
