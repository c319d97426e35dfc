#include "calls/call.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/operation.hpp"
#include "backend/backend.hpp"
#include "backend/capability/libraries.hpp"
#include "backend/native.hpp"
#include "backend/timeline.hpp"
#include "calls/execution.hpp"
#include "frontier/point.hpp"
#include "frontier/small_vector.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/launch.hpp"

namespace weir::calls {

namespace {

/// Throws out_of_memory if a call would exceed its memory limit.
void expect_within_limit(const library_call& call, const call_terms& terms, device on, std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    const std::size_t limit = terms.limit.bytes(on);
    if (bytes > limit) {
        throw out_of_memory(std::string(call.name()) + " needs " + std::to_string(bytes) + " bytes on " + on.name() +
                            " besides operands and result; its memory limit is " + std::to_string(limit) +
                            " bytes: give it a higher memory_limit, or smaller operands");
    }
}

/// Makes `workspace` at least `bytes` bytes large, on the device of `where`.
void provide_workspace(buffer& workspace, std::size_t bytes, const on& where) {
    if (bytes > 0 && (workspace.bytes() < bytes || !share_memory(workspace.device(), where.stream().device()))) {
        workspace = detail::internal(buffer(bytes, where.stream(), where.site(detail::key).where));
    }
}

/// Throws what is wrong with the array for the result.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_result(const library_call& call, const array& result,
                                                          const array* elsewhere) {
    const std::string name = call.name();
    if (result.dtype() != call.result_type()) {
        throw argument_type_error(name + ": the result's elements are " + std::string(name_of(call.result_type())) +
                                  ", those of the array for it " + std::string(name_of(result.dtype())));
    }
    if (!(result.shape() == call.result_shape())) {
        throw argument_error(name + ": the result has shape " + call.result_shape().to_string() +
                             ", the array for it " + result.shape().to_string());
    }
    if (elsewhere != nullptr) {
        throw argument_error(name + ": the operand lies on " + elsewhere->device().name() +
                             ", the array for the result on " + result.device().name() + "; give one on " +
                             elsewhere->device().name());
    }
    throw argument_error(name + ": elements of the array for the result, " + result.to_string() +
                         ", stand for many; give one whose elements have memory of their own");
}

bool is_result_of(const library_call& call, const array& result) noexcept {
    return result.dtype() == call.result_type() && result.shape() == call.result_shape();
}

void expect_result(const library_call& call, std::span<const array> inputs, const array& result) {
    if (!is_result_of(call, result) || !result.has_own_elements()) {
        refuse_result(call, result, nullptr);
    }
    for (const array& input : inputs) {
        if (input.size() > 0 && result.size() > 0 && !share_memory(input.device(), result.device())) {
            refuse_result(call, result, &input);
        }
    }
}

call_layout layout_of(device on, std::span<const array> inputs, const array& result) {
    call_layout layout{on, {}, placement::of(result)};
    for (const array& input : inputs) {
        layout.inputs.push_back({placement::of(input), operation::share_bytes(input, result)});
    }
    return layout;
}

/// The layout before there is a result, and the layout of copies before they are made.
call_layout expected_layout(const library_call& call, device on, std::span<const array> inputs, bool is_copied) {
    call_layout layout{on, {}, placement::packed(call.result_shape(), call.result_type())};
    for (const array& input : inputs) {
        const bool is_overwritten = is_copied && layout.inputs.empty() && call.can_overwrite_copy();
        layout.inputs.push_back(
            {is_copied ? placement::packed(input.shape(), input.dtype()) : placement::of(input), is_overwritten});
    }
    return layout;
}

/// The size of copies of the inputs and of one copy of the result, in bytes.
std::size_t bytes_of_copies(const library_call& call, std::span<const array> inputs) noexcept {
    std::size_t bytes = 0;
    for (const array& input : inputs) {
        bytes += input.nbytes();
    }
    if (!call.can_overwrite_copy()) {
        bytes += bytes_for(call.result_type(), static_cast<std::size_t>(call.result_shape().elements()));
    }
    return bytes;
}

array copy_for(const weir::shape& extents, dtype type, const on& where) {
    return detail::internal(empty(extents, type, where.stream(), where.site(detail::key).where));
}

bool are_packed(std::span<const array> inputs, const array& result) noexcept {
    return result.is_contiguous() &&
           std::all_of(inputs.begin(), inputs.end(), [](const array& a) { return a.is_contiguous(); });
}

[[gnu::noinline]] bool has_strides(const per_dimension& strides, const array& a) noexcept {
    const std::span<const std::int64_t> of = a.strides();
    return std::equal(strides.begin(), strides.end(), of.begin(), of.end());
}

bool lies_as(const per_dimension& strides, const array& a, bool is_packed) noexcept {
    return (is_packed && a.is_contiguous()) || has_strides(strides, a);
}

/// Between arrays that need not be of the same memory.
std::ptrdiff_t bytes_from(const std::byte* first, const std::byte* to) noexcept {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(first));
}

