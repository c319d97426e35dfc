// One call of a reduction of a program: its operands, its accesses, and how it is enqueued.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/axes.hpp"
#include "array/converting_copy.hpp"
#include "array/cuda/call.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/cuda/launch.hpp"
#include "array/cuda/reduction.hpp"
#include "array/elements/operands.hpp"
#include "array/elements/reduction_host.hpp"
#include "array/elements/reduction_program.hpp"
#include "array/elements/reduction_source.hpp"
#include "array/elements/signature.hpp"
#include "array/layout.hpp"
#include "array/operation.hpp"
#include "array/walk.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/device.hpp"
#include "weir/error.hpp"
#include "weir/on.hpp"
#include "weir/operands.hpp"
#include "weir/reduction_kernel.hpp"
#include "weir/shape.hpp"
#include "weir/stream.hpp"

namespace weir::elements {

namespace {

/// The checked operands of one call.
class reduction_call : private typed_operands {
public:
    reduction_call(const on& where, const detail::reduction_program& what, std::span<const operand> inputs,
                   std::span<std::optional<array>> outputs, const along& axes,
                   std::span<const runtime::access_request> besides = {})
        : typed_operands(where, what.title(), what.text().signature, inputs, outputs), what_(what), besides_(besides) {
        find_value();
        find_shapes(axes);
    }

    completion enqueue();
    void prepare();

private:
    void find_value();
    void find_shapes(const along& axes);
    void make_outputs();
    void check_outputs() const;
    void declare();
    [[nodiscard]] host_reduction_plan plan();
    void add_launches(array_kernels::launches& to, const host_reduction_plan& all);

    const detail::reduction_program& what_;
    std::span<const runtime::access_request> besides_;
    value_types value_;          ///< of what is reduced
    std::uint64_t chosen_ = 0;   ///< the reduced axes, one bit each
    shape kept_;                 ///< the shape of the results without the reduced axes
    shape result_;               ///< the shape of new outputs
    std::int64_t elements_ = 1;  ///< of each result
    std::vector<runtime::access_request> accesses_;
    std::vector<converting_copy> copies_;                     ///< of inputs that share memory with outputs
    std::vector<array> aside_;                                ///< kept until the operation is enqueued
    std::array<std::optional<array>, most_parameters> read_;  ///< for each input what is read; nothing for a number
};

void reduction_call::find_value() {
    for (const element_parameter& field : what_.text().value) {
        const std::optional<dtype> found = field.type ? field.type : variable(field.variable);
        if (!found) {
            throw argument_type_error(start() + "the type " + field.variable +
                                      " of the reduced values is not known, since no operand has it: declare a type "
                                      "such as float64");
        }
        const dtype seen = seen_as(*found);
        detail::expect_arithmetic(seen, "a reduction");
        value_.push_back(seen);
    }
}

void reduction_call::find_shapes(const along& axes) {
    chosen_ = layout::chosen_axes(shape_, axes);
    layout::axes kept;
    layout::axes result;
    std::size_t kept_count = 0;
    std::size_t result_count = 0;
    for (std::size_t axis = 0; axis < shape_.dimensions(); ++axis) {
        if ((chosen_ >> axis & 1U) == 0) {
            kept[kept_count++] = shape_[axis];
            result[result_count++] = shape_[axis];
            continue;
        }
        elements_ *= shape_[axis];
        if (axes.keep) {
            result[result_count++] = 1;
        }
    }
    kept_ = shape(kept.first(kept_count));
    result_ = shape(result.first(result_count));
    if (elements_ == 0 && what_.text().identity.empty()) {
        throw argument_error(start() + "there are no elements along the axes, of the shape " + shape_.to_string() +
                             ", and no identity: give one, such as \"0\", or reduce axes that are not empty");
    }
}

void reduction_call::make_outputs() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        if (!outputs_[k]) {
            outputs_[k] = empty(result_, types_.outputs[k], where_.stream(), where_.site(detail::key).where);
        }
    }
}

