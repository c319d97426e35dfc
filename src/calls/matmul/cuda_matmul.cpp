#include "calls/matmul/cuda_matmul.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/cuda/body.hpp"
#include "array/cuda/launch.hpp"
#include "array/loops.hpp"
#include "backend/backend.hpp"
#include "calls/execution.hpp"
#include "calls/matmul/cublaslt_provider.hpp"
#include "calls/matmul/route.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/arithmetic.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/task.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/launch.hpp"

namespace weir::calls {

namespace {

/// What NVIDIA recommends for its largest devices.
constexpr std::uint64_t most_library_workspace = std::uint64_t{32} << 20;

/// The largest power of two, up to 256, that divides all numbers.
class common_alignment {
public:
    void add(std::int64_t number) noexcept { bits_ |= static_cast<std::uint64_t>(number); }
    void add(const std::byte* address) noexcept { bits_ |= reinterpret_cast<std::uintptr_t>(address); }
    [[nodiscard]] std::uint32_t get() const noexcept {
        return static_cast<std::uint32_t>((bits_ | 256) & ~((bits_ | 256) - 1));
    }

private:
    std::uint64_t bits_ = 0;
};

/// The matrices of one call of the library.
struct cublaslt_addresses {
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    std::byte* d = nullptr;
};

/// A product as calls of the library: one for each index of the axes of the batch that are not at equal distances.
struct cublaslt_calls {
    cublaslt_problem problem;
    std::vector<cublaslt_addresses> all;
};

/// The axis of the batch with the most matrices that lie as the library counts them; none if there is none such.
std::optional<std::size_t> counted_axis(const blas_product& p, std::int64_t item) {
    std::optional<std::size_t> best;
    for (std::size_t axis = 0; axis < p.batch.size(); ++axis) {
        bool fits = p.batch[axis] <= std::numeric_limits<std::int32_t>::max();
        for (const blas_matrix* const each : {&p.left, &p.right, &p.target}) {
            fits = fits && each->batch_strides[axis] >= 0 && each->batch_strides[axis] % item == 0;
        }
        if (fits && (!best || p.batch[axis] > p.batch[*best])) {
            best = axis;
        }
    }
    return best;
}

cublaslt_calls calls_of(const blas_product& p) {
    const auto item = static_cast<std::int64_t>(size_of(p.type));
    const std::optional<std::size_t> counted = counted_axis(p, item);
    cublaslt_calls made;
    made.problem.number = static_cast<int>(cublaslt_number_of(p.type));
    made.problem.rows = p.rows;
    made.problem.columns = p.columns;
    made.problem.depth = p.depth;
    made.problem.count = counted ? p.batch[*counted] : 1;
    made.problem.turns_a = p.left.is_transposed;
    made.problem.turns_b = p.right.is_transposed;
    const auto describe = [&](const blas_matrix& of) {
        common_alignment alignment;
        alignment.add(of.first);
        for (const std::int64_t stride : of.batch_strides) {
            alignment.add(stride);
        }
        return cublaslt_matrix{of.leading, counted ? of.batch_strides[*counted] / item : 0, alignment.get()};
    };
    made.problem.a = describe(p.left);
    made.problem.b = describe(p.right);
    made.problem.d = describe(p.target);
    made.all.push_back({p.left.first, p.right.first, p.target.first});
    for (std::size_t axis = 0; axis < p.batch.size(); ++axis) {
        if (counted == axis) {
            continue;
        }
        const std::size_t known = made.all.size();
        for (std::int64_t i = 1; i < p.batch[axis]; ++i) {
            for (std::size_t at = 0; at < known; ++at) {
                const cublaslt_addresses from = made.all[at];
                made.all.push_back({from.a + i * p.left.batch_strides[axis], from.b + i * p.right.batch_strides[axis],
                                    from.d + i * p.target.batch_strides[axis]});
            }
        }
    }
    return made;
}

/// A factor in the type in which the library scales.
using scale_bytes = std::array<std::byte, 16>;

scale_bytes stored_factor(std::complex<double> factor, dtype type) {
    scale_bytes bytes{};
    scalar(is_complex(type) ? scalar(factor) : scalar(factor.real())).store(loops::computed_in(type), bytes.data());
    return bytes;
}

std::uint32_t epilogue_of(matmul_epilog epilog) noexcept {
    std::uint32_t bits = adds_bias(epilog) ? cublaslt_epilogue_bias : 0;
    bits |= is_relu(epilog) ? cublaslt_epilogue_relu : 0;
    bits |= is_gelu(epilog) ? cublaslt_epilogue_gelu : 0;
    return bits == 0 ? cublaslt_epilogue_default : bits;
}

/// The same as epilog.cpp.
constexpr const char* epilog_bodies = R"cuda(
namespace weir_matmul {
template <class T>
__device__ T relu_of(T x) {
    return x < T(0) ? T(0) : x;
}
template <class T>
__device__ T gelu_of(T x) {
    return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}
struct relu {
    template <class T>
    __device__ T operator()(T x) const { return relu_of(x); }
};
struct gelu {
    template <class T>
    __device__ T operator()(T x) const { return gelu_of(x); }
};
struct relu_bias {
    template <class T>
    __device__ T operator()(T x, T bias) const { return relu_of(x + bias); }
};
struct gelu_bias {
    template <class T>
    __device__ T operator()(T x, T bias) const { return gelu_of(x + bias); }
};
}  // namespace weir_matmul
)cuda";

array_kernels::function function_of(matmul_epilog epilog) {
    switch (epilog) {
        case matmul_epilog::relu:
            return array_kernels::function_of({"weir_matmul::relu", epilog_bodies});
        case matmul_epilog::gelu:
            return array_kernels::function_of({"weir_matmul::gelu", epilog_bodies});
        case matmul_epilog::relu_bias:
            return array_kernels::function_of({"weir_matmul::relu_bias", epilog_bodies});
        case matmul_epilog::gelu_bias:
            return array_kernels::function_of({"weir_matmul::gelu_bias", epilog_bodies});
        case matmul_epilog::none:
        case matmul_epilog::bias:
            break;
    }
    return array_kernels::of(binary_operation::add);
}

/// A plan of the target, again as what is read of it, and of one operand more, whose strides are those of operand 1 of `elements`, or
/// which is a number.
walk::plan with_target_read(const walk::plan& elements, bool has_second, bool is_number) {
    per_dimension extents;
    std::array<per_dimension, 3> strides;
    for (std::size_t i = 0; i < elements.dimensions(); ++i) {
        extents.push_back(elements.extent(i));
        strides[0].push_back(elements.stride(i, 0));
        strides[1].push_back(elements.stride(i, 0));
        strides[2].push_back(has_second ? elements.stride(i, 1) : 0);
    }
    const auto all = [](const per_dimension& numbers) {
        return std::span<const std::int64_t>(numbers.begin(), numbers.size());
    };
    const std::array<walk::operand, 3> operands{
        walk::operand{elements.first(0), all(strides[0])}, walk::operand{elements.first(0), all(strides[1])},
        walk::operand{has_second ? elements.first(1) : nullptr, all(strides[2])}};
    return {all(extents), std::span(operands).first(has_second || is_number ? 3 : 2)};
}

void add_epilog(const matmul_steps& steps, array_kernels::launches& to) {
    if (steps.epilog == matmul_epilog::none) {
        return;
    }
    const array_kernels::argument element{steps.product.type, loops::computed_in(steps.product.type), nullptr};
    const std::array<array_kernels::argument, 2> inputs{element, element};
    const bool has_bias = adds_bias(steps.epilog);
    to.add(function_of(steps.epilog), element, std::span(inputs).first(has_bias ? 2 : 1),
           with_target_read(steps.elements, has_bias, false));
}

/// The target times a factor, or 0.
void add_scaled_target(const matmul_steps& steps, array_kernels::launches& to) {
    const dtype type = steps.product.type;
    if (steps.product.beta == 0.0) {
        const scale_bytes zero{};
        to.add_fill(with_target_read(steps.elements, false, false), type, zero.data());
        return;
    }
    const scale_bytes factor = stored_factor(steps.product.beta, type);
    const array_kernels::argument element{type, loops::computed_in(type), nullptr};
    const std::array<array_kernels::argument, 2> inputs{
        element, array_kernels::argument{loops::computed_in(type), loops::computed_in(type), factor.data()}};
    to.add(array_kernels::of(binary_operation::multiply), element, inputs,
           with_target_read(steps.elements, false, true));
}

/// The work of one product in a CUDA stream: a native task's.
struct cuda_matmul_work {
    explicit cuda_matmul_work(const array_kernels::kernels& in) : before(in), after(in) {}