/// Whether the work is for arrays that lie so, but for a distance that it can be moved by.
bool is_for(const prepared_call& what, std::span<const array> inputs, const array& result, call_shift& by) noexcept {
    const call_layout& layout = what.layout;
    if (!lies_as(layout.result.strides, result, what.is_packed) ||
        operation::memory_space_of(result) != what.result_memory) {
        return false;
    }
    by.result = bytes_from(layout.result.first, result.device_data());
    bool is_together = true;  // arrays that overlap lie to each other as they did
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const call_layout::input& known = layout.inputs[i];
        if (!lies_as(known.where.strides, inputs[i], what.is_packed) ||
            operation::share_bytes(inputs[i], result) != known.overlaps_result) {
            return false;
        }
        const std::ptrdiff_t moved = bytes_from(known.where.first, inputs[i].device_data());
        is_together = is_together && (!known.overlaps_result || moved == by.result);
        if (i < call_shift::most_inputs) {
            by.inputs[i] = moved;
        } else if (moved != 0) {
            return false;
        }
    }
    return by.is_zero() || (what.work.can_move() && is_together && by.is_aligned());
}

/// Provides the workspace that the work needs. False if the work cannot use it, or would exceed the limit.
bool suits_workspace(prepared_calls::found& known, const call_terms& terms, const on& where, buffer& workspace) {
    const prepared_call& what = *known.what;
    if (what.workspace_bytes == 0) {
        return true;
    }
    if (what.workspace_bytes > terms.limit.bytes(where.stream().device())) {
        return false;
    }
    provide_workspace(workspace, what.workspace_bytes, where);
    known.by.workspace = bytes_from(what.workspace, workspace.device_data());
    return known.by.workspace == 0 || (what.work.can_move() && known.by.is_aligned());
}

/// Null for a device whose work host code does.
const backend::capability::libraries* libraries_of(const device& on) {
    return on.state(detail::key).driver().can().libraries;
}

/// Owns prepared work. Operations do not: when the last owner lets go of the work, the reaper releases it once all that was enqueued on
/// its device by then is complete, its own operations included. So an execution need not be destroyed, and costs no allocation.
class call_owner final : public runtime::retired {
public:
    /// Throws std::bad_alloc, out_of_memory, state_error.
    [[nodiscard]] static std::shared_ptr<const prepared_call> make(prepared_call what) {
        runtime::reaper::start();
        auto made = std::make_unique<call_owner>(std::move(what));
        const prepared_call* const work = &made->what_;
        return {work, [owner = made.release()](const prepared_call* /*its_work*/) { owner->retire(); }};
    }
    explicit call_owner(prepared_call what) : what_(std::move(what)) {}
    ~call_owner() override = default;

private:
    void retire() noexcept {
        if (what_.layout.on.state(detail::key).stayed_behind()) {
            return;  // what the work holds is the parent process's
        }
        if (pending()) {
            runtime::reaper::push(*this);
        } else {
            release();
        }
    }
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override {
        const runtime::device_state& on = what_.layout.on.state(detail::key);
        if (!has_tails_) {
            try {
                tails_ = on.tails();
                has_tails_ = true;
            } catch (const std::bad_alloc&) {
                return on.first_unfinished();  // waits further; then there may be memory
            }
        }
        while (!tails_.empty() && backend::timeline_table::instance().is_complete(tails_.back())) {
            tails_.pop_back();
        }
        return tails_.empty() ? std::nullopt : std::optional(tails_.back());
    }
    void release() noexcept override { delete this; }  // NOLINT(cppcoreguidelines-owning-memory): it owns itself

    prepared_call what_;
    bool has_tails_ = false;
    std::vector<frontiers::point> tails_;  ///< ends of the device's streams when the last owner let go
};

/// An execution of prepared work by host code: what its operation does. The work outlives it (call_owner).
struct host_execution {
    const prepared_call* what;
    call_shift by;

    void operator()() const { what->work(by); }
};

/// The same by work that is put into a queue, plainly (detail::queue_handle).
struct native_execution {
    const prepared_call* what;
    call_shift by;

