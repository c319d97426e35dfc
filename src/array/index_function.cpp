#include "weir/index_function.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>

#include "backend/shared_loop.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"

namespace weir::detail {

namespace {

using shared_clock = std::chrono::steady_clock;

/// How long the first indices run before the rest may be shared: about what it costs to have workers come.
constexpr std::chrono::nanoseconds measured = std::chrono::microseconds(10);
/// The least for which workers are asked to come.
constexpr std::chrono::nanoseconds worth_sharing = std::chrono::microseconds(20);
/// Several parts for each thread, since some threads come late, and indices differ in cost.
constexpr std::int64_t parts_of_a_thread = 8;

}  // namespace

void expect_index_function(index_function what) {
    if (what == nullptr) {
        throw argument_error("the function is null: pass the address of a function");
    }
}

bool shares_indices(const stream_ref& on) noexcept { return on.device().kind() == device_kind::cpu; }

void refuse_status(int status) { throw std::runtime_error("the function returned " + std::to_string(status)); }

void run_indices(std::int64_t begin, std::int64_t end, bool shares, indices_body body, void* context) {
    if (begin >= end) {
        return;
    }
    if (!shares || backend::loop_threads() < 2) {
        body(context, begin, end);
        return;
    }
    // Four times as many indices each time, so that few are done alone where each costs much. What is left is shared once it would take
    // long enough if it were like the indices before it: those of one kernel may differ.
    const shared_clock::time_point started = shared_clock::now();
    shared_clock::time_point before = started;
    for (std::int64_t some = 1;;) {
        const std::int64_t count = std::min(some, end - begin);
        body(context, begin, begin + count);
        begin += count;
        if (begin == end) {
            return;
        }
        const shared_clock::time_point now = shared_clock::now();
        if (now - started < measured) {
            some = std::min(some, std::numeric_limits<std::int64_t>::max() / 4) * 4;
        } else if (static_cast<double>((now - before).count()) * static_cast<double>(end - begin) >=
                   static_cast<double>(worth_sharing.count()) * static_cast<double>(count)) {
            break;
        }
        before = now;
    }
    const std::int64_t left = end - begin;
    const auto threads = static_cast<std::int64_t>(backend::loop_threads());
    const std::int64_t part = (left - 1) / (parts_of_a_thread * threads) + 1;
    const std::int64_t parts = (left - 1) / part + 1;
    backend::share_loop(static_cast<std::size_t>(parts), [&](std::size_t which) {
        const std::int64_t from = begin + static_cast<std::int64_t>(which) * part;
        body(context, from, from + std::min(part, end - from));  // from + part may be beyond int64
    });
}

}  // namespace weir::detail
