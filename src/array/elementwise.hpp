#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "array/convert.hpp"
#include "array/converting_copy.hpp"
#include "array/cuda/call.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/cuda/packed.hpp"
#include "array/element_body.hpp"
#include "array/operation.hpp"
#include "array/walk.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/arithmetic.hpp"
#include "weir/completion.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/on.hpp"
#include "weir/shape.hpp"
#include "weir/stream.hpp"

namespace weir {

/// Work on arrays element by element, one chunk at a time: operands are gathered and converted to the types that the loop takes, and
/// its results converted and scattered, each only where it is needed.
///
/// The pointers that `Loop` gets on the host may point into the memory of arrays.
template <std::size_t Inputs, element_wise_body<Inputs> Loop>
class elementwise {
public:
    using inputs = std::array<const std::byte*, Inputs>;

    /// One input, and the type in which the loop takes it.
    struct input {
        const operand* what = nullptr;
        dtype as = dtype::bool_;
        dtype number = dtype::bool_;  ///< the type that a number is rounded to before that

        /// Writes a number in the type that the loop takes.
        void store(std::byte* to) const {
            what->number().store(number, to);
            if (as != number) {
                scalar::load(number, to).store(as, to);
            }
        }
    };

    /// Enqueues it. `out` has the shape that the inputs broadcast to; the loop returns results of the type `result`.
    static completion enqueue(const on& where, const array& out, dtype result, const std::array<input, Inputs>& given,
                              Loop loop) {
        const array_kernels::kernels* const device = array_kernels::kernels_of(where.stream().device());
        if (device != nullptr) {
            if (auto enqueued = enqueue_packed(*device, where, out, result, given, loop)) {
                return *std::move(enqueued);
            }
        }
        declared all(out);
        elementwise work(where, out, result, given, loop, all);
        const auto accesses = all.what.accesses();
        if (device != nullptr) {
            return work.enqueue_on(*device, where, accesses, out, result);
        }
        return operation::enqueue(where, accesses, std::move(work));
    }

    void operator()() {
        for (const converting_copy& one : copies_) {
            one();
        }
        constexpr std::size_t room = most * 16;
        alignas(64) std::byte gathered[room];
        alignas(64) std::byte converted[Inputs][room];
        alignas(64) std::byte results[room];
        alignas(64) std::byte scattered[room];
        const std::int64_t largest = std::min<std::int64_t>(most, std::max<std::int64_t>(plan_.elements(), 1));
        for (std::size_t i = 0; i < Inputs; ++i) {
            if (inputs_[i].constant) {
                spread(inputs_[i], converted[i], largest);
            }
        }
        plan_.for_each_chunk(most, [&](const walk::plan::pointers& at, std::int64_t rows, std::int64_t columns) {
            const auto count = static_cast<std::size_t>(rows * columns);
            inputs taken;
            for (std::size_t i = 0; i < Inputs; ++i) {
                taken[i] = converted[i];
                if (const stage& one = inputs_[i]; !one.constant) {
                    const walk::grid from{at[i + 1], plan_.row_stride(i + 1), plan_.column_stride(i + 1)};
                    std::byte* const aside = one.convert != nullptr ? gathered : converted[i];
                    taken[i] = walk::gather(from, rows, columns, one.item, aside);
                    if (one.convert != nullptr) {
                        one.convert(taken[i], converted[i], count);
                        taken[i] = converted[i];
                    }
                }
            }
            const walk::grid to{at[0], plan_.row_stride(0), plan_.column_stride(0)};
            const bool direct = walk::is_packed(to, rows, columns, result_item_);
            std::byte* const packed = direct ? to.first : scattered;
            loop_(taken, convert_result_ != nullptr ? results : packed, count);
            if (convert_result_ != nullptr) {
                convert_result_(results, packed, count);
            }
            if (!direct) {
                walk::copy_grid(to, walk::packed(packed, columns, result_item_), rows, columns, result_item_);
            }
        });
    }

private:
    /// The declared accesses.
    struct declared {
        explicit declared(const array& out) : what(out) {}
        operation::declared<2 * Inputs + 1> what;
        std::array<std::optional<array>, Inputs> aside;  ///< copies of inputs, kept until the operation is enqueued
    };

    elementwise(const on& where, const array& out, dtype result, const std::array<input, Inputs>& given, Loop loop,
                declared& all)
        : plan_(make(where, out, given, all)),
          loop_(loop),
          convert_result_(converter(result, out.dtype())),
          result_item_(size_of(out.dtype())) {}

