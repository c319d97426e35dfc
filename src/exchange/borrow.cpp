#include "weir/borrow.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange/enter.hpp"
#include "memory/access.hpp"
#include "observe/observers.hpp"
#include "runtime/failures/failures.hpp"
#include "runtime/host/fork.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/stream_state.hpp"
#include "runtime/submission/foreign_visit.hpp"
#include "weir/access.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/dtype.hpp"
#include "weir/launch.hpp"
#include "weir/token.hpp"

namespace weir::exchange {

stream_package::stream_package(const stream& on) : on_(on) {}

std::string_view stream_package::name() const noexcept { return "work on a borrowed stream"; }

std::optional<stream> stream_package::current_stream(device of) {
    return of == on_.device() ? std::optional(on_) : std::nullopt;
}

namespace {

using accesses = std::span<const runtime::access_request>;

runtime::access_request access_to(const array& x, bool writes) {
    const order::access_mode mode = writes ? order::access_mode::write : order::access_mode::read;
    return weir::detail::argument_of<std::byte>(x, std::span<std::byte>(), mode).request(weir::detail::key);
}

/// Enqueues an operation that does nothing, and is ordered as work with these accesses on one side of it.
void mark(const stream_ref& to, accesses of, runtime::package_sides side, weir::label name, source_location where) {
    const on here = on(to, where).label(name);
    weir::detail::with_task(weir::detail::foreign_task([] {}), [&](weir::detail::task_ref task) {
        runtime::submission what(of, {}, task, here.site(detail::key), runtime::work_kind::device);
        what.sides = side;
        runtime::submit(to.state(weir::detail::key), what);
    });
}

/// Whether work with these accesses may begin at once, so that no operation has to say what it comes after. Throws as the operation would.
/// On CUDA the answer costs as much as the operation.
bool may_begin(const stream_ref& to, accesses of) {
    runtime::stream_state& stream = to.state(weir::detail::key);
    if (to.device().kind() == device_kind::cuda || observe::observers::any() || runtime::failures::any()) {
        return false;
    }
    runtime::fork_guard::expect_usable();
    stream.expect_open();
    return std::all_of(of.begin(), of.end(), [&](const runtime::access_request& one) {
        runtime::resource& target = *one.target;
        if (target.memory_of() != stream.memory_space() && target.memory_of() != nullptr) {
            return false;
        }
        if (target.packages().any()) {
            runtime::foreign_visit::expect_allowed(one);
        }
        return memory::nothing_pending(target, one.where, one.mode);
    });
}

/// Whether another stream of the device is lent work that conflicts with these accesses in this one. Work in a stream that was lent goes on
/// after the calls of packages have returned.
bool is_lent_elsewhere(accesses of, const stream& on) {
    return std::any_of(of.begin(), of.end(), [&](const runtime::access_request& one) {
        const std::lock_guard lock(one.target->mutex);
        const auto& ties = one.target->packages().all();
        const auto conflicts = [&](const runtime::package_tie& tie) {
            auto* const lent = tie.exported ? dynamic_cast<stream_package*>(tie.with.get()) : nullptr;
            const bool both_read = tie.mode == order::access_mode::read && one.mode == order::access_mode::read;
            if (lent == nullptr || both_read || !order::overlap(tie.where, one.where)) {
                return false;
            }
            const std::optional<stream> theirs = lent->current_stream(on.device());
            return theirs && *theirs != on;
        };
        return ties.size() > 1 && std::any_of(ties.begin(), ties.end(), conflicts);  // one is this borrow's own
    });
}

/// Whether packages share the memory beside the one whose work this is.
bool is_shared_by_others(accesses of) {
    return std::any_of(of.begin(), of.end(), [](const runtime::access_request& one) {
        const std::lock_guard lock(one.target->mutex);
        return one.target->packages().all().size() > 1;
    });
}

void enter(const stream_ref& to, accesses of, source_location where) {
    if (!of.empty() && !may_begin(to, of)) {
        mark(to, of, runtime::package_sides::entry, "hand over", where);
    }
}

}  // namespace

void enter(const array& x, const stream_ref& to, bool writes, order_asked_by by, source_location where) {
    runtime::access_request one = access_to(x, writes);
    one.in_every_mode = by == order_asked_by::program;
    mark(to, {&one, 1}, runtime::package_sides::entry, "hand over", where);
}

void hand_over(const stream_ref& to, const array& x, source_location where) {
    enter(x, to, false, order_asked_by::program, where);
}

void hand_over(const stream_ref& to, array& x, package_use use, source_location where) {
    enter(x, to, use == package_use::writes, order_asked_by::program, where);
}

namespace {

/// Memory of a device that nothing may use. No byte of it is ever touched, since each use is refused first, so that one piece stands for all
/// ended views whose elements it has room for.
buffer ended_memory(const device& of, std::size_t bytes, source_location where) {
    static weir::detail::mutex mutex;  // guards `all`; taken before a resource's lock
    static auto& all = *new std::vector<buffer>();
    const weir::detail::fork_section whole;
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(all.begin(), all.end(), [&](const buffer& one) { return one.device() == of; });
    if (found != all.end() && found->bytes() >= bytes) {
        return *found;
    }
    constexpr std::size_t page = 4096;
    constexpr std::size_t least = std::size_t{1} << 30U;
    void* const nowhere = reinterpret_cast<void*>(page);  // NOLINT(performance-no-int-to-ptr): an address of nothing
    buffer made = buffer::wrap(nowhere, std::max(bytes, least), of, 0, where);
    if (found == all.end()) {
        all.push_back(made);
    } else {
        *found = made;
    }
    return made;
}

}  // namespace

array ended_view(const array& like, source_location where) {
    if (!like.buffer() || like.size() == 0) {
        return like;
    }
    const std::size_t bytes = bytes_for(like.dtype(), static_cast<std::size_t>(like.size()));
    array made(ended_memory(like.device(), bytes, where), like.dtype(), like.shape());
    made.use_within(weir::detail::key, like.period(weir::detail::key));
    return made;
}

borrow::borrow(const stream& on, borrowed what, source_location where) : on_(on) {
    const borrowed_tokens& tokens = what.tokens;
    const auto by = std::make_shared<stream_package>(on);
    const std::size_t count = what.reads.size() + what.writes.size() + tokens.reads.size() + tokens.writes.size();
    arrays_.reserve(what.reads.size() + what.writes.size());
    shared_.reserve(count);
    accesses_.reserve(count);
    const auto add = [&](array& one, bool written) {
        if (one.buffer()) {
            accesses_.push_back(access_to(one, written));
        }
        arrays_.push_back(std::move(one));
    };
    for (array& one : what.reads) {
        add(one, false);
    }
    for (written_array& one : what.writes) {
        add(one.get(weir::detail::key), true);
    }
    for (const token& one : tokens.reads) {
        accesses_.push_back(in(one).request(weir::detail::key));
    }
    for (const token& one : tokens.writes) {
        accesses_.push_back(inout(one).request(weir::detail::key));
    }
    // Shared first: what another thread enqueues meanwhile either is found by `enter`, or finds the borrow.
    for (std::size_t at = 0; at < arrays_.size(); ++at) {
        if (array& one = arrays_[at]; one.buffer()) {
            shared_.emplace_back(one, by, at < what.reads.size() ? package_use::reads : package_use::writes);
        }
    }
    const auto share = [&](const std::vector<token>& those, package_use use) {
        for (const token& one : those) {
            shared_.emplace_back(weir::detail::key, one, on.device(), by, use);
        }
    };
    share(tokens.reads, package_use::reads);
    share(tokens.writes, package_use::writes);
    enter(on, accesses_, where);
}

borrow::~borrow() {
    try {
        end();
    } catch (...) {  // NOLINT(bugprone-empty-catch): what shares the memory keeps it then
    }
}

bool borrow::hands_back(weir::detail::passkey /*key*/) const {
    // Elsewhere the packages' own work is done when their calls return.
    return on_.device().kind() == device_kind::cuda ? is_shared_by_others(accesses_)
                                                    : is_lent_elsewhere(accesses_, on_);
}

void borrow::end(source_location where) { end(weir::detail::key, hands_back(weir::detail::key), where); }

void borrow::end(weir::detail::passkey /*key*/, bool hand_back, source_location where) {
    if (shared_.empty()) {
        arrays_.clear();
        return;
    }
    if (hand_back) {
        mark(on_, accesses_, runtime::package_sides::exit, "hand back", where);
    }
    for (live_export& one : shared_) {
        one.end(where);
    }
    shared_.clear();
    accesses_.clear();
    arrays_.clear();
}

bool borrow::is_over(weir::detail::passkey /*key*/, source_location where) const {
    return !runtime::failures::any() && on_.done(where);
}

}  // namespace weir::exchange
