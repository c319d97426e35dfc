// WEIR_TRACE=FILE traces the whole process, from its start to its exit.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "base/setting.hpp"
#include "weir/trace.hpp"

namespace weir::trace {

namespace {

trace_scope* scope = nullptr;
pid_t traced = 0;

void finish() {
    if (getpid() != traced) {
        return;  // a child of the traced process: the process itself writes the file
    }
    try {
        scope->close();
    } catch (const std::exception& failed) {
        std::cerr << "weir trace: " << failed.what() << '\n';
    }
}

/// If tracing cannot start, the process runs untraced.
bool start() {
    const char* const file = detail::setting("WEIR_TRACE").value();
    if (file == nullptr) {
        return false;
    }
    try {
        // Never destroyed: threads may be at work until the very end.
        scope = new trace_scope(file);  // NOLINT(cppcoreguidelines-owning-memory)
    } catch (const std::exception& failed) {
        std::cerr << "weir trace: WEIR_TRACE: " << failed.what() << '\n';
        return false;
    }
    traced = getpid();
    return std::atexit(finish) == 0;
}

}  // namespace

}  // namespace weir::trace

// runtime/devices/devices.cpp refers to this variable, so that every program includes this file.
extern "C" {
extern const bool weir_trace_environment;
const bool weir_trace_environment = weir::trace::start();
}
