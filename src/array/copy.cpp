#include <array>
#include <optional>
#include <string>

#include "array/converting_copy.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/operation.hpp"
#include "array/transfer.hpp"
#include "backend/cuda/compile.hpp"
#include "runtime/device_state.hpp"
#include "runtime/resource.hpp"
#include "runtime/side_stream.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/site.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/launch.hpp"
#include "weir/shape.hpp"

namespace weir {

namespace {

void expect_bytes(const array& x) {
    if (!x.is_contiguous()) {
        throw argument_error("the elements of " + x.to_string() +
                             " do not lie in C order: pass strided<T, Rank>() of it, or a copy by contiguous(on, x)");
    }
}

}  // namespace

void detail::expect_own_elements(const array& x) {
    if (!x.has_own_elements()) {
        throw argument_error(x.to_string() +
                             " is to be written, but elements of it share memory, as after broadcast_to: write the "
                             "array that it was made from, or a copy");
    }
}

access_argument<const std::byte> in(const array& x) {
    expect_bytes(x);
    return detail::argument_of<const std::byte>(x, std::span<const std::byte>(x.device_data(), x.nbytes()),
                                                order::access_mode::read);
}

access_argument<std::byte> out(const array& x) {
    expect_bytes(x);
    return detail::argument_of<std::byte>(x, std::span(x.device_data(), x.nbytes()), order::access_mode::write, true);
}

access_argument<std::byte> inout(const array& x) {
    expect_bytes(x);
    return detail::argument_of<std::byte>(x, std::span(x.device_data(), x.nbytes()), order::access_mode::write);
}

operation::sharing operation::shared_within_buffer(const array& a, const array& b) noexcept {
    if (a.device_data() == b.device_data() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
        ((a.is_contiguous() && b.is_contiguous()) ||
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin()))) {
        return sharing::all;
    }
    return order::overlap(a.footprint(), b.footprint()) ? sharing::entangled : sharing::nothing;
}

bool operation::reaches(const device& from, const array& x) noexcept {
    const runtime::resource* const memory = x.buffer().resource();
    return memory == nullptr || memory->memory_of() == nullptr || memory->memory_of() == &from.state().memory_space();
}

void operation::expect_on_device_of(const on& where, const array& x) {
    if (!reaches(where.stream().device(), x)) {
        throw argument_error(x.to_string() + " and the stream " + where.stream().to_string() +
                             " are on different devices: move the array with to(on, x, device), or take a stream of " +
                             x.device().name());
    }
}

