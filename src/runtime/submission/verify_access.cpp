#include "runtime/submission/verify_access.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "base/setting.hpp"
#include "order/box.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/submission/slow_path.hpp"
#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/task.hpp"

namespace weir::runtime {

namespace {

std::atomic<verify_access::place (*)(const resource&) noexcept> memory_finder{nullptr};

const bool begun_by_environment = [] {
    const detail::setting variable("WEIR_VERIFY_ACCESS");
    const char* const value = variable.value();
    if (value == nullptr || std::string_view(value) == "0") {
        return false;
    }
    if (std::string_view(value) != "1") {
        variable.refuse("say 1 to have operations held to what they declare, or 0");
        return false;
    }
    observe::slow_path_reasons::begin(observe::slow_path_reasons::verifier);
    return true;
}();

/// A callable, taken from a submission, which destroys it.
class moved_task {
public:
    explicit moved_task(const detail::task_ref& from)
        : type_(from.type), object_(::operator new (from.type->size, std::align_val_t{from.type->align})) {
        type_->move(from.object, object_);
    }
    moved_task(moved_task&& other) noexcept : type_(other.type_), object_(std::exchange(other.object_, nullptr)) {}
    moved_task(const moved_task&) = delete;
    moved_task& operator=(const moved_task&) = delete;
    moved_task& operator=(moved_task&&) = delete;
    ~moved_task() {
        if (object_ != nullptr) {
            type_->destroy(object_);
            ::operator delete (object_, std::align_val_t{type_->align});
        }
    }
    void run() { type_->run(object_); }

private:
    const detail::task_type* type_;
    void* object_;
};

/// One access that is verified.
struct watched {
    std::byte* begin = nullptr;  ///< of the resource
    std::uint64_t resource = 0;
    std::size_t number = 0;  ///< of the operation's accesses
    order::footprint where;
};

/// Bytes for one checksum: a report names the changed bytes to this precision.
constexpr std::uint64_t chunk = 256;

/// Of the bytes from `begin` on: any change of one byte changes it.
std::uint64_t checksum(const std::byte* begin, std::uint64_t bytes) noexcept {
    std::uint64_t sum = 0xcbf29ce484222325U;  // FNV-1a
    for (std::uint64_t i = 0; i < bytes; ++i) {
        sum = (sum ^ std::to_integer<std::uint64_t>(begin[i])) * 0x100000001b3U;
    }
    return sum;
}

/// Calls `visit(first, count)` for the chunks of a footprint, until it answers false.
template <class Visit>
void for_each_chunk(const order::footprint& where, Visit&& visit) {
    order::for_each_run(where, [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t done = 0; done < count; done += chunk) {
            if (!visit(first + done, std::min(chunk, count - done))) {
                return false;
            }
        }
        return true;
    });
}

[[noreturn]] void refuse(const site& of, const watched& one, std::uint64_t first, std::uint64_t count) {
    const std::string label = of.label == nullptr ? "operation" : of.label;
    throw std::logic_error("\"" + label + "\" (" + of.where.file + ":" + std::to_string(of.where.line) +
                           ") declares that it only reads operand " + std::to_string(one.number + 1) +
                           ", and has changed bytes within [" + std::to_string(first) + ", " +
                           std::to_string(first + count) + ") of memory #" + std::to_string(one.resource) +
                           ": declare the operand with inout, or with out if all of it is written "
                           "(WEIR_VERIFY_ACCESS)");
}

/// The operation with its checks.
class verified_task {
public:
    verified_task(const submission& what, std::vector<watched> only_read, std::vector<watched> only_written)
        : task_(what.work), site_(what.from), read_(std::move(only_read)), written_(std::move(only_written)) {
        std::size_t chunks = 0;
        for (const watched& one : read_) {
            for_each_chunk(one.where, [&](std::uint64_t, std::uint64_t) { return ++chunks != 0; });
        }
        sums_.reserve(chunks);
    }