    void operator()(detail::queue_handle into) const {
        const backend::submitting_to queue(into.value);
        what->in->run_work(
            [](const void* itself) {
                const auto& one = *static_cast<const native_execution*>(itself);
                one.what->work(one.by);
            },
            this);
    }
};
static_assert(detail::puts_plainly<detail::native_task<native_execution>>);

/// Whether an input is the same memory as one before it: an operation that names memory once takes the fast path.
bool is_read_before(std::span<const array> inputs, std::size_t which) noexcept {
    const array& one = inputs[which];
    return std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(which),
                       [&](const array& each) { return operation::have_one_footprint(each, one); });
}

/// Enqueues the operation itself.
completion enqueue(const library_call& call, const prepared_calls::found& what, const on& where,
                   std::span<const array> inputs, const array& result, const buffer& workspace) {
    using order::access_mode;
    const prepared_call& prepared = *what.what;
    detail::small_vector<runtime::access_request, call_shift::most_inputs + 2> accesses;
    bool overwrites = true;
    accesses.push_back({result.buffer().resource(detail::key), result.used(detail::key), access_mode::write, true});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool is_changed = prepared.layout.inputs[i].overlaps_result;
        overwrites = overwrites && !is_changed;
        if (is_changed ? !operation::have_one_footprint(inputs[i], result) : !is_read_before(inputs, i)) {
            accesses.push_back({inputs[i].buffer().resource(detail::key), inputs[i].used(detail::key),
                                is_changed ? access_mode::write : access_mode::read, false});
        }
    }
    accesses[0].overwrites = overwrites;
    if (prepared.workspace_bytes > 0) {
        accesses.push_back({workspace.resource(detail::key), {0, prepared.workspace_bytes}, access_mode::write, true});
    }
    runtime::site from = where.site(detail::key);
    if (from.label == nullptr) {
        from.label = call.label();
    }
    const auto submit = [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(detail::key),
                               {std::span(accesses.begin(), accesses.size()), where.dependencies(), task, from,
                                runtime::work_kind::device});
    };
    if (prepared.work.is_native()) {
        return detail::with_task(detail::native_task<native_execution>{{&prepared, what.by}}, submit);
    }
    return detail::with_task(host_execution{&prepared, what.by}, submit);
}

/// Executes the call on the device of `where`, which reaches the arrays.
completion execute_here(const library_call& call, const call_terms& terms, const on& where,
                        std::span<const array> inputs, const array& result, buffer& workspace, prepared_calls* kept,
                        const std::shared_ptr<const prepared_call>& before) {
    const device here = where.stream().device();
    call_layout layout = layout_of(here, inputs, result);
    const std::unique_ptr<const call_plan> plan = call.plan(layout);
    const std::size_t bytes = plan->workspace_bytes();
    expect_within_limit(call, terms, here, bytes);
    provide_workspace(workspace, bytes, where);
    std::shared_ptr<const prepared_call> made = call_owner::make(prepared_call{
        std::move(layout), terms.execution, terms.limit, libraries_of(here), operation::memory_space_of(result),
        are_packed(inputs, result), workspace.device_data(), bytes, plan->work(workspace.device_data())});
    completion end = enqueue(call, {made, {}}, where, inputs, result, workspace);  // `made` lives until it is enqueued
    if (kept != nullptr) {
        kept->add(std::move(made), before);
    }
    return end;
}

/// Executes the call on the device of `where`, which does not reach the arrays: copies them there, and the result back. Blocks.
completion execute_there(const library_call& call, const call_terms& terms, const on& where,
                         std::span<const array> inputs, array result, buffer& workspace) {
    const device there = where.stream().device();
    const std::size_t bytes = bytes_of_copies(call, inputs);
    expect_within_limit(call, terms, there, bytes);
    std::vector<array> copies;
    for (const array& input : inputs) {
        copies.push_back(copy_for(input.shape(), input.dtype(), where));
    }
    array made = call.can_overwrite_copy() ? copies[0] : copy_for(result.shape(), result.dtype(), where);
    call_layout layout = layout_of(there, copies, made);
    const std::unique_ptr<const call_plan> plan = call.plan(layout);
    expect_within_limit(call, terms, there, bytes + plan->workspace_bytes());
    provide_workspace(workspace, plan->workspace_bytes(), where);
    std::shared_ptr<const prepared_call> prepared = call_owner::make(prepared_call{
        std::move(layout), terms.execution, terms.limit, libraries_of(there), operation::memory_space_of(made), false,
        workspace.device_data(), plan->workspace_bytes(), plan->work(workspace.device_data())});

    // Everything is prepared: from here on the call enqueues. If an array on a CUDA device is not packed, its copy needs memory for
    // packed elements.
    on next = where;
    if (next.site(detail::key).label == nullptr) {
        next.label("copy of the operand");
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        copy(next, copies[i], inputs[i]);
        next = on(where.stream(), where.site(detail::key).where);
        next.label("copy of the operand");
    }
    enqueue(call, {std::move(prepared), {}}, on(where.stream(), where.site(detail::key).where), copies, made,
            workspace);
    on last(where.stream(), where.site(detail::key).where);
    completion end = copy(last.label("copy of the result"), result, made);
    end.synchronize(where.site(detail::key).where);
    return end;
}