    array_kernels::launches before;
    array_kernels::launches after;
    const cublaslt_provider* of = nullptr;
    std::shared_ptr<const cublaslt_descriptions> what;
    std::vector<cublaslt_addresses> all;
    cublaslt_choice choice;
    alignas(16) scale_bytes alpha{};
    alignas(16) scale_bytes beta{};
    std::byte* workspace = nullptr;
    std::size_t left = matmul_geometry::a_input;  ///< the inputs that the library takes as its first and second
    std::size_t right = matmul_geometry::b_input;
    bool has_bias = false;  ///< its address is in the description

    /// Addresses in kernels' arguments and in the description stay.
    [[nodiscard]] bool can_move() const noexcept { return before.empty() && after.empty() && !has_bias; }
    void operator()(const call_shift& by) const {
        const detail::queue_handle into{detail::native_queue_handle()};
        if (!before.empty()) {
            before(into);
        }
        for (const cublaslt_addresses& at : all) {
            std::byte* const target = at.d + by.result;
            expect_cublaslt(
                of->library().multiply(of->handle(), what->product, alpha.data(), at.a + by.inputs[left], what->a,
                                       at.b + by.inputs[right], what->b, beta.data(), target, what->d, target, what->d,
                                       &choice.algorithm, workspace + by.workspace, choice.workspace_bytes, into.value),
                "cublasLtMatmul");
        }
        if (!after.empty()) {
            after(into);
        }
    }
};

/// Stands for a workspace whose address is not known yet: as much aligned, and never used.
std::byte* address_of_workspace() noexcept { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20U); }