    void operator()() {
        for (const watched& one : written_) {
            order::for_each_run(one.where, [&](std::uint64_t first, std::uint64_t count) {
                std::memset(one.begin + first, 0xFF, count);  // NaN, -1
                return true;
            });
        }
        sums_.clear();
        for (const watched& one : read_) {
            for_each_chunk(one.where, [&](std::uint64_t first, std::uint64_t count) {
                sums_.push_back(checksum(one.begin + first, count));
                return true;
            });
        }
        task_.run();
        auto sum = sums_.begin();
        for (const watched& one : read_) {
            for_each_chunk(one.where, [&](std::uint64_t first, std::uint64_t count) {
                if (checksum(one.begin + first, count) != *sum++) {
                    refuse(site_, one, first, count);
                }
                return true;
            });
        }
    }

private:
    moved_task task_;
    site site_;
    std::vector<watched> read_;
    std::vector<watched> written_;
    std::vector<std::uint64_t> sums_;  ///< of the chunks that are read
};

enum class declared : std::uint8_t { reads, overwrites, changes };

declared use_of(const access_request& access) noexcept {
    if (access.mode == order::access_mode::read) {
        return declared::reads;
    }
    return access.overwrites ? declared::overwrites : declared::changes;
}

/// Whether another access of the operation uses some of the same bytes in another way.
bool is_declared_otherwise(const access_request& one, std::span<const access_request> all) {
    return std::any_of(all.begin(), all.end(), [&](const access_request& other) {
        return other.target == one.target && use_of(other) != use_of(one) && order::overlap(other.where, one.where);
    });
}

/// Those accesses of one use whose memory the operation's code reaches.
std::vector<watched> watch(const submission& what, declared use) {
    const auto find = memory_finder.load(std::memory_order_acquire);
    std::vector<watched> all;
    for (std::size_t i = 0; find != nullptr && i < what.accesses.size(); ++i) {
        const access_request& one = what.accesses[i];
        if (one.target == nullptr || one.target->token_name() != nullptr || one.target->is_internal() ||
            use_of(one) != use || is_declared_otherwise(one, what.accesses)) {
            continue;
        }
        const verify_access::place at = find(*one.target);
        std::byte* const begin = what.kind == work_kind::host_task ? at.on_host : at.in_stream;
        if (begin != nullptr && (!one.where.shape || one.where.shape->exact())) {
            all.push_back({begin, one.target->id(), i, one.where});
        }
    }
    return all;
}

/// Whether the body of the operation does all of its work when it is called.
bool runs_on_host(const stream_state& stream, const submission& what) {
    if (what.work.type == nullptr) {
        return false;
    }
    if (what.kind == work_kind::host_task) {
        return true;
    }
    const backend::driver& device = stream.device().driver();
    const bool is_put_elsewhere =
        what.work.type->nature != detail::task_nature::work && device.can().kernels != nullptr;
    return what.kind == work_kind::device && device.runs_host_code() && !is_put_elsewhere;
}

/// What is checked of an operation that the device itself carries out, by operations before and behind it that copy to the host.
class device_check {
public:
    device_check(backend::driver& device, const submission& what, std::vector<watched> only_read,
                 std::vector<watched> only_written)
        : device_(&device), site_(what.from), read_(std::move(only_read)), written_(std::move(only_written)) {}

    [[nodiscard]] bool reads() const noexcept { return !read_.empty(); }

