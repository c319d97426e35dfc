#include "array/cuda/packed.hpp"

#include <cstdint>
#include <cstring>

#include "array/cuda/call.hpp"
#include "array/operation.hpp"
#include "weir/detail/task.hpp"

namespace weir::array_kernels {

std::optional<completion> enqueue_packed(const kernels& in, const on& where, function what, const array& out,
                                         dtype result, std::span<const packed_input> inputs) {
    const std::int64_t elements = out.size();
    const bool may_fail = what == of(binary_operation::power);
    if (may_fail || !out.is_contiguous() || elements == 0 || elements > INT32_MAX ||
        inputs.size() >= description::most_operands) {
        return std::nullopt;
    }
    description kernel;
    kernel.what = what;
    kernel.operands = static_cast<std::uint8_t>(1 + inputs.size());
    kernel.stored[0] = out.dtype();
    kernel.computed[0] = result;
    kernel.packed = true;

    detail::native_task<small_launch> task;
    task.body.in = &in;
    std::uint64_t* next = task.body.words.data();
    const auto put = [&next](std::uint64_t one) { *next++ = one; };
    put(word(elements));
    put(0);
    put(0);
    put(word(out.device_data()));
    put(0);
    operation::declared<description::most_operands> all(out);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const packed_input& one = inputs[i];
        kernel.computed[i + 1] = one.computed;
        kernel.by_value[i + 1] = one.x == nullptr;
        if (one.x == nullptr) {
            kernel.stored[i + 1] = one.computed;
            std::array<std::uint64_t, 2> value{};
            std::memcpy(value.data(), one.number.data(), size_of(one.computed));
            put(value[0]);
            put(value[1]);
            continue;
        }
        if (!one.x->is_contiguous() || one.x->shape() != out.shape()) {
            return std::nullopt;
        }
        operation::expect_on_device_of(where, *one.x);
        if (!all.read(*one.x)) {
            return std::nullopt;
        }
        kernel.stored[i + 1] = one.x->dtype();
        put(word(one.x->device_data()));
        put(0);
    }
    // One dimension with all elements. In packed kernels strides are the sizes of elements.
    put(word(elements));
    for (std::size_t k = 0; k < kernel.operands; ++k) {
        put(kernel.by_value[k] ? 0 : size_of(kernel.stored[k]));
    }
    task.body.choose(kernel, static_cast<std::uint64_t>(elements));
    return operation::enqueue(where, all.accesses(), std::move(task));
}

}  // namespace weir::array_kernels
