#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "array/walk.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/launch.hpp"

namespace weir::operation {

[[nodiscard]] inline runtime::access_request reads(const array& x) {
    return {x.buffer().resource(), x.footprint(), order::access_mode::read};
}
/// Writes every element and reads none before.
[[nodiscard]] inline runtime::access_request writes(const array& x) {
    return {x.buffer().resource(), x.footprint(), order::access_mode::write, true};
}

/// Whether the two have a byte in common without being element for element the same: then what is written to one may be
/// read through the other too late.
[[nodiscard]] bool entangled(const array& a, const array& b) noexcept;

/// Whether code on a device can use the memory of `x`.
[[nodiscard]] bool reaches(const device& from, const array& x) noexcept;

/// Throws argument_error if the stream's device cannot use the memory of `x`.
void expect_on_device_of(const on& where, const array& x);

[[nodiscard]] inline walk::operand operand_of(const array& x) noexcept { return {x.device_data(), x.strides()}; }

/// Enqueues `body` with exactly these accesses.
template <class F>
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, F&& body,
                   runtime::work_kind kind = runtime::work_kind::device) {
    return detail::with_task(std::forward<F>(body), [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(), {accesses, where.dependencies(), task, where.site(), kind});
    });
}

}  // namespace weir::operation
