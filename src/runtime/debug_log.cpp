#include "runtime/debug_log.hpp"

#include <cstdio>
#include <cstdlib>
#include "weir/detail/fork_section.hpp"

namespace weir::runtime {

bool has_debug_log() noexcept {
    const detail::fork_section whole;
    static const bool wanted = [] {
        const char* const level = std::getenv("WEIR_LOG");
        return level != nullptr && std::string_view(level) == "debug";
    }();
    return wanted;
}

void debug_log(std::string_view line) noexcept {
    const detail::fork_section whole;
    if (has_debug_log()) {
        // One call for one line, so that those of several threads do not mix.
        std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(line.size()), line.data());
    }
}

}  // namespace weir::runtime
