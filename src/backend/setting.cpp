#include "backend/setting.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir::backend {

const char* setting::value() const noexcept {
    const char* const said = std::getenv(name_);
    return said != nullptr && *said != '\0' ? said : nullptr;
}

void setting::refuse(const char* why) const noexcept {
    const char* const said = value();
    // One call for one line, so that those of several threads do not mix.
    std::fprintf(stderr, "weir: %s=%s: %s\n", name_, said != nullptr ? said : "", why);
}

}  // namespace weir::backend
