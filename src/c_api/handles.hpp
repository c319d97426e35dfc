// What the handles of weir.h point to.
#pragma once

#include <string>

#include "weir.h"
#include "weir/buffer.hpp"
#include "weir/detail/site.hpp"
#include "weir/device.hpp"
#include "weir/event.hpp"
#include "weir/on.hpp"
#include "weir/stream.hpp"
#include "weir/token.hpp"

struct weir_device {
    weir::device value;
    std::string name;
};
struct weir_stream {
    weir::stream value;
};
struct weir_event {
    weir::event value;
};
struct weir_buffer {
    weir::buffer value;
};
struct weir_token {
    weir::token value;
};

namespace weir::c_api {

/// A caller's object and how it is released. Once it is armed, that happens when this ends.
class released_context {
public:
    released_context(void (*release)(void*), void* context) noexcept : release_(release), context_(context) {}
    released_context(const released_context&) = delete;
    released_context& operator=(const released_context&) = delete;
    ~released_context() {
        if (is_armed_ && release_ != nullptr) {
            release_(context_);
        }
    }
    /// The call that was given it has succeeded. The caller that shares this object orders it before the end.
    void arm() noexcept { is_armed_ = true; }

private:
    void (*release_)(void*);
    void* context_;
    bool is_armed_ = false;
};

[[nodiscard]] inline runtime::site site_of(const weir_site* site) noexcept {
    if (site == nullptr) {
        return {};
    }
    const auto text = [](const char* given) { return given == nullptr ? "" : given; };
    return {site->label, {text(site->file), text(site->function), site->line}};
}

[[nodiscard]] inline source_location place_of(const weir_site* site) noexcept { return site_of(site).where; }

[[nodiscard]] inline on where_of(const weir_stream& stream, const weir_site* site) {
    return on(stream.value, place_of(site)).named(site_of(site).label, detail::key);
}

}  // namespace weir::c_api
