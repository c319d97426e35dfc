#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "array/walk.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/completion.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/submission.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/on.hpp"

namespace weir::operation {

[[nodiscard]] inline runtime::access_request reads(const array& x) {
    return {x.buffer().resource(detail::key), x.used(detail::key), order::access_mode::read};
}
/// Writes every element and reads none before that.
[[nodiscard]] inline runtime::access_request writes(const array& x) {
    return {x.buffer().resource(detail::key), x.used(detail::key), order::access_mode::write, true};
}

/// How the memory of two arrays overlaps.
enum class sharing : std::uint8_t {
    nothing,
    all,  ///< the arrays are the same, element for element
    /// bytes, but not element for element: a write to one may come before the same bytes are read through the other
    entangled,
};
[[nodiscard]] inline bool are_of_one_buffer(const array& a, const array& b) noexcept {
    return a.buffer().resource(detail::key) == b.buffer().resource(detail::key);
}
/// Whether both are the same bytes of one buffer, so that one access stands for both.
[[nodiscard]] inline bool have_one_footprint(const array& a, const array& b) noexcept {
    return are_of_one_buffer(a, b) && a.footprint(detail::key) == b.footprint(detail::key);
}
[[nodiscard]] sharing shared_at_addresses(const array& a, const array& b) noexcept;
/// By addresses: each import of memory is a buffer of its own, and a package may hand over the same memory many times.
[[nodiscard]] inline sharing shared_by(const array& a, const array& b) noexcept {
    const auto end_of = [](const array& x) {
        const order::footprint& bytes = x.footprint(detail::key);
        return x.device_data() + (bytes.end - bytes.begin);
    };
    const bool are_apart =
        a.is_contiguous() && b.is_contiguous() && (end_of(a) <= b.device_data() || end_of(b) <= a.device_data());
    return are_apart ? sharing::nothing : shared_at_addresses(a, b);
}
[[nodiscard]] inline bool share_bytes(const array& a, const array& b) noexcept {
    return shared_by(a, b) != sharing::nothing;
}

/// The accesses of an operation that computes `out` from other arrays: at most `Most`.
template <std::size_t Most>
class declared {
public:
    explicit declared(const array& out) : out_(&out), accesses_{writes(out)} {}

    void add(const runtime::access_request& one) { accesses_[count_++] = one; }

    /// Declares that elements of `in` are read in place. Returns false, and declares nothing, if they would be overwritten before.
    [[nodiscard]] bool read(const array& in) {
        const sharing common = shared_by(*out_, in);
        if (common == sharing::nothing || (common == sharing::all && !are_of_one_buffer(*out_, in))) {
            add(reads(in));
        }
        if (common != sharing::nothing) {
            // Results then depend on the former contents: this operation does not repair results of a failed one.
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

/// The device whose memory `x` is, or is seen as (array::view_on); null if there is no memory, or none that belongs to a device.
[[nodiscard]] const runtime::device_state* memory_space_of(const array& x) noexcept;
/// Whether code on a device can use the memory of `x`.
[[nodiscard]] bool reaches(const device& from, const array& x) noexcept;

/// An uninitialized array on `home` that the call's stream, which may be one of another device, uses first: what that stream can use without
/// a wait comes first. Its memory is allocated on the call's stream, or on the current stream of `home` if that is another device. Errors
/// as `empty`.
[[nodiscard]] array empty_for(const on& where, const shape& extents, dtype type, const device& home);

/// Throws argument_error if the stream's device cannot use the memory of `x`.
void expect_on_device_of(const on& where, const array& x);

[[nodiscard]] inline walk::operand operand_of(const array& x) noexcept { return {x.device_data(), x.strides()}; }

/// Enqueues `body` with exactly these accesses.
template <class F>
completion enqueue(const on& where, std::span<const runtime::access_request> accesses, F&& body,
                   runtime::work_kind kind = runtime::work_kind::device) {
    return detail::with_task(std::forward<F>(body), [&](detail::task_ref task) {
        return runtime::submit(where.stream().state(detail::key),
                               {accesses, where.dependencies(), task, where.site(detail::key), kind});
    });
}

}  // namespace weir::operation