void reduction_call::check_outputs() const {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const array& x = *outputs_[k];
        if (x.dtype() != types_.outputs[k]) {
            throw argument_type_error(start() + "the output \"" + elements::to_string(signature_.outputs[k]) +
                                      "\" got an array of " + name_of(x.dtype()) +
                                      ": pass one of that type, or declare the output \"T " +
                                      signature_.outputs[k].name + "\"");
        }
        if (x.shape() != result_) {
            throw argument_error(start() + "the results have the shape " + result_.to_string() +
                                 ", and the array for " + signature_.outputs[k].name + " has " + x.shape().to_string());
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

void reduction_call::declare() {
    for (const std::optional<array>& one : outputs_) {
        accesses_.push_back(operation::writes(*one));
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        if (!inputs_[k].is_array()) {
            continue;
        }
        const array& in = inputs_[k].of_array();
        bool is_shared = false;
        for (std::size_t output = 0; output < outputs_.size(); ++output) {
            if (operation::shared_by(*outputs_[output], in) != operation::sharing::nothing) {
                is_shared = true;
                // Results then depend on the former contents: this operation does not repair results of a failed one.
                accesses_[output].overwrites = false;
            }
        }
        accesses_.push_back(operation::reads(in));
        read_[k] = in;
        if (is_shared) {
            aside_.push_back(
                detail::internal(empty(in.shape(), in.dtype(), where_.stream(), where_.site(detail::key).where)));
            copies_.emplace_back(aside_.back(), in);
            accesses_.push_back(operation::writes(aside_.back()));
            read_[k] = aside_.back();
        }
    }
    accesses_.insert(accesses_.end(), besides_.begin(), besides_.end());
}

host_reduction_plan reduction_call::plan() {
    std::array<walk::operand, most_parameters> all;
    std::array<walk::operand, most_parameters> elements;
    std::array<layout::axes, most_parameters> kept_strides;
    std::array<layout::axes, most_parameters> reduced_strides;
    layout::axes extents;
    std::size_t reduced_count = 0;
    for (std::size_t axis = 0; axis < shape_.dimensions(); ++axis) {
        if ((chosen_ >> axis & 1U) != 0) {
            extents[reduced_count++] = shape_[axis];
        }
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        // An output may have the reduced axes with extents of 1.
        const array& x = *outputs_[k];
        const bool has_all = x.dimensions() == shape_.dimensions();
        std::size_t at = 0;
        for (std::size_t axis = 0; axis < shape_.dimensions(); ++axis) {
            if ((chosen_ >> axis & 1U) == 0) {
                kept_strides[k][at] = x.strides()[has_all ? axis : at];
                ++at;
            }
        }
        all[k] = {x.device_data(), kept_strides[k].first(kept_.dimensions())};
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        const std::size_t which = outputs_.size() + k;
        std::byte* first = nullptr;
        if (read_[k]) {
            first = read_[k]->device_data();
            const array seen = read_[k]->shape() == shape_ ? *read_[k] : read_[k]->broadcast_to(shape_);
            std::size_t kept = 0;
            std::size_t reduced = 0;
            for (std::size_t axis = 0; axis < shape_.dimensions(); ++axis) {
                const bool is_reduced = (chosen_ >> axis & 1U) != 0;
                (is_reduced ? reduced_strides[k][reduced++] : kept_strides[which][kept++]) = seen.strides()[axis];
            }
        }
        all[which] = {first, kept_strides[which].first(kept_.dimensions())};
        elements[k] = {first, reduced_strides[k].first(reduced_count)};
    }
    host_reduction_plan made{nullptr,
                             walk::large_plan(kept_.extents(), std::span(all).first(outputs_.size() + inputs_.size())),
                             walk::large_plan(extents.first(reduced_count), std::span(elements).first(inputs_.size()),
                                              walk::order_of_elements::c),
                             outputs_.size(),
                             inputs_.size(),
                             bytes_of_value(value_),
                             1,
                             {}};
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
        made.numbers.push_back(numbers_[k]);
    }
    return made;
}

void reduction_call::add_launches(array_kernels::launches& to, const host_reduction_plan& all) {
    using array_kernels::word;
    if (all.results.elements() == 0) {
        return;
    }
    const std::size_t operands = outputs_.size() + inputs_.size();
    reduction_form form;
    form.rank = array_kernels::rank_for(all.results.dimensions());
    form.reduced_rank = array_kernels::rank_for(all.reduced.dimensions());
    form.none = elements_ == 0;
    array_kernels::reduction_launch now{static_cast<std::uint64_t>(all.results.elements()),
                                        static_cast<std::uint64_t>(std::max<std::int64_t>(elements_, 1)),
                                        all.results.elements() > 1 && (elements_ <= 1 || all.across())};
    std::uint64_t parts_from = 0;
    while (true) {
        const std::uint64_t parts = now.parts();
        form.last = parts == 1;
        form.wide = std::max(now.results * parts, now.elements) > INT32_MAX;
        std::uint64_t parts_to = 0;
        if (!form.last) {
            const auto bytes = static_cast<std::int64_t>(parts * now.results * bytes_of_value(value_));
            aside_.push_back(
                detail::internal(empty({bytes}, dtype::uint8, where_.stream(), where_.site(detail::key).where)));
            accesses_.push_back(operation::writes(aside_.back()));
            parts_to = word(aside_.back().device_data());
        }
        const std::uint64_t lanes = now.lanes();
        const std::uint64_t blocks = now.blocks();
        std::vector<std::uint64_t> words = {
            now.results, now.elements, static_cast<std::uint64_t>(elements_), lanes, now.across ? 1U : 0U, blocks,
            parts_from,  parts_to};
        for (std::size_t k = 0; k < std::max<std::size_t>(inputs_.size(), 1); ++k) {
            std::array<std::uint64_t, 2> value{};
            if (k < inputs_.size() && read_[k]) {
                value[0] = word(all.results.first(outputs_.size() + k));
            } else if (k < inputs_.size()) {
                std::memcpy(value.data(), numbers_[k].bytes.data(), sizeof value);
            }
            words.insert(words.end(), value.begin(), value.end());
        }
        for (std::size_t k = 0; k < outputs_.size(); ++k) {
            words.push_back(word(all.results.first(k)));
        }
        array_kernels::add_layout(words, all.results, form.rank, operands);
        array_kernels::add_layout(words, all.reduced, form.reduced_rank, inputs_.size());
        array_kernels::small_launch head;
        head.in = &to.in();
        head.kernel = what_.on_device(to.in(), types_, value_, form);
        head.blocks = static_cast<unsigned>(blocks * parts);
        to.add(head, words);
        if (form.last) {
            return;
        }
        form.first = false;
        form.none = false;
        parts_from = parts_to;
        now.elements = parts;
        now.across = now.results > 1;
    }
}

void reduction_call::prepare() {
    make_outputs();
    check_outputs();
    declare();
    const array_kernels::kernels* const device = array_kernels::kernels_of(where_.stream().device());
    if (device == nullptr) {
        static_cast<void>(what_.on_host(types_, value_));
        return;
    }
    array_kernels::launches some(*device);
    for (const converting_copy& one : copies_) {
        one.add_to(some);
    }
    add_launches(some, plan());
}

completion reduction_call::enqueue() {
    return with_new_outputs([this] {
        make_outputs();
        check_outputs();
        declare();
        if (const array_kernels::kernels* const device = array_kernels::kernels_of(where_.stream().device())) {
            array_kernels::launches some(*device);
            for (const converting_copy& one : copies_) {
                one.add_to(some);
            }
            add_launches(some, plan());
            return array_kernels::enqueue(where_, accesses_, std::move(some));
        }
        host_reduction_plan all = plan();
        all.program = what_.on_host(types_, value_);
        // On the inline device only the calling thread runs operations; simulated devices have a time of their own.
        const bool shares = where_.stream().device().kind() == device_kind::cpu;
        return operation::enqueue(where_, accesses_, [copies = std::move(copies_), all = std::move(all), shares] {
            for (const converting_copy& one : copies) {
                one();
            }
            reduce_on_host(all, shares);
        });
    });
}

}  // namespace

}  // namespace weir::elements

