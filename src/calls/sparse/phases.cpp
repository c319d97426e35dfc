#include "calls/sparse/phases.hpp"

#include <span>
#include <string>
#include <utility>

#include "array/operation.hpp"
#include "calls/execution.hpp"
#include "frontier/small_vector.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir::calls {

namespace {

using sparse_accesses = detail::small_vector<runtime::access_request, 4>;
using order::access_mode;

runtime::access_request access_to(const array& x, access_mode mode, bool overwrites = false) {
    return {x.buffer().resource(detail::key), x.used(detail::key), mode, overwrites};
}

/// @{
/// Accesses that represent the analysis, and the factorization.
runtime::access_request analysis_of(const buffer& progress, access_mode mode) {
    return {progress.resource(detail::key), {0, 1}, mode, mode == access_mode::write};
}
runtime::access_request factors_of(const buffer& progress, access_mode mode, bool overwrites = false) {
    return {progress.resource(detail::key), {1, 2}, mode, overwrites};
}
/// @}

/// Enqueues one phase.
template <class Body>
completion enqueue_phase(const on& where, const char* label, const sparse_accesses& accesses, phase_form form,
                         Body body) {
    runtime::site from = where.site(detail::key);
    if (from.label == nullptr) {
        from.label = label;
    }
    const auto kind = form == phase_form::host_task ? runtime::work_kind::host_task : runtime::work_kind::device;
    return detail::with_task(std::move(body), [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(detail::key),
                               {std::span(accesses.begin(), accesses.size()), where.dependencies(), task, from, kind});
    });
}

/// Where the next step of the same call is enqueued: without dependencies and without the program's label.
on next_step(const on& where) { return {where.stream(), where.site(detail::key).where}; }

std::string described(const array& x) { return std::string(name_of(x.dtype())) + " " + x.shape().to_string(); }

bool is_value_type(dtype type) noexcept {
    return type == dtype::float32 || type == dtype::float64 || type == dtype::complex64 || type == dtype::complex128;
}

void expect_on(const char* name, const char* what, const array& x, const device& home) {
    if (x.size() > 0 && !share_memory(x.device(), home)) {
        throw argument_error(std::string(name) + ": the matrix lies on " + home.name() + ", the " + what + " on " +
                             x.device().name() + "; copy all to one device");
    }
}

/// Whether the library can use the columns in their layout.
bool are_columns(const array& x) noexcept {
    const auto item = static_cast<std::int64_t>(size_of(x.dtype()));
    const std::span<const std::int64_t> strides = x.strides();
    if (strides[0] != item) {
        return false;
    }
    return x.dimensions() == 1 || x.shape()[1] == 1 || (strides[1] >= item * x.shape()[0] && strides[1] % item == 0);
}

dense_columns columns_of(const array& x) noexcept {
    const std::span<const std::int64_t> strides = x.strides();
    const bool is_one = x.dimensions() == 1 || x.shape()[1] == 1;
    const auto item = static_cast<std::int64_t>(size_of(x.dtype()));
    return {x.device_data(), x.dimensions() == 1 ? 1 : x.shape()[1], strides[0],
            is_one ? item * x.shape()[0] : strides[1]};
}

/// An array like `x` whose columns are packed, in internal memory.
array packed_columns_like(const array& x, const on& where) {
    if (x.dimensions() == 1) {
        return detail::internal(empty(x.shape(), x.dtype(), where.stream(), where.site(detail::key).where));
    }
    return detail::internal(
               empty(shape{x.shape()[1], x.shape()[0]}, x.dtype(), where.stream(), where.site(detail::key).where))
        .t();
}

}  // namespace

device home_of(const csr_matrix& a) { return a.row_offsets.device(); }

sparse_system describe(const char* name, const csr_matrix& a, const solve_options& how) {
    const std::string call = std::string(name) + ": ";
    if (a.shape.dimensions() != 2 || a.shape[0] != a.shape[1]) {
        throw argument_error(call + "the matrix has shape " + a.shape.to_string() +
                             "; only a square one can be solved");
    }
    const std::int64_t n = a.shape[0];
    if (a.row_offsets.dimensions() != 1 || a.row_offsets.size() != n + 1) {
        throw argument_error(call + "the row offsets have shape " + a.row_offsets.shape().to_string() +
                             "; a matrix of " + std::to_string(n) + " rows has (" + std::to_string(n + 1) + ",)");
    }
    if (a.values.dimensions() != 1 || !(a.values.shape() == a.column_indices.shape())) {
        throw argument_error(call + "the values have shape " + a.values.shape().to_string() + ", the column indices " +
                             a.column_indices.shape().to_string() + "; give one of each for every element");
    }
    if (!is_value_type(a.values.dtype())) {
        throw argument_type_error(call + "the values are " + std::string(name_of(a.values.dtype())) +
                                  "; convert them to float32, float64, complex64 or complex128");
    }
    const dtype indices = a.row_offsets.dtype();
    if ((indices != dtype::int32 && indices != dtype::int64) || a.column_indices.dtype() != indices) {
        throw argument_type_error(call + "the row offsets are " + std::string(name_of(indices)) +
                                  ", the column indices " + std::string(name_of(a.column_indices.dtype())) +
                                  "; give both as int32, or both as int64");
    }
    if (how.kind == matrix_kind::general && how.triangle != matrix_triangle::full) {
        throw argument_error(call +
                             "a triangle says nothing of a general matrix: give all elements, or say that it is "
                             "symmetric, hermitian or positive_definite");
    }
    expect_on(name, "column indices", a.column_indices, home_of(a));
    expect_on(name, "values", a.values, home_of(a));
    matrix_kind kind = how.kind;
    if (kind == matrix_kind::hermitian && !is_complex(a.values.dtype())) {
        kind = matrix_kind::symmetric;  // the same for real elements
    }
    return {kind, how.triangle, a.values.dtype(), indices, n, a.values.size()};
}

