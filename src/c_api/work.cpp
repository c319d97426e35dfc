// Access scopes, host tasks and copies.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "c_api/handles.hpp"
#include "c_api/operands.hpp"
#include "c_api/status.hpp"
#include "weir/array.hpp"
#include "weir/borrow.hpp"
#include "weir/completion.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/task.hpp"
#include "weir/launch.hpp"
#include "weir/sharing.hpp"

namespace weir::c_api {

/// The place of an access scope in a stream that threads of the host run: an operation that lasts from begin to end.
class turn {
public:
    /// The stream got there. Blocks until `end`.
    void take() {
        std::unique_lock lock(mutex_);
        has_come_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return has_ended_; });
    }
    /// The operation is over, or will never run.
    void miss() noexcept {
        const std::lock_guard lock(mutex_);
        has_gone_ = true;
        changed_.notify_all();
    }
    /// Blocks until the stream is there. False: it will not get there, since something that the operation depends on failed.
    [[nodiscard]] bool await() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return has_come_ || has_gone_; });
        return has_come_;
    }
    void end() noexcept {
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
        changed_.notify_all();
    }

private:
    detail::mutex mutex_;  // guards what follows; a leaf in the lock order
    detail::condition_variable changed_;
    bool has_come_ = false;
    bool has_gone_ = false;
    bool has_ended_ = false;
};

namespace {

/// The operation. Its end, also without having run, is the end of the last copy that owns the guard.
class turn_task {
public:
    explicit turn_task(std::shared_ptr<turn> of)
        : of_(std::move(of)), guard_(of_.get(), [](turn* one) { one->miss(); }) {}
    void operator()() const { of_->take(); }

private:
    std::shared_ptr<turn> of_;
    std::shared_ptr<turn> guard_;
};

completion submit_task(const weir_stream& stream, const weir_site* site, std::span<const operand> operands,
                       runtime::work_kind kind, auto task) {
    const std::vector<runtime::access_request> accesses = accesses_of(operands);
    return detail::with_task(std::move(task), [&](detail::task_ref work) {
        return runtime::submit(stream.value.state(detail::key), {accesses, {}, work, site_of(site), kind});
    });
}

void expect_reachable(const std::vector<operand>& operands, const stream_ref& on) {
    for (const operand& one : operands) {
        if (one.memory && !one.memory.host_reachable(weir::detail::key)) {
            throw argument_error(
                "weir_access_begin: the streams of " + on.device().name() +
                " have no native handle, so that the calling thread does the work, and it cannot reach "
                "memory of " +
                one.memory.device().name() + ": use weir_copy, or a stream of that device");
        }
    }
}

struct host_call {
    weir_host_function function;
    void* context;
    std::shared_ptr<released_context> owner;
    std::vector<void*> pointers;

    void operator()() const {
        if (const int result = function(context, pointers.data()); result != 0) {
            throw std::runtime_error("the function of the host task returned " + std::to_string(result));
        }
    }
};

}  // namespace

}  // namespace weir::c_api

// NOLINTNEXTLINE(google-build-using-namespace,google-global-names-in-headers): what follows defines functions of C
using namespace weir::c_api;

struct weir_access {
    weir::stream on;
    weir::source_location where;
    std::vector<operand> operands;
    std::vector<void*> pointers;
    void* native = nullptr;
    std::vector<weir::live_export> shared;  ///< with a native stream
    std::shared_ptr<turn> place;            ///< with none, unless the device has no queues
};

namespace {

/// What others put into the native stream is behind what is declared here, and later uses are behind that.
void begin_on_device(weir_access& scope, const weir_stream& stream, const weir_site* site) {
    const auto by = std::make_shared<weir::exchange::stream_package>(scope.on);
    scope.shared.reserve(scope.operands.size());
    // Tied first: an operation that another thread enqueues meanwhile is found by the submission, or finds the tie.
    for (const operand& one : scope.operands) {
        const auto use =
            one.access.mode == weir::access_mode::read ? weir::package_use::reads : weir::package_use::writes;
        if (one.instead) {
            scope.shared.emplace_back(weir::detail::key, *one.instead, scope.on.device(), by, use);
        } else if (one.access.target != nullptr) {
            scope.shared.emplace_back(weir::detail::key, one.memory, one.access.where, one.memory.device(), by, use);
        }
    }
    submit_task(stream, site, scope.operands, weir::runtime::work_kind::device, weir::detail::foreign_task([] {}));
    scope.pointers = pointers_of(scope.operands, false);
    scope.native = scope.on.handle();  // once the submission is in the driver's queue
}

void begin_on_host(weir_access& scope, const weir_stream& stream, const weir_site* site) {
    expect_reachable(scope.operands, scope.on);
    scope.pointers = pointers_of(scope.operands, true);
    if (scope.on.device().kind() == weir::device_kind::cpu_inline) {
        // All that it must come after is over when this returns.
        submit_task(stream, site, scope.operands, weir::runtime::work_kind::host_task, [] {}).synchronize(scope.where);
        return;
    }
    const auto place = std::make_shared<turn>();
    const weir::completion over =
        submit_task(stream, site, scope.operands, weir::runtime::work_kind::host_task, turn_task(place));
    if (!place->await()) {
        over.synchronize(scope.where);  // throws why
    }
    scope.place = place;
}

}  // namespace

