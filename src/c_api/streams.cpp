// Devices, streams and events.
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "array/kernel_signature.hpp"
#include "c_api/handles.hpp"
#include "c_api/status.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/dtype.hpp"

namespace weir::c_api {

namespace {

/// The one handle of a device. Lives for ever.
weir_device* handle_of(const device& opened) {
    static auto& known = *new std::vector<std::unique_ptr<weir_device>>;  // NOLINT(cppcoreguidelines-owning-memory)
    static detail::mutex mutex;                                           // guards known; a leaf in the lock order
    const std::lock_guard lock(mutex);
    for (const std::unique_ptr<weir_device>& one : known) {
        if (one->value == opened) {
            return one.get();
        }
    }
    known.push_back(std::make_unique<weir_device>(weir_device{opened, opened.name()}));
    return known.back().get();
}

void expect_flags(const char* function, unsigned given, unsigned all) {
    if ((given & ~all) != 0) {
        throw argument_error(std::string(function) + " got the flags " + std::to_string(given) +
                             ", of which this version does not know some");
    }
}

/// The element type with this name.
dtype type_named(const char* name, const char* function) {
    const std::optional<dtype> found = kernels::type_named(&expect(name, function, "types"));
    if (!found) {
        throw argument_error(std::string(function) + " got the type \"" + name +
                             "\", which is not known: take a number type of NumPy, such as \"float32\", or of C++");
    }
    return *found;
}

}  // namespace

}  // namespace weir::c_api

// NOLINTNEXTLINE(google-build-using-namespace,google-global-names-in-headers): what follows defines functions of C
using namespace weir::c_api;

weir_status weir_device_open(const char* name, weir_device** device) {
    return make(device, __func__, "device",
                [&] { return handle_of(weir::device::from_name(&expect(name, "weir_device_open", "name"))); });
}

const char* weir_device_name(const weir_device* device) { return device == nullptr ? nullptr : device->name.c_str(); }

weir_status weir_device_synchronize(const weir_device* device) {
    return guarded([&] { expect(device, "weir_device_synchronize", "device").value.synchronize({}); });
}

weir_status weir_device_prepare(const weir_device* device, const char* const* types, size_t count) {
    return guarded([&] {
        const char* const self = "weir_device_prepare";
        const weir::device& on = expect(device, self, "device").value;
        std::vector<weir::dtype> all;
        for (std::size_t k = 0; k < count; ++k) {
            all.push_back(type_named((&expect(types, self, "types"))[k], self));
        }
        on.prepare(all);
    });
}

weir_status weir_stream_create(const weir_device* device, const char* name, int priority, unsigned flags,
                               weir_stream** stream) {
    return make(stream, __func__, "stream", [&] {
        const char* const self = "weir_stream_create";
        const weir::device& on = expect(device, self, "device").value;
        expect_flags(self, flags, WEIR_STREAM_BLOCKING);
        return new weir_stream{weir::stream(on, {.priority = priority,
                                                 .name = name == nullptr ? std::string() : std::string(name),
                                                 .blocking = (flags & WEIR_STREAM_BLOCKING) != 0})};
    });
}

weir_status weir_stream_adopt(const weir_device* device, void* native, void (*release)(void* context), void* context,
                              weir_stream** stream) {
    return make(stream, __func__, "stream", [&] {
        const weir::device& on = expect(device, "weir_stream_adopt", "device").value;
        const auto owner = std::make_shared<released_context>(release, context);
        auto made =
            std::make_unique<weir_stream>(weir_stream{weir::stream::adopt(weir::native_stream{native}, on, owner)});
        owner->arm();
        return made.release();
    });
}

weir_status weir_stream_current(const weir_device* device, weir_stream** stream) {
    return make(stream, __func__, "stream", [&] {
        return new weir_stream{weir::current_stream(expect(device, "weir_stream_current", "device").value)};
    });
}

void weir_stream_drop(weir_stream* stream) { delete stream; }  // NOLINT(cppcoreguidelines-owning-memory): C owns it

weir_status weir_stream_close(weir_stream* stream) {
    return guarded([&] { expect(stream, "weir_stream_close", "stream").value.close(); });
}

weir_status weir_stream_synchronize(const weir_stream* stream) {
    return guarded([&] { expect(stream, "weir_stream_synchronize", "stream").value.synchronize({}); });
}

weir_status weir_stream_done(const weir_stream* stream, int* done) {
    return guarded([&] {
        int& result = expect(done, "weir_stream_done", "done");
        result = 0;
        result = expect(stream, "weir_stream_done", "stream").value.done({}) ? 1 : 0;
    });
}

weir_status weir_stream_wait(const weir_stream* stream, const weir_stream* other, const weir_site* site) {
    return guarded([&] {
        const weir::stream& waits = expect(stream, "weir_stream_wait", "stream").value;
        waits.wait(expect(other, "weir_stream_wait", "other").value, place_of(site));
    });
}

weir_status weir_stream_native(const weir_stream* stream, void** native) {
    return make(native, __func__, "native",
                [&] { return expect(stream, "weir_stream_native", "stream").value.handle(); });
}

weir_status weir_event_create(unsigned flags, weir_event** event) {
    return make(event, __func__, "event", [&] {
        expect_flags("weir_event_create", flags, WEIR_EVENT_TIMING);
        return new weir_event{weir::event(weir::event_options{.timing = (flags & WEIR_EVENT_TIMING) != 0})};
    });
}

void weir_event_drop(weir_event* event) { delete event; }  // NOLINT(cppcoreguidelines-owning-memory): C owns it

weir_status weir_event_record(weir_event* event, const weir_stream* stream, const weir_site* site) {
    return guarded([&] {
        weir::event& records = expect(event, "weir_event_record", "event").value;
        records.record(expect(stream, "weir_event_record", "stream").value, place_of(site));
    });
}

weir_status weir_event_wait(const weir_event* event, const weir_stream* stream, const weir_site* site) {
    return guarded([&] {
        const weir::event& awaited = expect(event, "weir_event_wait", "event").value;
        awaited.wait(expect(stream, "weir_event_wait", "stream").value, place_of(site));
    });
}

weir_status weir_event_synchronize(const weir_event* event) {
    return guarded([&] { expect(event, "weir_event_synchronize", "event").value.synchronize({}); });
}

weir_status weir_event_done(const weir_event* event, int* done) {
    return guarded([&] {
        int& result = expect(done, "weir_event_done", "done");
        result = 0;
        result = expect(event, "weir_event_done", "event").value.done({}) ? 1 : 0;
    });
}

weir_status weir_event_native(const weir_event* event, void** native) {
    return make(native, __func__, "native", [&] { return expect(event, "weir_event_native", "event").value.handle(); });
}

weir_status weir_event_elapsed(const weir_event* begin, const weir_event* end, double* milliseconds) {
    return guarded([&] {
        double& result = expect(milliseconds, "weir_event_elapsed", "milliseconds");
        result = 0;
        const weir::event& from = expect(begin, "weir_event_elapsed", "begin").value;
        result = from.elapsed_ms(expect(end, "weir_event_elapsed", "end").value);
    });
}
