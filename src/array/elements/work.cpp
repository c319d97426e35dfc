// One call of an element-wise kernel of a program: its operands, its accesses, and how it is enqueued.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/converting_copy.hpp"
#include "array/cuda/call.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/cuda/launch.hpp"
#include "array/elements/kernel.hpp"
#include "array/elements/operands.hpp"
#include "array/elements/signature.hpp"
#include "array/elements/source.hpp"
#include "array/operation.hpp"
#include "array/walk.hpp"
#include "backend/shared_loop.hpp"
#include "frontier/small_vector.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/device.hpp"
#include "weir/elementwise.hpp"
#include "weir/error.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"
#include "weir/shape.hpp"
#include "weir/stream.hpp"

namespace weir::elements {

namespace {

static_assert(most_parameters <= walk::large_plan::most_operands);

/// From this number of elements on, several threads work on one operation: waking them takes some tens of microseconds.
constexpr std::int64_t worth_sharing = 100'000;
/// The smallest number of elements that a thread takes at a time.
constexpr std::int64_t least_part = 32'768;

/// The checked operands of one call.
class element_call : private typed_operands {
public:
    element_call(const on& where, const detail::element_kernel& what, std::span<const operand> inputs,
                 std::span<std::optional<array>> outputs, std::span<const runtime::access_request> besides = {})
        : typed_operands(where, what.title(), what.text().signature, inputs, outputs), what_(what), besides_(besides) {
        find_shape();
    }

    /// Makes the outputs that were not given, and enqueues the operation.
    completion enqueue();
    /// Compiles and loads what `enqueue` would run. Outputs that were not given are made and dropped.
    void prepare();

private:
    void find_shape();
    [[nodiscard]] bool gives_shape() const;
    void check_outputs() const;
    void declare();
    const array& untangled(const array& in, bool is_raw);
    [[nodiscard]] walk::large_plan plan();
    void make_outputs();
    [[nodiscard]] cuda_form form_of(const walk::large_plan& all) const;
    completion enqueue_on_host();
    completion enqueue_on_device(const array_kernels::kernels& device);

    const detail::element_kernel& what_;
    std::span<const runtime::access_request> besides_;
    std::vector<runtime::access_request> accesses_;
    std::vector<converting_copy> copies_;  ///< of inputs that writing the outputs would change too early
    std::array<std::optional<array>, most_parameters> aside_;
    std::array<const array*, most_parameters>
        read_{};  ///< the array that is read for each input; null for a number and a raw input
};

void element_call::find_shape() {
    const array* given = nullptr;
    for (const std::optional<array>& one : outputs_) {
        if (one && given != nullptr && one->shape() != given->shape()) {
            throw argument_error(start() + "outputs have the shapes " + given->shape().to_string() + " and " +
                                 one->shape().to_string() + ": all outputs have one shape");
        }
        given = one ? &*one : given;
    }
    if (given == nullptr && !gives_shape()) {
        throw argument_error(
            start() +
            "no input gives the results their shape, since arrays that are raw do not: pass arrays for the outputs");
    }
    if (given == nullptr || given->shape() == shape_) {
        return;
    }
    std::optional<shape> both;
    try {
        both = broadcast_shapes(shape_, given->shape());
    } catch (const argument_error&) {  // NOLINT(bugprone-empty-catch): reported below
    }
    if (both != given->shape()) {
        throw argument_error(start() + "the results have the shape " + shape_.to_string() + ", the arrays for them " +
                             given->shape().to_string());
    }
    shape_ = given->shape();
}

/// Whether the shape of the results follows from the inputs: without arrays it is that of a number, unless the kernel indexes arrays.
bool element_call::gives_shape() const {
    bool has_raw = false;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        if (inputs_[k].is_array() && !signature_.inputs[k].is_raw) {
            return true;
        }
        has_raw = has_raw || signature_.inputs[k].is_raw;
    }
    return !has_raw;
}

void element_call::check_outputs() const {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const array& x = *outputs_[k];
        if (x.dtype() != types_.outputs[k]) {
            throw argument_type_error(start() + "the output \"" + elements::to_string(signature_.outputs[k]) +
                                      "\" got an array of " + name_of(x.dtype()) +
                                      ": pass one of that type, or declare the output \"T " +
                                      signature_.outputs[k].name + "\"");
        }
        operation::expect_on_device_of(where_, x);
        detail::expect_own_elements(x);
        for (std::size_t other = 0; other < k; ++other) {
            if (operation::shared_by(x, *outputs_[other]) != operation::sharing::nothing) {
                throw argument_error(start() + "the arrays for the outputs " + signature_.outputs[other].name +
                                     " and " + signature_.outputs[k].name +
                                     " share memory: pass arrays that do not overlap");
            }
        }
    }
}

