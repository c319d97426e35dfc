#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <variant>

#include "array/convert.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/cuda/source.hpp"
#include "array/operation.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/array.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"
#include "weir/scalar.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace {

bool is_whole(const scalar& number) noexcept { return number.kind() < dtype_kind::real; }

template <class T>
T as(const scalar& number) {
    std::byte element[16];
    number.store(dtype_of<T>, element);
    return std::get<T>(scalar::load(dtype_of<T>, element).value());
}

/// The number of elements: exact for integers, otherwise within the precision of double.
std::int64_t length_of(std::int64_t start, std::int64_t stop, std::int64_t step) noexcept {
    if (step > 0 ? start >= stop : start <= stop) {
        return 0;
    }
    const auto distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                   : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
    const auto size = step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const std::uint64_t count = (distance - 1) / size + 1;
    return static_cast<std::int64_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::int64_t>::max()));
}

std::int64_t length_of(double start, double stop, double step) {
    const double count = std::ceil((stop - start) / step);
    if (!(count < 0x1p62)) {
        throw argument_error("arange from " + std::to_string(start) + " to " + std::to_string(stop) + " by " +
                             std::to_string(step) + ": more elements than can be addressed");
    }
    return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

std::int64_t step_to(std::int64_t start, std::int64_t step, std::int64_t i) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(i));
}
double step_to(double start, double step, std::int64_t i) noexcept { return start + step * static_cast<double>(i); }

template <class T>
array counted(T start, T stop, T step, dtype type, const stream_ref& on, source_location where) {
    if (step == 0) {
        throw argument_error("arange with a step of 0: take another");
    }
    array made = empty(length_of(start, stop, step), type, on, where);
    const runtime::access_request accesses[] = {operation::writes(made)};
    if (const array_kernels::kernels* const device = array_kernels::kernels_of(on.device())) {
        const walk::operand to[] = {operation::operand_of(made)};
        array_kernels::launches work(*device);
        work.add(array_kernels::function::counted, {type, dtype_of<T>, nullptr}, {},
                 walk::plan(made.shape().extents(), to),
                 {std::bit_cast<std::uint64_t>(start), std::bit_cast<std::uint64_t>(step)});
        array_kernels::enqueue({on, where}, accesses, std::move(work));
        return made;
    }
    operation::enqueue({on, where}, accesses,
                       [start, step, to = made.device_data(), count = made.size(), item = size_of(type),
                        convert = convert::between(dtype_of<T>, type)] {
                           constexpr std::int64_t most = 256;
                           T numbers[most];
                           for (std::int64_t first = 0; first < count; first += most) {
                               const std::int64_t here = std::min(most, count - first);
                               for (std::int64_t i = 0; i < here; ++i) {
                                   numbers[i] = step_to(start, step, first + i);
                               }
                               convert(reinterpret_cast<const std::byte*>(numbers),
                                       to + static_cast<std::size_t>(first) * item, static_cast<std::size_t>(here));
                           }
                       });
    return made;
}

}  // namespace

array arange(const scalar& start, const scalar& stop, const scalar& step, std::optional<dtype> type,
             const stream_ref& on, source_location where) {
    const bool whole = is_whole(start) && is_whole(stop) && is_whole(step);
    const dtype wanted = type.value_or(whole ? dtype::int64 : dtype::float64);
    detail::expect_arithmetic(wanted, "arange");
    if (wanted == dtype::bool_ || is_complex(wanted)) {
        throw argument_type_error("arange of " + std::string(name_of(wanted)) + ": take integers or real numbers");
    }
    for (const scalar* const one : {&start, &stop, &step}) {
        one->expect_fits(whole ? dtype::int64 : dtype::float64);
    }
    if (whole) {
        return counted(as<std::int64_t>(start), as<std::int64_t>(stop), as<std::int64_t>(step), wanted, on, where);
    }
    return counted(as<double>(start), as<double>(stop), as<double>(step), wanted, on, where);
}

}  // namespace weir
