#include <array>
#include <optional>
#include <string>

#include "array/carried.hpp"
#include "array/converting_copy.hpp"
#include "array/cuda/enqueue.hpp"
#include "array/operation.hpp"
#include "array/transfer.hpp"
#include "backend/capability/capabilities.hpp"
#include "backend/capability/kernels.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/resource.hpp"
#include "runtime/streams/side_stream.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/internal_memory.hpp"
#include "weir/detail/passkey.hpp"
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

access_argument<std::byte> out(array& x) {
    expect_bytes(x);
    return detail::argument_of<std::byte>(x, std::span(x.device_data(), x.nbytes()), order::access_mode::write, true);
}

access_argument<std::byte> inout(array& x) {
    expect_bytes(x);
    return detail::argument_of<std::byte>(x, std::span(x.device_data(), x.nbytes()), order::access_mode::write);
}

void detail::refuse_negative_index() { throw argument_error("a range with a negative index: indices begin at 0"); }

namespace {

/// The bytes that the array occupies in the address space.
order::footprint addresses_of(const array& x) noexcept {
    order::footprint made = x.footprint(detail::key);
    const auto base = reinterpret_cast<std::uintptr_t>(x.buffer().device_data());
    made.begin += base;
    made.end += base;
    return made;
}

}  // namespace

operation::sharing operation::shared_at_addresses(const array& a, const array& b) noexcept {
    if (a.size() == 0 || b.size() == 0) {
        return sharing::nothing;
    }
    if (a.device_data() == b.device_data() && a.dtype() == b.dtype() && a.shape() == b.shape() &&
        ((a.is_contiguous() && b.is_contiguous()) ||
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin()))) {
        return sharing::all;
    }
    const bool overlap = are_of_one_buffer(a, b) ? order::overlap(a.footprint(detail::key), b.footprint(detail::key))
                                                 : order::overlap(addresses_of(a), addresses_of(b));
    return overlap ? sharing::entangled : sharing::nothing;
}

const runtime::device_state* operation::memory_space_of(const array& x) noexcept {
    const runtime::resource* const memory = x.buffer().resource(detail::key);
    const runtime::device_state* const own = memory == nullptr ? nullptr : memory->memory_of();
    const runtime::device_state* const place = x.place(detail::key);
    return own == nullptr || place == nullptr ? own : &place->memory_space();
}

bool operation::reaches(const device& from, const array& x) noexcept {
    const runtime::device_state* const its = memory_space_of(x);
    return its == nullptr || its == &from.state(detail::key).memory_space();
}

void operation::expect_on_device_of(const on& where, const array& x) {
    if (!reaches(where.stream().device(), x)) {
        throw argument_error(x.to_string() + " and the stream " + where.stream().to_string() +
                             " are on different devices: move the array with to(on, x, device), or take a stream of " +
                             x.device().name());
    }
}

array operation::empty_for(const on& where, const shape& extents, dtype type, const device& home) {
    const source_location& from = where.site(detail::key).where;
    if (home == where.stream().device()) {
        return empty(extents, type, where.stream(), from);
    }
    const std::size_t bytes = bytes_for(type, static_cast<std::size_t>(extents.elements()));
    return bytes == 0 ? array(detail::key, type, extents, home)
                      : array(buffer(detail::key, bytes, current_stream(home), where.stream(), from), type, extents);
}

namespace {

/// Temporary memory for a step at `where`.
array aside(const on& where, const shape& extents, dtype type) {
    return detail::internal(empty(extents, type, where.stream(), where.site(detail::key).where));
}

/// One operation that writes dst and reads src, which have the same shape and are on the stream's device; converts
/// elements of any type.
completion copy_any(const on& where, const array& dst, const array& src) {
    detail::expect_own_elements(dst);
    if (!has_arithmetic(dst.dtype())) {
        return copy_any(where, detail::as_numbers(dst), detail::as_numbers(src));
    }
    const array_kernels::kernels* const device = array_kernels::kernels_of(where.stream().device());
    const bool entangled = operation::shared_by(dst, src) == operation::sharing::entangled;
    // The host moves bytes in either direction; copies by a device's driver must not overlap.
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

/// Where a step of a call runs that belongs on the device of `x`: on the call's own stream if that is one of this device, else
/// on a side stream, which starts after everything that the call comes after. The call's stream continues after the side stream.
class step {
public:
    step(const on& where, const array& x) : place_(where) {
        if (!operation::reaches(where.stream().device(), x)) {
            const device home = x.device().kind() == device_kind::cpu_inline ? cpu() : x.device();
            side_.emplace(where.stream(), home, where.site(detail::key).where);
            place_ = where.moved_to(**side_);
        }
    }
    [[nodiscard]] const on& operator*() const noexcept { return place_; }
    /// Makes everything enqueued so far part of the call. Call it after the last operation of the step.
    void join() {
        if (side_) {
            side_->join();
        }
    }

private:
    on place_;
    std::optional<runtime::side_stream> side_;
};

/// `x` in a form that can be copied to another device: packed, and of the type `type`.
array packed(const on& where, const array& x, dtype type) {
    if (x.is_contiguous() && x.dtype() == type) {
        return x;
    }
    step packing(where, x);
    array made = detail::internal(astype(*packing, x, type));
    packing.join();
    return made;
}

/// Whether host code moves the elements of `x`, wherever they are.
bool is_moved_by_host(const array& x) { return x.device().state(detail::key).driver().can().copies == nullptr; }

/// Copies between memories where no single device reaches both. `src` has the shape of `dst` or broadcasts to it.
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

/// Drops leading dimensions of extent 1 that the target lacks: assignment ignores them.
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

/// As `copy`, for any kinds of numbers.
completion copy_as_asked(const on& where, const array& dst, const array& src) {
    const device here = where.stream().device();
    const array source = src.shape() == dst.shape() ? src : fitted(src, dst.shape());
    if (!has_arithmetic(dst.dtype())) {
        return copy_as_asked(where, detail::as_numbers(dst), detail::as_numbers(source.broadcast_to(dst.shape())));
    }
    if (operation::reaches(here, dst) && operation::reaches(here, src)) {
        return copy_any(where, dst, source.broadcast_to(dst.shape()));
    }
    // One side must be on the stream's device.
    operation::expect_on_device_of(where, operation::reaches(here, dst) ? dst : src);
    return copy_between(where, dst, source);
}

}  // namespace

completion copy(const on& where, array& dst, const array& src) {
    detail::expect_convertible(src.dtype(), dst.dtype());
    if (kind_of(src.dtype()) > kind_of(dst.dtype())) {
        throw argument_type_error(
            "copy from " + std::string(name_of(src.dtype())) + " to " + std::string(name_of(dst.dtype())) +
            " would lose what kind of numbers they are: " + "convert with astype(on, x, dtype) if that is meant");
    }
    return copy_as_asked(where, dst, src);
}

array astype(const on& where, const array& x, dtype type) {
    operation::expect_on_device_of(where, x);
    detail::expect_convertible(x.dtype(), type);
    array made = empty(x.shape(), type, where.stream(), where.site(detail::key).where);
    copy_any(where, made, x);
    return made;
}

array copy(const on& where, const array& x) { return astype(where, x, x.dtype()); }

array to(const on& where, const array& x, device target, dtype type) {
    detail::expect_convertible(x.dtype(), type);
    array made = operation::empty_for(where, x.shape(), type, target);
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

completion copy_from_host(const on& where, array& dst, std::span<const std::byte> src) {
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
