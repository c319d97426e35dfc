// weir.torch: what the hooks in torch report (weir/_torch_hooks/hooks.h) goes on to the process's observers.
#include <Python.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../weir/_torch_hooks/hooks.h"
#include "bind.hpp"
#include "site.hpp"
#include "torch_accesses.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/watched_program.hpp"

namespace weir::python {

namespace {

using weir::detail::watched_program;
using weir::detail::watched_stream;

/// The program that is watched, while it is. Hooks of other threads may report when it ends.
class watched {
public:
    static void begin() {
        const std::lock_guard lock(mutex_);
        if (watchers_++ == 0) {
            program_ = new watched_program("torch", "cuda");
        }
    }
    static void end() {
        const std::lock_guard lock(mutex_);
        if (lost_.exchange(false) && program_ != nullptr) {
            program_->unseen("operators of torch for which there was not enough memory");
        }
        if (--watchers_ == 0) {
            delete program_;
            program_ = nullptr;
        }
    }
    /// Calls `tell(program)`. If there is not enough memory for that, the report says so.
    template <class Tell>
    static void tell(Tell&& tell) noexcept {
        try {
            const std::lock_guard lock(mutex_);
            if (program_ != nullptr) {
                tell(*program_);
            }
        } catch (const std::bad_alloc&) {
            lost_ = true;
        }
    }

private:
    static inline weir::detail::mutex mutex_;  ///< guards all, and is held while the program reports
    static inline watched_program* program_ = nullptr;
    static inline int watchers_ = 0;
    static inline std::atomic<bool> lost_{false};
};

/// The line of the Python program that the calling thread runs. The hooks run without the GIL, mostly. Not under the lock of `watched`,
/// which a thread that has the GIL may wait for.
weir_torch_place place() noexcept {
    if (PyGILState_GetThisThreadState() == nullptr) {
        return {"", "", 0};  // a thread that has never run Python, such as one of torch's
    }
    const PyGILState_STATE held = PyGILState_Ensure();
    const source_location where = here();
    PyGILState_Release(held);
    return {where.file, where.function, where.line};
}

watched_stream stream(weir_torch_stream of) noexcept { return {of.device, of.handle}; }

source_location location(weir_torch_place where) noexcept { return {where.file, where.function, where.line}; }

void operation(const char* name, weir_torch_stream on, const weir_torch_access* accesses, std::size_t count,
               weir_torch_place where) {
    watched::tell([&](watched_program& to) {
        to.operation(stream(on), name, accesses_of(to, std::span(accesses, count)), location(where));
    });
}
void host_access(const weir_torch_access* what, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.host_access(access_of(to, *what), location(where)); });
}
void allocated(std::uint64_t address, weir_torch_stream on, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.allocated(address, stream(on), location(where)); });
}
void freed(std::uint64_t address) {
    watched::tell([&](watched_program& to) { to.freed(address); });
}
void kept_until(std::uint64_t storage, weir_torch_stream on) {
    watched::tell([&](watched_program& to) { to.kept_until(storage, stream(on)); });
}
void event_recorded(std::uint64_t event, weir_torch_stream on, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.event_recorded(event, stream(on), location(where)); });
}
void event_gone(std::uint64_t event) {
    watched::tell([&](watched_program& to) { to.event_gone(event); });
}
void stream_waits(std::uint64_t event, weir_torch_stream on, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.stream_waits(stream(on), event, location(where)); });
}
void event_synchronized(std::uint64_t event, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.host_waited_for_event(event, location(where)); });
}
void stream_synchronized(weir_torch_stream one, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.host_waited_for_stream(stream(one), location(where)); });
}
void device_synchronized(std::int32_t device, weir_torch_place where) {
    watched::tell([&](watched_program& to) { to.host_waited_for_device(device, location(where)); });
}
void unseen(const char* what) {
    watched::tell([&](watched_program& to) { to.unseen(what); });
}

void leave_out_all(const std::vector<std::string>& folders) {
    for (const std::string& one : folders) {
        leave_out(one);
    }
}

constexpr weir_torch_calls calls{place,        operation,          host_access,         allocated,
                                 freed,        kept_until,         event_recorded,      event_gone,
                                 stream_waits, event_synchronized, stream_synchronized, device_synchronized,
                                 unseen};

}  // namespace

void bind_torch_watch(nb::module_& m) {
    m.def(
        "_torch_calls", [] { return reinterpret_cast<std::uintptr_t>(&calls); },
        "The address of what the hooks in torch call (weir/_torch_hooks/hooks.h).");
    m.def(
        "_torch_begin",
        [](const std::vector<std::string>& folders) {
            leave_out_all(folders);
            watched::begin();
        },
        nb::arg("folders"),
        "Begins to pass on what the hooks report. Lines of files in the folders are not the program's.");
    m.def("_torch_leave_out", leave_out_all, nb::arg("folders"), "Nor are lines of files in these.");
    m.def(
        "_torch_end", [] { watched::end(); }, "Ends it.");
    m.def(
        "_torch_unseen", [](std::string_view what) { watched::tell([&](watched_program& to) { to.unseen(what); }); },
        nb::arg("what"), "Adds to what a report says was not seen.");
}

}  // namespace weir::python