void expect_right_hand_side(const char* name, const sparse_system& system, const device& home, const array& b) {
    const std::string call = std::string(name) + ": ";
    if ((b.dimensions() != 1 && b.dimensions() != 2) || b.shape()[0] != system.n) {
        throw argument_error(call + "the right-hand side has shape " + b.shape().to_string() + "; for a matrix of " +
                             std::to_string(system.n) + " rows give (" + std::to_string(system.n) + ",), or (" +
                             std::to_string(system.n) + ", k) for k of them");
    }
    if (b.dtype() != system.values) {
        throw argument_type_error(call + "the matrix has elements of " + std::string(name_of(system.values)) +
                                  ", the right-hand side of " + std::string(name_of(b.dtype())) +
                                  "; convert one of them");
    }
    expect_on(name, "right-hand side", b, home);
}

void sparse_phases::expect_same_device(const stream_ref& of) const {
    const device here = of.device();
    if (!(here == computing_) && !share_memory(here, computing_)) {
        throw argument_error(std::string(name_) + ": the system was analyzed on " + computing_.name() +
                             ", and the stream \"" + std::string(of.name()) + "\" is one of " + here.name() +
                             "; pass a stream of " + computing_.name() + ", or call plan again");
    }
}

void sparse_phases::expect_room_for_copies(std::initializer_list<const array*> of) const {
    if (!elsewhere_) {
        return;
    }
    std::size_t bytes = 0;
    for (const array* const each : of) {
        bytes += each->nbytes();
    }
    if (bytes > system_.most_bytes) {
        throw out_of_memory(std::string(name_) + " needs " + std::to_string(bytes) + " bytes on " + computing_.name() +
                            " for copies of the operands, which lie elsewhere; its memory limit is " +
                            std::to_string(system_.most_bytes) + " bytes: give it a higher memory_limit");
    }
}

array sparse_phases::copied(on& next, const array& x) const {
    array made = detail::internal(empty(x.shape(), x.dtype(), next.stream(), next.site(detail::key).where));
    if (x.size() > 0) {
        if (next.site(detail::key).label == nullptr) {
            next.label("copy of the operand");
        }
        copy(next, made, x);
        next = next_step(next);
    }
    return made;
}

array sparse_phases::brought(on& next, const array& x) const {
    return elsewhere_ || !x.is_contiguous() ? copied(next, x) : x;
}

sparse_phases::sparse_phases(const char* name, const on& where, const csr_matrix& a, const solve_options& how,
                             const sparse_system& system)
    : name_(name),
      how_(how),
      system_(system),
      computing_(computing_device(name, how.execution, a.row_offsets, where.stream())),
      elsewhere_(!share_memory(home_of(a), computing_)) {
    computing_.state(detail::key).expect_usable();
    system_.most_bytes = how.memory_limit.bytes(computing_);
    if (system_.n > 0) {
        by_ = make_factorization(system_, computing_);
        progress_ = detail::internal(buffer(2, where.stream(), where.site(detail::key).where));
    }
}

std::vector<std::string> sparse_phases::explained() const {
    if (!by_) {
        return {"plan, factorize, solve: nothing to do; no call blocks"};
    }
    const factorization::manner& manner = by_->how();
    const char* const where = manner.form == phase_form::host_code
                                  ? "on the thread that runs the stream"
                                  : "a host task: the stream waits for a thread of Weir's, which waits for the library";
    std::string returns = "the call does not block";
    if (elsewhere_) {
        returns = "the call blocks, since it computes on " + computing_.name() + " and the operands lie elsewhere";
    } else if (blocks()) {
        returns = "the call blocks: its options or the package of its operands ask for that";
    }
    std::vector<std::string> all;
    for (const char* const phase : {"plan", "factorize", "solve"}) {
        all.push_back(std::string(phase) + ": " + by_->library() + ", " + where + "; " + returns);
    }
    if (manner.solves_from_values) {
        all.emplace_back(
            "each solve analyzes and factorizes the matrix anew, for each right-hand side: install cuDSS to "
            "have that once");
    }
    return all;
}