/// A product by cuBLASLt, its algorithm chosen. The layout has the addresses, or stands for arrays that are as much aligned.
class cuda_matmul final : public call_plan {
public:
    cuda_matmul(const matmul_call& call, const call_layout& layout)
        : where_(layout.on), route_(call.what(), layout, demands), by_(&cublaslt_provider::of(layout.on)) {
        const matmul_steps steps = route_.steps(address_of_workspace());
        if (steps.product.depth == 0) {
            return;
        }
        const std::size_t limit = call.limit().bytes(layout.on);
        const std::size_t own = route_.workspace_bytes();
        problem_ = calls_of(steps.product).problem;
        problem_.most_workspace = std::min<std::uint64_t>(most_library_workspace, limit > own ? limit - own : 0);
        choose(steps);
        if (!choice_) {
            refuse(call, limit);
        }
    }

    [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
        return route_.workspace_bytes() + (choice_ ? choice_->workspace_bytes : 0);
    }
    /// Compiles the kernels that the work needs besides cuBLASLt.
    [[nodiscard]] call_work work(std::byte* workspace) const override {
        const matmul_steps steps = route_.steps(workspace);
        const array_kernels::kernels& kernels = *where_.state(detail::key).driver().can().kernels;
        cuda_matmul_work made(kernels);
        for (const converting_copy& each : steps.copies) {
            each.add_to(made.before);
        }
        if (choice_) {
            made.of = by_;
            made.what = std::make_shared<const cublaslt_descriptions>(by_->library(), problem_,
                                                                      steps.bias_of_rows.value_or(nullptr));
            made.all = calls_of(steps.product).all;
            made.choice = *choice_;
            made.alpha = stored_factor(steps.product.alpha, steps.product.type);
            made.beta = stored_factor(steps.product.beta, steps.product.type);
            made.workspace = workspace + route_.workspace_bytes();
            made.has_bias = (problem_.epilogue & cublaslt_epilogue_bias) != 0;
            if (steps.product.is_product_turned) {
                std::swap(made.left, made.right);
            }
        } else {
            add_scaled_target(steps, made.before);
        }
        if (!does_epilog_) {
            add_epilog(steps, made.after);
        }
        if (steps.scatter) {
            steps.scatter->add_to(made.after);
        }
        return call_work::native_task(std::move(made));
    }

    /// What the library is asked, and by whom; null if it has nothing to do.
    [[nodiscard]] const cublaslt_problem* problem() const noexcept { return choice_ ? &problem_ : nullptr; }
    [[nodiscard]] cublaslt_provider& provider() const noexcept { return *by_; }
    [[nodiscard]] const cublaslt_choice& choice() const { return *choice_; }

private:
    static constexpr matmul_demands demands{false, std::numeric_limits<std::int64_t>::max() / 256};

    /// Throws out_of_memory if the library has an algorithm that needs more than the limit leaves, else device_error.
    [[noreturn]] void refuse(const matmul_call& call, std::size_t limit) {
        const std::string name = call.name();
        problem_.most_workspace = most_library_workspace;
        if (const std::optional<cublaslt_choice> larger = by_->choose(problem_)) {
            throw out_of_memory(name + " needs " + std::to_string(route_.workspace_bytes() + larger->workspace_bytes) +
                                " bytes on " + where_.name() + " besides operands and result; its memory limit is " +
                                std::to_string(limit) + " bytes: give it a higher memory_limit, or smaller operands");
        }
        throw device_error(name + ": cuBLASLt has no algorithm for matrices of " + name_of(call.result_type()) +
                           " that lie so; compute with execution cpu");
    }