namespace {

/// Memory for a step at `where`.
array aside(const on& where, const shape& extents, dtype type) {
    return detail::internal(empty(extents, type, where.stream(), where.site().where));
}

/// One operation that writes dst and reads src, which have the same shape and are on the stream's device, and converts
/// elements whatever they are.
completion copy_any(const on& where, const array& dst, const array& src) {
    detail::expect_own_elements(dst);
    const array_kernels::context* const device = array_kernels::context_of(where.stream().device());
    const bool entangled = operation::shared_by(dst, src) == operation::sharing::entangled;
    // The host moves bytes in either direction; what the driver of a device copies must not overlap.
    if (dst.is_contiguous() && src.is_contiguous() && dst.dtype() == src.dtype() && (device == nullptr || !entangled)) {
        return operation::transfer(where, dst, src);
    }
    if (!entangled) {
        const runtime::access_request accesses[] = {operation::writes(dst), operation::reads(src)};
        converting_copy work(dst, src);
        if (device != nullptr) {
            array_kernels::launches made(*device);
            work.add_to(made);
            return array_kernels::enqueue(where, accesses, std::move(made));
        }
        return operation::enqueue(where, accesses, std::move(work));
    }
    const array between = aside(where, src.shape(), src.dtype());
    const runtime::access_request accesses[] = {operation::writes(dst), operation::reads(src),
                                                operation::writes(between)};
    converting_copy away(between, src);
    converting_copy back(dst, between);
    if (device != nullptr) {
        array_kernels::launches made(*device);
        away.add_to(made);
        back.add_to(made);
        return array_kernels::enqueue(where, accesses, std::move(made));
    }
    return operation::enqueue(where, accesses, [first = std::move(away), second = std::move(back)] {
        first();
        second();
    });
}

/// Where a step of a call goes that belongs on the device of `x`: to the call's own stream if that is one of this device, else
/// to a side stream, which starts after all that the call comes after. The call's stream goes on after either.
class step {
public:
    step(const on& where, const array& x) : place_(where) {
        if (!operation::reaches(where.stream().device(), x)) {
            const device home = x.device().kind() == device_kind::cpu_inline ? cpu() : x.device();
            side_.emplace(where.stream(), home, where.site().where);
            place_ = where.moved_to(**side_);
        }
    }
    [[nodiscard]] const on& operator*() const noexcept { return place_; }
    /// All that was enqueued is a step of the call now: to be called behind it.
    void join() {
        if (side_) {
            side_->join();
        }
    }

private:
    on place_;
    std::optional<runtime::side_stream> side_;
};

/// `x` as it can be copied to another device: packed, of the type wanted there.
array packed(const on& where, const array& x, dtype type) {
    if (x.is_contiguous() && x.dtype() == type) {
        return x;
    }
    step packing(where, x);
    array made = detail::internal(astype(*packing, x, type));
    packing.join();
    return made;
}

/// Whether code of the host moves the elements of `x`, wherever they lie.
bool is_moved_by_host(const array& x) { return x.buffer().device().kind() != device_kind::cuda; }

/// Copies between memories that no one device reaches. `src` has the shape of `dst` or broadcasts to it.
completion copy_between(const on& where, const array& dst, const array& src) {
    detail::expect_own_elements(dst);
    if (dst.size() == 0) {
        return {};
    }
    const bool is_packed = dst.is_contiguous() && dst.size() == src.size();
    if (is_packed && src.is_contiguous() && src.dtype() == dst.dtype()) {
        return operation::transfer(where, dst, src);
    }
    if (is_moved_by_host(dst) && is_moved_by_host(src)) {
        const runtime::access_request accesses[] = {operation::writes(dst), operation::reads(src)};
        return operation::enqueue(where, accesses, converting_copy(dst, src.broadcast_to(dst.shape())),
                                  runtime::work_kind::copy);
    }
    const array source = packed(where, src, dst.dtype());
    if (is_packed) {
        return operation::transfer(where, dst, source);
    }
    step unpacking(where, dst);
    const array arrived = aside(*unpacking, source.shape(), source.dtype());
    operation::transfer(where, arrived, source);
    completion end = copy_any(*unpacking, dst, arrived.broadcast_to(dst.shape()));
    unpacking.join();
    return end;
}

/// Without the leading dimensions of extent 1 that the target lacks: assignment takes no notice of them.
array fitted(const array& src, const shape& to) {
    std::size_t extra = 0;
    while (src.dimensions() - extra > to.dimensions() && src.shape()[extra] == 1) {
        ++extra;
    }
    try {
        array fewer = src.reshape(shape(src.shape().extents().subspan(extra)));
        static_cast<void>(fewer.broadcast_to(to));
        return fewer;
    } catch (const argument_error&) {
        throw argument_error("copy from the shape " + src.shape().to_string() + " to " + to.to_string() +
                             ": the source must have the target's shape or be one that broadcasts to it; reshape or "
                             "slice one of them");
    }
}

/// As `copy`, whatever kinds of numbers the two hold.
completion copy_as_asked(const on& where, const array& dst, const array& src) {
    const device here = where.stream().device();
    const array source = src.shape() == dst.shape() ? src : fitted(src, dst.shape());
    if (operation::reaches(here, dst) && operation::reaches(here, src)) {
        return copy_any(where, dst, source.broadcast_to(dst.shape()));
    }
    // One side must be the stream's own.
    operation::expect_on_device_of(where, operation::reaches(here, dst) ? dst : src);
    return copy_between(where, dst, source);
}

}  // namespace

completion copy(const on& where, const array& dst, const array& src) {
    if (kind_of(src.dtype()) > kind_of(dst.dtype())) {
        throw argument_type_error(
            "copy from " + std::string(name_of(src.dtype())) + " to " + std::string(name_of(dst.dtype())) +
            " would lose what kind of numbers they are: " + "convert with astype(on, x, dtype) if that is meant");
    }
    return copy_as_asked(where, dst, src);
}

array astype(const on& where, const array& x, dtype type) {
    operation::expect_on_device_of(where, x);
    array made = empty(x.shape(), type, where.stream(), where.site().where);
    copy_any(where, made, x);
    return made;
}

array copy(const on& where, const array& x) { return astype(where, x, x.dtype()); }

array to(const on& where, const array& x, device target, dtype type) {
    const stream current = current_stream(target);
    const stream_ref suits = where.stream().device() == target ? where.stream() : current;
    array made = empty(x.shape(), type, suits, where.site().where);
    copy_as_asked(where, made, x);
    return made;
}

array to(const on& where, const array& x, device target) { return to(where, x, target, x.dtype()); }

array contiguous(const on& where, const array& x) { return x.is_contiguous() ? x : copy(where, x); }

array reshape(const on& where, const array& x, const shape& to) {
    if (std::optional<array> same = x.try_reshape(to)) {
        return *std::move(same);
    }
    return copy(where, x).reshape(to);
}

completion copy_from_host(const on& where, const array& dst, std::span<const std::byte> src) {
    if (src.size() != dst.nbytes()) {
        throw argument_error("copy of " + std::to_string(src.size()) + " bytes to an array of the shape " +
                             dst.shape().to_string() + " with " + std::to_string(dst.nbytes()) +
                             " bytes: both must have the same size");
    }
    detail::expect_own_elements(dst);
    if (dst.is_contiguous()) {
        return operation::transfer_from_host(where, dst, src);
    }
    step unpacking(where, dst);
    const array arrived = aside(*unpacking, dst.shape(), dst.dtype());
    operation::transfer_from_host(where, arrived, src);
    completion end = copy_any(*unpacking, dst, arrived);
    unpacking.join();
    return end;
}

}  // namespace weir
