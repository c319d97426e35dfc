#include "runtime/debug_log.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir::runtime {

void debug_log(std::string_view line) noexcept {
    static const bool wanted = [] {
        const char* const level = std::getenv("WEIR_LOG");
        return level != nullptr && std::string_view(level) == "debug";
    }();
    if (wanted) {
        // One call for one line, so that those of several threads do not mix.
        std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(line.size()), line.data());
    }
}

}  // namespace weir::runtime