namespace weir {

reduction_kernel::reduction_kernel(std::string_view inputs, std::string_view outputs, const reduction_texts& texts)
    : kernel_(std::make_shared<const detail::reduction_program>(inputs, outputs, texts)) {}

completion reduction_kernel::run(const on& where, std::span<const operand> inputs,
                                 std::span<std::optional<array>> outputs, const along& axes,
                                 std::initializer_list<token_argument> tokens) const {
    return run_beside(where, inputs, outputs, axes, detail::accesses_of(tokens), detail::key);
}

completion reduction_kernel::run_beside(const on& where, std::span<const operand> inputs,
                                        std::span<std::optional<array>> outputs, const along& axes,
                                        std::span<const runtime::access_request> besides,
                                        detail::passkey /*key*/) const {
    const on named = where.named(kernel_->label(), detail::key);
    return elements::reduction_call(named, *kernel_, inputs, outputs, axes, besides).enqueue();
}

void reduction_kernel::prepare(const on& where, std::span<const operand> inputs, const along& axes) const {
    std::vector<std::optional<array>> made(outputs());
    elements::reduction_call(where, *kernel_, inputs, made, axes).prepare();
}

array reduction_kernel::compute_one(const on& where, std::span<const operand> inputs, const along& axes) const {
    if (outputs() != 1) {
        throw argument_error("the reduction " + kernel_->to_string() + " has " + std::to_string(outputs()) +
                             " outputs: call compute, which gives an array for each");
    }
    std::optional<array> out;
    run(where, inputs, std::span(&out, 1), axes);
    return *std::move(out);
}

std::vector<array> reduction_kernel::compute(const on& where, std::span<const operand> inputs,
                                             const along& axes) const {
    std::vector<std::optional<array>> made(outputs());
    run(where, inputs, made, axes);
    std::vector<array> all;
    all.reserve(made.size());
    for (std::optional<array>& one : made) {
        all.push_back(*std::move(one));
    }
    return all;
}

completion reduction_kernel::launch(const on& where, std::initializer_list<operand> inputs,
                                    std::initializer_list<array*> outputs, const along& axes,
                                    std::initializer_list<token_argument> tokens) const {
    std::vector<std::optional<array>> all;
    for (const array* const one : outputs) {
        if (one == nullptr) {
            throw argument_error("the reduction " + kernel_->to_string() +
                                 ": an output is null: pass the address of an array, or call compute for new ones");
        }
        all.emplace_back(*one);
    }
    return run(where, std::span(inputs.begin(), inputs.size()), all, axes, tokens);
}

const std::string& reduction_kernel::name() const noexcept { return kernel_->name(); }
std::size_t reduction_kernel::inputs() const noexcept { return kernel_->text().signature.inputs.size(); }
std::size_t reduction_kernel::outputs() const noexcept { return kernel_->text().signature.outputs.size(); }
std::string reduction_kernel::to_string() const { return "<weir.reduction " + kernel_->to_string() + ">"; }

}  // namespace weir
