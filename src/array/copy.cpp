#include <cstring>
#include <memory>

#include "weir/error.hpp"
#include "weir/launch.hpp"

namespace weir {

access_argument<const std::byte> in(const array& x) noexcept {
    return {{x.buffer().resource(), x.footprint(), order::access_mode::read}, {x.data(), x.nbytes()}};
}

access_argument<std::byte> out(const array& x) noexcept {
    return {{x.buffer().resource(), x.footprint(), order::access_mode::write}, {x.data(), x.nbytes()}};
}

access_argument<std::byte> inout(const array& x) noexcept { return out(x); }

namespace {

/// std::memmove, also for nothing from nowhere.
void move_bytes(std::span<std::byte> to, std::span<const std::byte> from) noexcept {
    if (!from.empty()) {
        std::memmove(to.data(), from.data(), from.size());
    }
}

}  // namespace

completion copy(const on& where, const array& dst, const array& src) {
    if (dst.dtype() != src.dtype()) {
        throw argument_type_error("copy from " + std::string(name_of(src.dtype())) + " to " +
                                  std::string(name_of(dst.dtype())) + ": both must have the same element type");
    }
    if (dst.size() != src.size()) {
        throw argument_error("copy from the shape " + src.shape().to_string() + " to " + dst.shape().to_string() +
                             ": both must have the same number of elements; slice the larger one");
    }
    const auto from = in(src);
    const auto to = out(dst);
    return detail::submit_work(
        where, runtime::work_kind::device, [to = to.data, from = from.data] { move_bytes(to, from); }, to, from);
}

completion copy_from_host(const on& where, const array& dst, std::span<const std::byte> src) {
    if (src.size() != dst.nbytes()) {
        throw argument_error("copy of " + std::to_string(src.size()) + " bytes to an array of the shape " +
                             dst.shape().to_string() + " with " + std::to_string(dst.nbytes()) +
                             " bytes: both must have the same size");
    }
    // The source may change as soon as the call returns: the operation owns a copy. Not in memory of the pool, which may
    // still be in use by work before this operation, and the host writes here at once.
    auto kept = std::make_unique_for_overwrite<std::byte[]>(src.size());
    move_bytes({kept.get(), src.size()}, src);
    const auto to = out(dst);
    return detail::submit_work(
        where, runtime::work_kind::device,
        [to = to.data, kept = std::move(kept)] {
            move_bytes(to, {kept.get(), to.size()});
        },
        to);
}

}  // namespace weir
