// Buffers and tokens.
#include <memory>
#include <string>

#include "c_api/handles.hpp"
#include "c_api/status.hpp"
#include "weir/source_location.hpp"

namespace weir::c_api {

namespace {

/// What buffer::wrap keeps until the memory is let go of.
struct memory_owner {
    void (*release)(void*);
    void* context;
    void operator()() const {
        if (release != nullptr) {
            release(context);
        }
    }
};

}  // namespace

}  // namespace weir::c_api

// NOLINTNEXTLINE(google-build-using-namespace,google-global-names-in-headers): what follows defines functions of C
using namespace weir::c_api;

weir_status weir_buffer_allocate(const weir_stream* stream, size_t bytes, const weir_site* site, weir_buffer** buffer) {
    return make(buffer, __func__, "buffer", [&] {
        return new weir_buffer{
            weir::buffer(bytes, expect(stream, "weir_buffer_allocate", "stream").value, place_of(site))};
    });
}

weir_status weir_buffer_wrap(const weir_device* device, void* pointer, size_t bytes, void (*release)(void* context),
                             void* context, const weir_site* site, weir_buffer** buffer) {
    return make(buffer, __func__, "buffer", [&] {
        const weir::device& on = expect(device, "weir_buffer_wrap", "device").value;
        auto made = std::make_unique<weir_buffer>();  // first, so that nothing can fail once the memory is lent
        made->value = weir::buffer::wrap(pointer, bytes, on, memory_owner{release, context}, place_of(site));
        return made.release();
    });
}

void weir_buffer_drop(weir_buffer* buffer) { delete buffer; }  // NOLINT(cppcoreguidelines-owning-memory): C owns it

void* weir_buffer_pointer(const weir_buffer* buffer) {
    return buffer == nullptr ? nullptr : buffer->value.device_data();
}

size_t weir_buffer_bytes(const weir_buffer* buffer) { return buffer == nullptr ? 0 : buffer->value.bytes(); }

weir_status weir_buffer_ready(const weir_buffer* buffer, int to_write, int* ready) {
    return guarded([&] {
        int& result = expect(ready, "weir_buffer_ready", "ready");
        result = 0;
        result = expect(buffer, "weir_buffer_ready", "buffer").value.ready(to_write != 0) ? 1 : 0;
    });
}

weir_status weir_token_create(const char* name, weir_token** token) {
    return make(token, __func__, "token", [&] {
        return new weir_token{
            weir::token(name == nullptr ? std::string() : std::string(name), weir::source_location{})};
    });
}

void weir_token_drop(weir_token* token) { delete token; }  // NOLINT(cppcoreguidelines-owning-memory): C owns it