    void begin() {
        std::vector<std::byte> pattern;
        for (const watched& one : written_) {
            order::for_each_run(one.where, [&](std::uint64_t first, std::uint64_t count) {
                pattern.resize(std::max<std::size_t>(pattern.size(), count), std::byte{0xFF});  // NaN, -1
                device_->store(one.begin + first, pattern.data(), count);
                return true;
            });
        }
        before_ = bytes_read();
    }
    void end() const {
        const std::vector<std::byte> after = bytes_read();
        std::size_t at = 0;
        for (const watched& one : read_) {
            for_each_chunk(one.where, [&](std::uint64_t first, std::uint64_t count) {
                if (std::memcmp(after.data() + at, before_.data() + at, count) != 0) {
                    refuse(site_, one, first, count);
                }
                at += count;
                return true;
            });
        }
    }

private:
    [[nodiscard]] std::vector<std::byte> bytes_read() const {
        std::vector<std::byte> all;
        for (const watched& one : read_) {
            order::for_each_run(one.where, [&](std::uint64_t first, std::uint64_t count) {
                all.resize(all.size() + count);
                device_->fetch(all.data() + all.size() - count, one.begin + first, count);
                return true;
            });
        }
        return all;
    }

    backend::driver* device_;
    site site_;
    std::vector<watched> read_;
    std::vector<watched> written_;
    std::vector<std::byte> before_;
};

/// Whether the operation's body puts work into the device's queue and returns, and nothing else belongs to the operation.
bool runs_on_device(const stream_state& stream, const submission& what) {
    return what.kind == work_kind::device && what.work.type != nullptr &&
           what.work.type->nature == detail::task_nature::native && stream.device().driver().can().copies != nullptr;
}

/// The operation, between two that check it. What it writes is invalid if the second one fails.
completion submit_between_checks(stream_state& stream, const submission& what, std::vector<watched> only_read,
                                 std::vector<watched> only_written) {
    const auto check =
        std::make_shared<device_check>(stream.device().driver(), what, std::move(only_read), std::move(only_written));
    std::vector<access_request> before;
    std::vector<access_request> behind;
    for (const access_request& one : what.accesses) {
        if (use_of(one) != declared::changes) {
            before.push_back(one);
        }
        behind.push_back({one.target, one.where, one.mode});
    }
    site from = what.from;
    from.label = "WEIR_VERIFY_ACCESS";
    detail::with_task([check] { check->begin(); },
                      [&](detail::task_ref work) {
                          return submit_on_slow_path(stream, {before, what.after, work, from, work_kind::copy});
                      });
    completion done = submit_on_slow_path(stream, what);
    if (!check->reads()) {
        return done;
    }
    return detail::with_task([check] { check->end(); },
                             [&](detail::task_ref work) {
                                 return submit_on_slow_path(stream, {behind, {}, work, from, work_kind::copy});
                             });
}

template <detail::task_nature Nature>
completion submit_as(stream_state& stream, const submission& what, verified_task task) {
    return detail::with_task(detail::native_task<verified_task, Nature>{std::move(task)}, [&](detail::task_ref work) {
        return submit_on_slow_path(stream, {what.accesses, what.after, work, what.from, what.kind});
    });
}

}  // namespace

void verify_access::find_memory_by(place (*find)(const resource& of) noexcept) noexcept {
    memory_finder.store(find, std::memory_order_release);
}

completion verify_access::submit(stream_state& stream, const submission& what) {
    const bool is_on_host = runs_on_host(stream, what);
    if (!is_on_host && !runs_on_device(stream, what)) {
        return submit_on_slow_path(stream, what);
    }
    std::vector<watched> only_read = watch(what, declared::reads);
    std::vector<watched> only_written = watch(what, declared::overwrites);
    if (only_read.empty() && only_written.empty()) {
        return submit_on_slow_path(stream, what);
    }
    if (!is_on_host) {
        return submit_between_checks(stream, what, std::move(only_read), std::move(only_written));
    }
    verified_task task(what, std::move(only_read), std::move(only_written));
    switch (what.work.type->nature) {
        case detail::task_nature::native:
            return submit_as<detail::task_nature::native>(stream, what, std::move(task));
        case detail::task_nature::foreign:
            return submit_as<detail::task_nature::foreign>(stream, what, std::move(task));
        case detail::task_nature::work:
            break;
    }
    return submit_as<detail::task_nature::work>(stream, what, std::move(task));
}

}  // namespace weir::runtime
