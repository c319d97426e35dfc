#pragma once

#include <array>
#include <cstddef>
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

/// What the memory of two arrays has in common.
enum class sharing : std::uint8_t {
    nothing,
    all,        ///< element for element they are the same
    entangled,  ///< bytes, but not that way: what is written to one may be read through the other too late
};
[[nodiscard]] sharing shared_within_buffer(const array& a, const array& b) noexcept;
[[nodiscard]] inline sharing shared_by(const array& a, const array& b) noexcept {
    return a.buffer().resource() == b.buffer().resource() ? shared_within_buffer(a, b) : sharing::nothing;
}

/// What an operation that computes `out` of other arrays reads and writes: up to so many accesses.
template <std::size_t Most>
class declared {
public:
    explicit declared(const array& out) : out_(&out), accesses_{writes(out)} {}

    void add(const runtime::access_request& one) { accesses_[count_++] = one; }

    /// Adds that elements of `in` are read where they lie. False, and not added, if they are spoiled by then.
    [[nodiscard]] bool read(const array& in) {
        const sharing common = shared_by(*out_, in);
        if (common == sharing::nothing) {
            add(reads(in));
        } else {
            // Results then depend on what was there: those of a failed operation do not become right by this one.
            accesses_[0].overwrites = false;
        }
        return common != sharing::entangled;
    }

    [[nodiscard]] std::span<const runtime::access_request> accesses() const noexcept {
        return std::span(accesses_).first(count_);
    }

private:
    const array* out_;
    std::array<runtime::access_request, Most> accesses_;
    std::size_t count_ = 1;
};

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