    /// Whether the library's epilog is as accurate as the element type. Its GELU of float64 is not: the errors are those of a coefficient
    /// that was rounded to float32 (1e-9 on an H200, where 1e-13 is allowed).
    [[nodiscard]] static bool is_accurate(matmul_epilog epilog, dtype type) noexcept {
        return !(is_gelu(epilog) && type == dtype::float64);
    }

    /// The library does the epilog itself where it can: it knows a bias for the rows of the target alone, and not all types.
    void choose(const matmul_steps& steps) {
        const bool has_form = !adds_bias(steps.epilog) || steps.bias_of_rows;
        if (steps.epilog != matmul_epilog::none && has_form && is_accurate(steps.epilog, steps.product.type)) {
            problem_.epilogue = epilogue_of(steps.epilog);
            if (steps.bias_of_rows) {
                common_alignment alignment;
                alignment.add(*steps.bias_of_rows);
                problem_.bias_alignment = alignment.get();
            }
            choice_ = by_->choose(problem_);
            does_epilog_ = choice_.has_value();
        }
        if (!choice_) {
            problem_.epilogue = cublaslt_epilogue_default;
            problem_.bias_alignment = 0;
            choice_ = by_->choose(problem_);
        }
    }

    device where_;
    matmul_route route_;
    cublaslt_provider* by_;
    cublaslt_problem problem_;
    std::optional<cublaslt_choice> choice_;  ///< none if there is nothing to sum up
    bool does_epilog_ = false;
};

call_layout tuned_layout(const device& on, std::span<const array> operands, const array& result) {
    call_layout layout{on, {}, placement::of(result)};
    for (const array& each : operands) {
        layout.inputs.push_back({placement::of(each), false});
    }
    return layout;
}

/// The milliseconds of the fastest of several executions.
double fastest_of(const matmul_call& call, const call_terms& terms, const on& where, std::span<const array> operands,
                  const array& result, buffer& workspace, int repetitions) {
    double best = std::numeric_limits<double>::infinity();
    prepared_calls kept;
    for (int i = 0; i <= repetitions; ++i) {  // the first loads kernels
        const event begin = where.stream().record({.timing = true});
        execute(call, terms, where, operands, result, workspace, &kept);
        const event end = where.stream().record({.timing = true});
        end.synchronize();
        if (i > 0) {
            best = std::min(best, begin.elapsed_ms(end));
        }
    }
    return best;
}

}  // namespace

bool cuda_matmul_provider::serves(const device& on) const noexcept {
    return on.state(detail::key).driver().can().libraries != nullptr;
}

std::unique_ptr<const call_plan> cuda_matmul_provider::plan(const matmul_call& call, const call_layout& layout) const {
    return std::make_unique<const cuda_matmul>(call, layout);
}

int tune_cuda_matmul(const matmul_call& call, const call_terms& terms, const on& where, std::span<const array> operands,
                     const matmul_tuning& how) {
    const device here = computing_device(call.name(), terms.execution, leading_input(operands), where.stream());
    if (!cuda_matmul_provider{}.serves(here) || call.result_shape().elements() == 0) {
        return 0;
    }
    std::vector<array> held;
    for (const array& each : operands) {
        const bool is_there = share_memory(here, device_of(each, here));
        held.push_back(is_there ? each : detail::internal(to(where, each, here)));
    }
    const array result =
        detail::internal(empty(call.result_shape(), call.result_type(), where.stream(), where.site(detail::key).where));
    const cuda_matmul plan(call, tuned_layout(here, held, result));
    if (plan.problem() == nullptr) {
        return 0;
    }
    cublaslt_provider& by = plan.provider();
    const std::vector<cublaslt_choice> all = by.suggested(*plan.problem(), how.candidates);
    cublaslt_choice best = plan.choice();
    double least = std::numeric_limits<double>::infinity();
    buffer workspace;
    try {
        for (const cublaslt_choice& each : all) {
            by.keep(*plan.problem(), each);
            const double taken = fastest_of(call, terms, where, held, result, workspace, how.repetitions);
            if (taken < least) {
                least = taken;
                best = each;
            }
        }
    } catch (...) {
        by.keep(*plan.problem(), best);
        kept_matmuls().clear();
        throw;
    }
    by.keep(*plan.problem(), best);
    kept_matmuls().clear();  // they have the algorithm from before
    return static_cast<int>(all.size());
}

}  // namespace weir::calls