weir_status weir_access_begin(const weir_stream* stream, const weir_operand* operands, size_t count,
                              const weir_site* site, weir_access** access) {
    return make(access, __func__, "access", [&] {
        const weir_stream& on = expect(stream, "weir_access_begin", "stream");
        auto scope = std::make_unique<weir_access>(weir_access{
            on.value, place_of(site), checked_operands("weir_access_begin", operands, count), {}, {}, {}, {}});
        if (on.value.device().kind() == weir::device_kind::cuda) {
            begin_on_device(*scope, on, site);
        } else {
            begin_on_host(*scope, on, site);
        }
        return scope.release();
    });
}

void* weir_access_native(const weir_access* access) { return access == nullptr ? nullptr : access->native; }

void* weir_access_pointer(const weir_access* access, size_t number) {
    return access == nullptr || number >= access->pointers.size() ? nullptr : access->pointers[number];
}

weir_status weir_access_end(weir_access* access) {
    const std::unique_ptr<weir_access> scope(access);
    return guarded([&] {
        if (scope == nullptr) {
            return;
        }
        if (scope->place) {
            scope->place->end();
        }
        if (!scope->shared.empty()) {
            const weir::event used = scope->on.record(scope->where);
            for (weir::live_export& one : scope->shared) {
                one.used_on(used, true);
            }
        }
    });
}

weir_status weir_host_task(const weir_stream* stream, const weir_operand* operands, size_t count,
                           weir_host_function function, void* context, void (*release)(void* context),
                           const weir_site* site) {
    return guarded([&] {
        const char* const self = "weir_host_task";
        const weir_stream& on = expect(stream, self, "stream");
        if (function == nullptr) {
            throw weir::argument_error(std::string(self) + " got null for `function`");
        }
        const std::vector<operand> all = checked_operands(self, operands, count);
        const auto owner = std::make_shared<released_context>(release, context);
        submit_task(on, site, all, weir::runtime::work_kind::host_task,
                    host_call{function, context, owner, pointers_of(all, true)});
        owner->arm();
    });
}

weir_status weir_copy(const weir_stream* stream, weir_buffer* to, size_t to_offset, const weir_buffer* from,
                      size_t from_offset, size_t bytes, const weir_site* site) {
    return guarded([&] {
        const char* const self = "weir_copy";
        const weir_stream& on = expect(stream, self, "stream");
        weir::array target = bytes_of(self, expect(to, self, "to"), to_offset, bytes);
        const weir::array source = bytes_of(self, expect(from, self, "from"), from_offset, bytes);
        weir::copy(where_of(on, site), target, source);
    });
}

weir_status weir_write(const weir_stream* stream, weir_buffer* to, size_t offset, const void* from, size_t bytes,
                       const weir_site* site) {
    return guarded([&] {
        const char* const self = "weir_write";
        const weir_stream& on = expect(stream, self, "stream");
        weir::array target = bytes_of(self, expect(to, self, "to"), offset, bytes);
        if (bytes != 0) {
            const std::byte& source = expect(static_cast<const std::byte*>(from), self, "from");
            weir::copy_from_host(where_of(on, site), target, {&source, bytes});
        }
    });
}

weir_status weir_read(const weir_buffer* from, size_t offset, void* to, size_t bytes, const weir_site* site) {
    return guarded([&] {
        const char* const self = "weir_read";
        const weir::array source = bytes_of(self, expect(from, self, "from"), offset, bytes);
        if (bytes != 0) {
            std::byte& target = expect(static_cast<std::byte*>(to), self, "to");
            const auto seen = source.read<std::uint8_t>(place_of(site));
            std::memcpy(&target, seen.span().data(), bytes);
        }
    });
}