completion sparse_phases::analyze(const on& where, const csr_matrix& a) {
    if (system_.n == 0) {
        return {};
    }
    expect_room_for_copies({&a.row_offsets, &a.column_indices, &a.values});
    const factorization::manner& manner = by_->how();
    on next = where;
    // The program may change or drop its indices once the analysis is complete.
    const auto taken = [&](const array& x) { return manner.refers_to_indices ? copied(next, x) : brought(next, x); };
    const array offsets = taken(a.row_offsets);
    const array columns = taken(a.column_indices);
    const array values = manner.analyzes_values ? brought(next, a.values) : array();
    if (manner.refers_to_indices) {
        offsets_ = offsets;
        columns_ = columns;
    }
    sparse_accesses accesses;
    accesses.push_back(analysis_of(progress_, access_mode::write));
    for (const array* const each : {&offsets, &columns, &values}) {
        if (each->size() > 0) {
            accesses.push_back(access_to(*each, access_mode::read));
        }
    }
    return enqueue_phase(next, "sparse analysis", accesses, manner.form,
                         [by = by_, from = offsets.device_data(), in = columns.device_data(),
                          of = values.device_data()] { by->analyze(from, in, of); });
}

completion sparse_phases::factorize(const on& where, const csr_matrix& a, places at) {
    expect_same_device(where.stream());
    if (system_.n == 0) {
        return {};
    }
    on next = where;
    array offsets;
    array columns;
    if (at == places::to_be_compared) {
        offsets = brought(next, a.row_offsets);
        columns = brought(next, a.column_indices);
    }
    const array values = brought(next, a.values);
    sparse_accesses accesses;
    accesses.push_back(factors_of(progress_, access_mode::write, true));
    accesses.push_back(analysis_of(progress_, access_mode::read));
    for (const array& each : {offsets, columns, values}) {
        if (each.size() > 0) {
            accesses.push_back(access_to(each, access_mode::read));
        }
    }
    if (by_->how().refers_to_indices) {
        accesses.push_back(access_to(offsets_, access_mode::read));
        if (columns_.size() > 0) {
            accesses.push_back(access_to(columns_, access_mode::read));
        }
    }
    return enqueue_phase(
        next, "sparse factorization", accesses, by_->how().form,
        [by = by_, at, starts = offsets.device_data(), in = columns.device_data(), from = values.device_data()] {
            if (at == places::to_be_compared) {
                by->expect_places(starts, in);
            }
            by->factorize(from);
        });
}

completion sparse_phases::solve(const on& where, const array& b, const array& x) {
    expect_same_device(where.stream());
    const std::string call = std::string(name_) + ": ";
    if (!(x.shape() == b.shape())) {
        throw argument_error(call + "the solution has shape " + b.shape().to_string() + ", the array for it " +
                             x.shape().to_string());
    }
    if (x.dtype() != b.dtype()) {
        throw argument_type_error(call + "the solution is " + described(b) + ", the array for it " + described(x));
    }
    if (!x.has_own_elements()) {
        throw argument_error(call + "elements of the array for the solution, " + x.to_string() +
                             ", stand for many; give one whose elements have memory of their own");
    }
    if (x.size() == 0) {
        return {};
    }
    if (!share_memory(x.device(), b.device())) {
        throw argument_error(call + "the right-hand side lies on " + b.device().name() +
                             ", the array for the solution on " + x.device().name() + "; give one on " +
                             b.device().name());
    }
    expect_room_for_copies({&b, &x});
    const factorization::manner& manner = by_->how();
    on next = where;
    array from = b;
    array to = x;
    if (elsewhere_ || (manner.wants_columns && (!are_columns(b) || operation::share_bytes(b, x)))) {
        from = packed_columns_like(b, where);
        if (next.site(detail::key).label == nullptr) {
            next.label("copy of the operand");
        }
        copy(next, from, b);
        next = next_step(next);
    }
    if (elsewhere_ || (manner.wants_columns && !are_columns(x))) {
        to = packed_columns_like(x, where);
    }
    const bool is_in_place = operation::share_bytes(from, to);
    const bool is_same = operation::have_one_footprint(from, to);
    sparse_accesses accesses;
    accesses.push_back(access_to(to, access_mode::write, !is_in_place));
    if (!is_same) {
        accesses.push_back(access_to(from, is_in_place ? access_mode::write : access_mode::read));
    }
    accesses.push_back(factors_of(progress_, manner.solves_at_once ? access_mode::read : access_mode::write));
    completion end =
        enqueue_phase(next, "sparse solution", accesses, manner.form,
                      [by = by_, right = columns_of(from), left = columns_of(to)] { by->solve(right, left); });
    if (to.buffer().resource(detail::key) != x.buffer().resource(detail::key)) {
        on last = next_step(next);
        end = copy(last.label("copy of the result"), array(x), to);
    }
    return end;
}

}  // namespace weir::calls
