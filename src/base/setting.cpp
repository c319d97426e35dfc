#include "base/setting.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir::detail {

const char* setting::value() const noexcept {
    const char* const said = std::getenv(name_);
    return said != nullptr && *said != '\0' ? said : nullptr;
}

void setting::refuse(const char* why) const noexcept {
    const char* const said = value();
    // One call for each line, so that lines of several threads do not mix.
    std::fprintf(stderr, "weir: %s=%s: %s\n", name_, said != nullptr ? said : "", why);
}

}  // namespace weir::detail