std::string description_of(const weir::shape& extents, dtype type) {
    return std::string(name_of(type)) + " " + extents.to_string();
}

}  // namespace

placement placement::of(const array& a) {
    placement where;
    where.strides.append(a.strides().data(), a.strides().data() + a.strides().size());
    where.first = a.device_data();
    return where;
}

placement placement::packed(const weir::shape& extents, dtype type) {
    placement where;
    where.strides.append(extents.extents().data(), extents.extents().data() + extents.extents().size());
    auto stride = static_cast<std::int64_t>(size_of(type));
    for (std::size_t axis = where.strides.size(); axis > 0; --axis) {
        const std::int64_t extent = where.strides[axis - 1];
        where.strides[axis - 1] = stride;
        stride *= std::max<std::int64_t>(extent, 1);
    }
    return where;
}

namespace {

/// std::variant's own comparison is a call for the common case that both name nothing.
bool is_same(const execution_target& a, const execution_target& b) noexcept {
    return a.index() == b.index() && (a.index() == 0 || a == b);
}

}  // namespace

prepared_calls::found prepared_calls::find(device on, const call_terms& terms, std::span<const array> inputs,
                                           const array& result) const {
    found known;
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<const prepared_call>& each : all_) {
        if (each && each->layout.on == on && is_same(each->execution, terms.execution) && each->limit == terms.limit &&
            is_for(*each, inputs, result, known.by)) {
            known.what = each;
            return known;
        }
    }
    return known;
}

void prepared_calls::add(std::shared_ptr<const prepared_call> made,
                         const std::shared_ptr<const prepared_call>& before) {
    // What is replaced is released after the lock, since a library may wait for the device then.
    const std::lock_guard lock(mutex_);
    const auto same = before ? std::find(all_.begin(), all_.end(), before) : all_.end();
    if (same != all_.end()) {
        same->swap(made);
        return;
    }
    all_[next_].swap(made);
    next_ = (next_ + 1) % most;
}

void prepared_calls::clear() noexcept {
    std::array<std::shared_ptr<const prepared_call>, most> released;
    const std::lock_guard lock(mutex_);
    all_.swap(released);
}

const array& leading_input(std::span<const array> inputs) noexcept {
    const auto found = std::find_if(inputs.begin(), inputs.end(), [](const array& a) { return a.size() > 0; });
    return found != inputs.end() ? *found : inputs.front();
}

void refuse_device(const char* call, const device& on) {
    throw missing_library(std::string(call) + ": no library does it on " + on.name() +
                          "; ask for execution on the CPU to have it done there");
}

array make_result(const library_call& call, const on& where, std::span<const array> inputs) {
    const device home = device_of(leading_input(inputs), where.stream().device());
    return operation::empty_for(where, call.result_shape(), call.result_type(), home);
}

void prepare(const library_call& call, const call_terms& terms, const on& where, std::span<const array> inputs,
             buffer& workspace) {
    const array& leading = leading_input(inputs);
    const device here = computing_device(call.name(), terms.execution, leading, where.stream());
    here.state(detail::key).expect_usable();
    if (call.result_shape().elements() == 0) {
        return;
    }
    const bool is_copied = !share_memory(here, device_of(leading, here));
    const call_layout layout = expected_layout(call, here, inputs, is_copied);
    const std::unique_ptr<const call_plan> plan = call.plan(layout);
    const std::size_t bytes = plan->workspace_bytes();
    expect_within_limit(call, terms, here, bytes + (is_copied ? bytes_of_copies(call, inputs) : 0));
    provide_workspace(workspace, bytes, where);
    static_cast<void>(plan->work(workspace.device_data()));
}