    static std::optional<completion> enqueue_packed(const array_kernels::kernels& device, const on& where,
                                                    const array& out, dtype result,
                                                    const std::array<input, Inputs>& given, const Loop& loop) {
        std::array<array_kernels::packed_input, Inputs> inputs;
        for (std::size_t i = 0; i < Inputs; ++i) {
            inputs[i].computed = given[i].as;
            if (given[i].what->is_array()) {
                inputs[i].x = &given[i].what->of_array();
            } else {
                given[i].store(inputs[i].number.data());
            }
        }
        return array_kernels::enqueue_packed(device, where, loop.same_as(), out, result, inputs);
    }

    completion enqueue_on(const array_kernels::kernels& device, const on& where,
                          std::span<const runtime::access_request> accesses, const array& out, dtype result) const {
        array_kernels::launches first(device);
        for (const converting_copy& one : copies_) {
            one.add_to(first);
        }
        std::array<array_kernels::argument, Inputs> arguments;
        for (std::size_t i = 0; i < Inputs; ++i) {
            const stage& one = inputs_[i];
            const bool is_number = one.constant && one.first == nullptr;
            arguments[i] = {one.stored, one.as, is_number ? one.element.data() : nullptr};
        }
        return array_kernels::enqueue(where, accesses, std::move(first), loop_.same_as(), out, result, arguments,
                                      plan_);
    }

    /// Elements at a time: the chunks of all operands stay in the first-level cache.
    static constexpr std::int64_t most = 256;

    struct stage {
        convert::function convert = nullptr;  ///< null: not needed
        std::size_t item = 0;                 ///< bytes of an element in the array
        dtype stored = dtype::bool_;          ///< its type there
        dtype as = dtype::bool_;
        bool constant = false;                            ///< one element for all
        alignas(16) std::array<std::byte, 16> element{};  ///< a number, in the type that the loop takes
        const std::byte* first = nullptr;                 ///< first element of an array; null for a number
    };

    static convert::function converter(dtype from, dtype to) noexcept {
        return from == to ? nullptr : convert::between(from, to);
    }

    /// Makes the plan; fills `inputs_` and `copies_`.
    walk::plan make(const on& where, const array& out, const std::array<input, Inputs>& given, declared& all) {
        static constexpr std::array<std::int64_t, shape::most> zeros{};
        const std::span<const std::int64_t> nowhere = std::span(zeros).first(out.dimensions());
        std::array<walk::operand, Inputs + 1> operands{operation::operand_of(out)};
        std::array<std::optional<array>, Inputs> views;  // own the strides that are planned
        for (std::size_t i = 0; i < Inputs; ++i) {
            stage& one = inputs_[i];
            one.as = given[i].as;
            if (!given[i].what->is_array()) {
                one.constant = true;
                given[i].store(one.element.data());
                operands[i + 1] = {nullptr, nowhere};
                continue;
            }
            const array& used = untangled(where, given[i].what->of_array(), all, i);
            const array& seen = used.shape() == out.shape() ? used : views[i].emplace(used.broadcast_to(out.shape()));
            one.convert = converter(seen.dtype(), one.as);
            one.item = size_of(seen.dtype());
            one.stored = seen.dtype();
            one.constant = used.size() == 1;
            one.first = seen.device_data();
            operands[i + 1] = {seen.device_data(), one.constant ? nowhere : seen.strides()};
        }
        return {out.shape().extents(), operands};
    }

    /// The input or, if writing the output would change elements before they are read, memory for a copy of the input.
    const array& untangled(const on& where, const array& in, declared& all, std::size_t i) {
        operation::expect_on_device_of(where, in);
        if (all.what.read(in)) {
            return in;
        }
        all.aside[i] = detail::internal(empty(in.shape(), in.dtype(), where.stream(), where.site(detail::key).where));
        copies_.emplace_back(*all.aside[i], in);
        all.what.add(operation::reads(in));
        all.what.add(operation::writes(*all.aside[i]));
        return *all.aside[i];
    }

    static void spread(const stage& one, std::byte* to, std::int64_t count) {
        alignas(16) std::array<std::byte, 16> element = one.element;
        if (one.first != nullptr) {
            const convert::function convert = one.convert;
            if (convert != nullptr) {
                convert(one.first, element.data(), 1);
            } else {
                std::copy_n(one.first, one.item, element.data());
            }
        }
        const std::size_t item = size_of(one.as);
        walk::copy_grid(walk::packed(to, count, item), {element.data(), 0, 0}, 1, count, item);
    }

    std::vector<converting_copy> copies_;  ///< run first: copies of inputs that the output would overwrite too early
    std::array<stage, Inputs> inputs_;
    walk::plan plan_;
    Loop loop_;
    convert::function convert_result_;  ///< null: not needed
    std::size_t result_item_;
};

}  // namespace weir