/// The input or, if writing an output would change elements before they are read, memory for a copy of the input.
/// Each element of a raw input may be read at any time, at its place in C order.
const array& element_call::untangled(const array& in, bool is_raw) {
    bool is_declared = false;
    bool is_entangled = is_raw && !in.is_contiguous();
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const operation::sharing common = operation::shared_by(*outputs_[k], in);
        if (common != operation::sharing::nothing) {
            is_declared = is_declared || operation::are_of_one_buffer(*outputs_[k], in);
            // Results then depend on the former contents: this operation does not repair results of a failed one.
            accesses_[k].overwrites = false;
        }
        is_entangled = is_entangled || common == operation::sharing::entangled ||
                       (is_raw && common != operation::sharing::nothing);
    }
    if (!is_entangled) {
        if (!is_declared) {
            accesses_.push_back(operation::reads(in));
        }
        return in;
    }
    std::optional<array>& copy = aside_[copies_.size()];
    copy = detail::internal(empty(in.shape(), in.dtype(), where_.stream(), where_.site(detail::key).where));
    copies_.emplace_back(*copy, in);
    accesses_.push_back(operation::reads(in));
    accesses_.push_back(operation::writes(*copy));
    return *copy;
}

void element_call::declare() {
    accesses_.reserve(outputs_.size() + 2 * inputs_.size());
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        accesses_.push_back(operation::writes(*outputs_[k]));
        accesses_.back().overwrites = signature_.outputs[k].use != element_use::inout;
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const bool is_raw = signature_.inputs[k].is_raw;
        const array* const read = inputs_[k].is_array() ? &untangled(inputs_[k].of_array(), is_raw) : nullptr;
        if (is_raw) {
            const raw_input seen{read->device_data(), read->size()};
            std::memcpy(numbers_[k].bytes.data(), &seen, sizeof seen);
        }
        read_[k] = is_raw ? nullptr : read;
    }
    accesses_.insert(accesses_.end(), besides_.begin(), besides_.end());
}

walk::large_plan element_call::plan() {
    static constexpr std::array<std::int64_t, shape::most> zeros{};
    const std::span<const std::int64_t> nowhere = std::span(zeros).first(shape_.dimensions());
    std::array<walk::operand, most_parameters> operands;
    std::size_t count = 0;
    for (const std::optional<array>& one : outputs_) {
        operands[count++] = operation::operand_of(*one);
    }
    std::array<std::optional<array>, most_parameters> views;  // own the strides that are planned
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        if (read_[k] == nullptr) {
            operands[count++] = {nullptr, nowhere};
            continue;
        }
        const array& seen = read_[k]->shape() == shape_ ? *read_[k] : views[k].emplace(read_[k]->broadcast_to(shape_));
        operands[count++] = {seen.device_data(), read_[k]->size() == 1 ? nowhere : seen.strides()};
    }
    return {shape_.extents(), std::span(operands).first(count),
            what_.text().uses_index ? walk::order_of_elements::c : walk::order_of_elements::any};
}

/// The operation on the host.
class host_elements {
public:
    host_elements(std::vector<converting_copy> copies, walk::large_plan all, host_loop loop, std::size_t outputs,
                  std::span<const number_bytes> inputs, bool shares)
        : copies_(std::move(copies)), plan_(std::move(all)), loop_(loop), outputs_(outputs), shares_(shares) {
        for (const number_bytes& one : inputs) {
            numbers_.push_back(one);
        }
    }

