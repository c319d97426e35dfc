// WEIR_CHECK=1 checks the whole process, from its start to its exit.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "base/setting.hpp"
#include "weir/check.hpp"

namespace weir::check {

namespace {

const check_scope* scope = nullptr;
pid_t watched = 0;

/// Prints in one call, so that the program's own output does not mix with it.
void print(const std::string& text) noexcept { std::fwrite(text.data(), 1, text.size(), stderr); }

void finish() {
    if (getpid() != watched) {
        return;  // a child of the checked process: the process itself writes the report
    }
    try {
        print(scope->report().to_string());
    } catch (const std::exception& failed) {
        print(std::string("weir check: the report is lost: ") + failed.what() + "\n");
    }
}

/// If checking cannot start, the process runs unchecked.
bool start() {
    const char* const wanted = detail::setting("WEIR_CHECK").value();
    const std::string_view how = wanted == nullptr ? "" : wanted;
    if (how.empty() || how == "0") {
        return false;
    }
    check_options options;
    if (how == "warn") {
        options.mode = check_mode::warn;
    } else if (how == "raise") {
        options.mode = check_mode::raise;
    } else if (how != "1" && how != "collect") {
        print("weir check: WEIR_CHECK=" + std::string(how) +
              ": nothing is checked; say 1 or collect (a report at the end), warn (and each race at once), raise (and "
              "each "
              "race as an exception)\n");
        return false;
    }
    try {
        // Never destroyed: threads may be at work until the very end.
        scope = new check_scope(options);  // NOLINT(cppcoreguidelines-owning-memory)
    } catch (const std::exception& failed) {
        print(std::string("weir check: WEIR_CHECK: nothing is checked: ") + failed.what() + "\n");
        return false;
    }
    watched = getpid();
    return std::atexit(finish) == 0;
}

}  // namespace

}  // namespace weir::check

// runtime/devices/devices.cpp refers to this variable, so that every program includes this file.
extern "C" {
extern const bool weir_check_environment;
const bool weir_check_environment = weir::check::start();
}