completion execute(const library_call& call, const call_terms& terms, const on& where, std::span<const array> inputs,
                   const array& result, buffer& workspace, prepared_calls* kept) {
    const auto finished = [&](completion end) {
        if (terms.blocking == call_blocking::always) {
            end.synchronize(where.site(detail::key).where);
        }
        return end;
    };
    std::shared_ptr<const prepared_call> before;
    if (kept != nullptr && is_result_of(call, result)) {
        prepared_calls::found known = kept->find(where.stream().device(), terms, inputs, result);
        if (known.what && suits_workspace(known, terms, where, workspace)) {
            return finished(enqueue(call, known, where, inputs, result, workspace));
        }
        before = std::move(known.what);
    }
    const array& leading = leading_input(inputs);
    const device here = computing_device(call.name(), terms.execution, leading, where.stream());
    here.state(detail::key).expect_usable();
    expect_result(call, inputs, result);
    if (call.result_shape().elements() == 0) {
        return {};
    }
    if (!share_memory(here, device_of(leading, here))) {
        return execute_there(call, terms, where, inputs, result, workspace);
    }
    return finished(execute_here(call, terms, where, inputs, result, workspace, kept, before));
}

array execute(const library_call& call, const call_terms& terms, const on& where, std::span<const array> inputs,
              prepared_calls* kept) {
    array result = make_result(call, where, inputs);
    buffer workspace;
    execute(call, terms, where, inputs, result, workspace, kept);
    return result;
}

stateful_call::stateful_call(const char* name, std::span<const array> operands, call_terms terms)
    : name_(name), terms_(std::move(terms)), operands_(std::in_place, operands.begin(), operands.end()) {
    for (const array& each : operands) {
        described_.push_back({each.shape(), each.dtype()});
        if (!home_ && each.size() > 0) {
            home_ = each.device();
        }
    }
}

std::span<const array> stateful_call::operands(const char* before) const {
    if (!operands_) {
        const bool is_one = described_.size() == 1;
        throw state_error(std::string(name_) + (is_one ? ": the operand was" : ": the operands were") +
                          " released; call " + (is_one ? "reset_operand" : "reset_operands") + " before " + before);
    }
    return *operands_;
}

void stateful_call::reset_operands(std::span<const array> operands) {
    const std::string name(name_);
    if (operands.size() != described_.size()) {
        throw argument_error(name + ": the plan is for " + std::to_string(described_.size()) + " operands, not " +
                             std::to_string(operands.size()));
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const array& each = operands[i];
        if (!(each.shape() == described_[i].extents) || each.dtype() != described_[i].type) {
            throw argument_error(name + ": the plan is for " +
                                 description_of(described_[i].extents, described_[i].type) + ", the new operand is " +
                                 description_of(each.shape(), each.dtype()) + "; make a new plan for it");
        }
        if (home_ && each.size() > 0 && !(each.device() == *home_)) {
            throw argument_error(name + ": the plan is for operands on " + home_->name() + ", the new one lies on " +
                                 each.device().name() + "; copy it there, or make a new plan for it");
        }
    }
    std::vector<array> held(operands.begin(), operands.end());
    operands_ = std::move(held);
}

void stateful_call::prepare(const library_call& call, const on& where) {
    calls::prepare(call, terms_, where, operands("plan"), workspace_);
}

std::string when_it_returns(const call_terms& terms, device home, device computing) {
    if (!share_memory(home, computing)) {
        return "the call blocks, since it computes on " + computing.name() + " and the operands lie on " + home.name();
    }
    return terms.blocking == call_blocking::always
               ? "the call blocks: its options or the package of its operands ask for that"
               : "the call does not block";
}

explanation stateful_call::explain(library_in_use (*library_on)(const device& computing)) const {
    const device home = home_.value_or(cpu());
    const device computing = computing_device(terms_.execution, home);
    const library_in_use by = library_on(computing);
    explanation said{name_, "none", false, false, false, {}, {}, {}};
    for (const description& each : described_) {
        said.subject += (&each == &described_.front() ? " of " : ", ") + description_of(each.extents, each.type);
    }
    said.subject += " on " + computing.name();
    said.phases.push_back("plan: " + by.name + ", on the calling thread; the call does not block");
    said.phases.push_back("execute: " + by.name +
                          (by.is_native ? ", in the driver's queue; " : ", on the thread that runs the stream; ") +
                          when_it_returns(terms_, home, computing));
    return said;
}

std::span<const array> stateful_call::expect_planned() const {
    const std::span<const array> all = operands("execute");
    if (!is_planned_) {
        throw state_error(std::string(name_) + ": call plan before execute");
    }
    return all;
}

completion stateful_call::execute(const library_call& call, const on& where, const array& result,
                                  prepared_calls& kept) {
    return calls::execute(call, terms_, where, expect_planned(), result, workspace_, &kept);
}

}  // namespace weir::calls