    void operator()() const {
        for (const converting_copy& one : copies_) {
            one();
        }
        const std::int64_t elements = plan_.elements();
        if (!shares_ || elements < worth_sharing) {
            run(0, elements);
            return;
        }
        // Several parts for each thread, since some threads start late.
        const auto threads = static_cast<std::int64_t>(backend::loop_threads());
        const std::int64_t part = std::max(least_part, elements / (4 * threads) + 1);
        const std::int64_t parts = (elements - 1) / part + 1;
        backend::share_loop(static_cast<std::size_t>(parts), [&](std::size_t which) {
            const std::int64_t first = static_cast<std::int64_t>(which) * part;
            run(first, std::min(first + part, elements));
        });
    }

private:
    /// Computes the elements begin to end - 1, in the order of the plan.
    void run(std::int64_t begin, std::int64_t end) const {
        const std::size_t dimensions = plan_.dimensions();
        const std::size_t operands = outputs_ + numbers_.size();
        const std::int64_t columns = dimensions > 0 ? plan_.extent(dimensions - 1) : 1;
        const std::int64_t rows = dimensions > 1 ? plan_.extent(dimensions - 2) : 1;
        std::array<std::int64_t, most_parameters> row_strides{};
        std::array<std::int64_t, most_parameters> column_strides{};
        for (std::size_t k = 0; k < operands; ++k) {
            row_strides[k] = plan_.row_stride(k);
            column_strides[k] = plan_.column_stride(k);
        }
        while (begin < end) {
            const std::int64_t column = begin % columns;
            const std::int64_t row = begin / columns % rows;
            const bool whole_rows = column == 0 && end - begin >= columns;
            const std::int64_t row_count = whole_rows ? std::min(rows - row, (end - begin) / columns) : 1;
            const std::int64_t column_count = whole_rows ? columns : std::min(columns - column, end - begin);
            std::array<std::byte*, most_parameters> first;
            for (std::size_t k = 0; k < operands; ++k) {
                first[k] = plan_.first(k);
                if (first[k] == nullptr && k >= outputs_) {  // a number; only read
                    first[k] = const_cast<std::byte*>(numbers_[k - outputs_].bytes.data());
                    continue;
                }
                first[k] += row * row_strides[k] + column * column_strides[k];
                std::int64_t outer = begin / columns / rows;
                for (std::size_t d = dimensions > 2 ? dimensions - 2 : 0; d > 0; --d) {
                    first[k] += outer % plan_.extent(d - 1) * plan_.stride(d - 1, k);
                    outer /= plan_.extent(d - 1);
                }
            }
            loop_(first.data(), row_strides.data(), column_strides.data(), row_count, column_count, begin,
                  plan_.elements());
            begin += row_count * column_count;
        }
    }

    std::vector<converting_copy> copies_;
    walk::large_plan plan_;
    host_loop loop_;
    std::size_t outputs_;
    detail::small_vector<number_bytes, 4> numbers_;  ///< for each input, used for numbers
    bool shares_;
};

completion element_call::enqueue_on_host() {
    const host_loop loop = what_.on_host(types_);
    // On the inline device only the calling thread runs operations; simulated devices have a time of their own.
    const bool shares = where_.stream().device().kind() == device_kind::cpu;
    return operation::enqueue(where_, accesses_,
                              host_elements(std::move(copies_), plan(), loop, outputs_.size(),
                                            std::span(numbers_).first(inputs_.size()), shares));
}

cuda_form element_call::form_of(const walk::large_plan& all) const {
    const auto elements = static_cast<std::uint64_t>(all.elements());
    cuda_form form{array_kernels::rank_for(all.dimensions()), all.dimensions() <= 1, elements > INT32_MAX};
    for (std::size_t k = 0; k < outputs_.size() + inputs_.size(); ++k) {
        const bool is_number = k >= outputs_.size() && read_[k - outputs_.size()] == nullptr;
        const dtype stored = k < outputs_.size() ? types_.outputs[k] : types_.inputs[k - outputs_.size()];
        const bool follows = elements <= 1 || all.column_stride(k) == static_cast<std::int64_t>(size_of(stored));
        form.packed = form.packed && (is_number || follows);
    }
    form.rank = form.packed ? 1 : form.rank;
    return form;
}

completion element_call::enqueue_on_device(const array_kernels::kernels& device) {
    using array_kernels::word;
    const walk::large_plan all = plan();
    const auto elements = static_cast<std::uint64_t>(all.elements());
    const std::size_t operands = outputs_.size() + inputs_.size();
    const cuda_form form = form_of(all);
    const backend::capability::function_handle function = what_.on_device(device, types_, form);

    array_kernels::launches some(device);
    for (const converting_copy& one : copies_) {
        one.add_to(some);
    }
    if (elements > 0) {
        detail::small_vector<std::uint64_t, 20> words;
        words.push_back(elements);
        for (std::size_t k = 0; k < operands; ++k) {
            std::array<std::uint64_t, 2> value{};
            if (k >= outputs_.size() && read_[k - outputs_.size()] == nullptr) {
                std::memcpy(value.data(), numbers_[k - outputs_.size()].bytes.data(), sizeof value);
            } else {
                value[0] = word(all.first(k));
            }
            words.push_back(value[0]);
            words.push_back(value[1]);
        }
        if (!form.packed) {
            array_kernels::add_layout(words, all, form.rank, operands);
        }
        array_kernels::small_launch head;
        head.in = &device;
        head.kernel = function;
        head.blocks = static_cast<unsigned>(array_kernels::blocks_for(
            device, elements, std::uint64_t{array_kernels::threads} * array_kernels::elements_at_once));
        some.add(head, {words.begin(), words.end()});
    }
    return array_kernels::enqueue(where_, accesses_, std::move(some));
}

