#include "runtime/diagnostics/debug_log.hpp"

#include <cstdio>

#include "base/setting.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::runtime {

bool has_debug_log() noexcept {
    const detail::fork_section whole;
    static const bool wanted = [] {
        constexpr detail::setting log("WEIR_LOG");
        const char* const level = log.value();
        if (level != nullptr && std::string_view(level) != "debug") {
            log.refuse("nothing is logged; say debug");
            return false;
        }
        return level != nullptr;
    }();
    return wanted;
}

namespace {

// At static initialization, so that an invalid value is reported at the start, and not when there is something to log.
[[maybe_unused]] const bool wanted_at_start = has_debug_log();

}  // namespace

void debug_log(std::string_view line) noexcept {
    if (has_debug_log()) {
        // One call for each line, so that lines of several threads do not mix.
        std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(line.size()), line.data());
    }
}

}  // namespace weir::runtime