void element_call::make_outputs() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        if (!outputs_[k]) {
            outputs_[k] = empty(shape_, types_.outputs[k], where_.stream(), where_.site(detail::key).where);
        }
    }
}

void element_call::prepare() {
    make_outputs();
    check_outputs();
    declare();
    const array_kernels::kernels* const device = array_kernels::kernels_of(where_.stream().device());
    if (device == nullptr) {
        static_cast<void>(what_.on_host(types_));
        return;
    }
    array_kernels::launches copying(*device);
    for (const converting_copy& one : copies_) {
        one.add_to(copying);
    }
    static_cast<void>(what_.on_device(*device, types_, form_of(plan())));
}

completion element_call::enqueue() {
    return with_new_outputs([this] {
        make_outputs();
        check_outputs();
        declare();
        const array_kernels::kernels* const device = array_kernels::kernels_of(where_.stream().device());
        return device != nullptr ? enqueue_on_device(*device) : enqueue_on_host();
    });
}

}  // namespace

}  // namespace weir::elements

namespace weir {

elementwise_kernel::elementwise_kernel(std::string_view inputs, std::string_view outputs, std::string_view body,
                                       std::string_view name)
    : kernel_(std::make_shared<const detail::element_kernel>(inputs, outputs, body, name)) {}

completion elementwise_kernel::run(const on& where, std::span<const operand> inputs,
                                   std::span<std::optional<array>> outputs,
                                   std::initializer_list<token_argument> tokens) const {
    return run_beside(where, inputs, outputs, detail::accesses_of(tokens), detail::key);
}

completion elementwise_kernel::run_beside(const on& where, std::span<const operand> inputs,
                                          std::span<std::optional<array>> outputs,
                                          std::span<const runtime::access_request> besides,
                                          detail::passkey /*key*/) const {
    const on named = where.named(kernel_->label(), detail::key);
    return elements::element_call(named, *kernel_, inputs, outputs, besides).enqueue();
}

void elementwise_kernel::prepare(const on& where, std::span<const operand> inputs,
                                 std::span<const std::optional<array>> given) const {
    std::vector<std::optional<array>> all(given.begin(), given.end());
    if (all.empty()) {
        all.resize(outputs());
    }
    elements::element_call(where, *kernel_, inputs, all).prepare();
}

array elementwise_kernel::compute_one(const on& where, std::span<const operand> inputs) const {
    if (outputs() != 1) {
        throw argument_error("the element-wise kernel " + kernel_->to_string() + " has " + std::to_string(outputs()) +
                             " outputs: call compute, which gives an array for each");
    }
    std::optional<array> out;
    run(where, inputs, std::span(&out, 1));
    return *std::move(out);
}

std::vector<array> elementwise_kernel::compute(const on& where, std::span<const operand> inputs) const {
    std::vector<std::optional<array>> made(outputs());
    run(where, inputs, made);
    std::vector<array> all;
    all.reserve(made.size());
    for (std::optional<array>& one : made) {
        all.push_back(*std::move(one));
    }
    return all;
}

completion elementwise_kernel::launch(const on& where, std::initializer_list<operand> inputs,
                                      std::initializer_list<array*> outputs,
                                      std::initializer_list<token_argument> tokens) const {
    std::vector<std::optional<array>> all;
    for (const array* const one : outputs) {
        if (one == nullptr) {
            throw argument_error("the element-wise kernel " + kernel_->to_string() +
                                 ": an output is null: pass the address of an array, or call compute for new ones");
        }
        all.emplace_back(*one);
    }
    return run(where, {inputs.begin(), inputs.size()}, all, tokens);
}

const std::string& elementwise_kernel::name() const noexcept { return kernel_->name(); }
std::size_t elementwise_kernel::inputs() const noexcept { return kernel_->text().signature.inputs.size(); }
std::size_t elementwise_kernel::outputs() const noexcept { return kernel_->text().signature.outputs.size(); }
std::string elementwise_kernel::to_string() const { return "<weir.elementwise " + kernel_->to_string() + ">"; }

}  // namespace weir
