#include "weir/dlpack.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/layout.hpp"
#include "exchange/enter.hpp"
#include "exchange/exported.hpp"
#include "exchange/tensor_layout.hpp"
#include "memory/device_memory.hpp"
#include "memory/lent_memory.hpp"
#include "memory/quarantine.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/error.hpp"
#include "weir/exchange_table.hpp"
#include "weir/shape.hpp"
#include "weir/sharing.hpp"

namespace weir::exchange {

namespace {

/// The state behind a tensor that a consumer holds. Its deleter may be called on any thread, under any lock, so that it only
/// passes this to the reaper (rule L4).
class exported final : public runtime::retired {
public:
    exported(const array& x, package_use use, std::vector<std::shared_ptr<package>> consumers,
             std::shared_ptr<void> besides)
        : besides_(std::move(besides)), keeps_(x), use_(use) {
        const auto item = static_cast<std::int64_t>(layout::stride_item(x.dtype()));
        for (const std::int64_t stride : x.strides()) {
            if (stride % item != 0) {
                throw argument_error("DLPack counts strides in elements, and those of " + x.to_string() +
                                     " are no multiples of an element's size: export x.copy()");
            }
            strides_.push_back(stride / item);
        }
        extents_.assign(x.shape().extents().begin(), x.shape().extents().end());
        managed.context = this;
        managed.deleter = let_go;
        managed.what.data = x.size() == 0 ? nullptr : x.device_data();
        managed.what.on = dlpack_device_of(x);
        managed.what.dimensions = static_cast<std::int32_t>(extents_.size());
        managed.what.type = to_dlpack_dtype(x.dtype());
        managed.what.shape = extents_.data();
        managed.what.strides = strides_.data();  // never null with dimensions (DLPack 1.2)
        if (use == package_use::reads || !x.has_own_elements() || is_read_only(x.buffer())) {
            managed.flags |= dlpack::read_only;
        }
        share_with(std::move(consumers));
        if (x.buffer() && x.device().kind() == device_kind::cuda) {
            memory::lend_out(x.buffer());
        }
    }

    /// Whether consumers may write.
    [[nodiscard]] bool is_writable() const noexcept { return (managed.flags & dlpack::read_only) == 0; }
    /// Adds consumers, before one has the tensor.
    void share_with(std::vector<std::shared_ptr<package>> consumers) {
        for (std::shared_ptr<package>& one : consumers) {
            shared_.emplace_back(keeps_, std::move(one), is_writable() ? package_use::writes : package_use::reads);
        }
    }

    /// The deleter. Its address also identifies tensors that were made here.
    static void let_go(dlpack::managed_tensor_versioned* self) {
        runtime::reaper::push(*static_cast<exported*>(self->context));
    }
    /// Whether the tensor still describes the array that it was made for, and may be used as that is.
    [[nodiscard]] bool is_unchanged() const {
        const dlpack::tensor& what = managed.what;
        return use_ == package_use::writes && what.data == (keeps_.size() == 0 ? nullptr : keeps_.device_data()) &&
               what.byte_offset == 0 && what.shape == extents_.data() && what.strides == strides_.data() &&
               static_cast<std::size_t>(what.dimensions) == extents_.size() &&
               std::equal(extents_.begin(), extents_.end(), keeps_.shape().extents().begin());
    }
    [[nodiscard]] const array& of() const noexcept { return keeps_; }

    dlpack::managed_tensor_versioned managed;

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override { delete this; }

    std::shared_ptr<void> besides_;
    array keeps_;
    package_use use_;  ///< what consumers may do at most
    std::vector<live_export> shared_;
    std::vector<std::int64_t> extents_;
    std::vector<std::int64_t> strides_;
};

dlpack::device named(const device& on) {
    switch (on.kind()) {
        case device_kind::cuda:
            return {dlpack::device_type::cuda, static_cast<std::int32_t>(on.id())};
        case device_kind::sim:
        case device_kind::registered:
            return {dlpack::device_type::extension, static_cast<std::int32_t>(on.id())};
        default:
            return {dlpack::device_type::cpu, 0};
    }
}

bool same(const dlpack::device& a, const dlpack::device& b) noexcept { return a.type == b.type && a.id == b.id; }

}  // namespace

std::optional<device> device_of(const dlpack::device& on) {
    if (on.id < 0) {
        return std::nullopt;
    }
    switch (on.type) {
        case dlpack::device_type::cpu:
        case dlpack::device_type::cuda_host:
            return cpu();
        case dlpack::device_type::cuda:
        case dlpack::device_type::cuda_managed:
            return cuda(on.id);
        case dlpack::device_type::extension:
            return sim(on.id);
    }
    return std::nullopt;
}

std::optional<array> view_on(const array& x, const dlpack::device& on) {
    if (same(named(x.device()), on)) {
        return x;
    }
    const std::optional<device> wanted = device_of(on);
    if (!wanted || (*wanted == cpu() && on.id != 0)) {
        return std::nullopt;
    }
    const bool is_here = same(named(x.device()), named(*wanted));
    const runtime::resource* const memory = x.buffer().resource(weir::detail::key);
    if (memory == nullptr) {
        return is_here ? std::optional(x) : std::nullopt;
    }
    const runtime::memory_reach reach = memory->reach();
    const std::vector<device> reached = x.devices();
    if (on.type == dlpack::device_type::cuda_host) {
        // Without a driver, plain memory stands for pinned memory.
        const bool is_pinned = reach == runtime::memory_reach::cuda_devices_too &&
                               std::any_of(reached.begin(), reached.end(),
                                           [](const device& one) { return one.kind() == device_kind::cuda; });
        return is_pinned ? std::optional(x.view_on(x.buffer().device())) : std::nullopt;
    }
    if (on.type == dlpack::device_type::cuda_managed &&
        (reach != runtime::memory_reach::host_too || *wanted != x.buffer().device())) {
        return std::nullopt;
    }
    if (is_here) {
        return x;  // of cpu and cpu:inline, say, which DLPack does not tell apart
    }
    return std::find(reached.begin(), reached.end(), *wanted) != reached.end() ? std::optional(x.view_on(*wanted))
                                                                               : std::nullopt;
}

dlpack::device dlpack_device_of(const array& x) { return named(x.device()); }

int cuda_device_of(const void* address) {
    if (address == nullptr) {
        return 0;
    }
    const std::optional<int> found = cuda(0).state(weir::detail::key).driver().device_of(address);
    if (!found) {
        throw exchange_error("the address that the CUDA Array Interface names is no memory of a CUDA device");
    }
    return *found;
}

void share_for_good(weir::detail::passkey /*key*/, const array& x, const std::vector<std::shared_ptr<package>>& with,
                    package_use use) {
    if (!x.buffer()) {
        return;
    }
    for (const std::shared_ptr<package>& one : with) {
        weir::detail::tie(x.buffer(), one, use, import_access::writable, {}, x.device());
    }
    if (x.device().kind() == device_kind::cuda) {
        memory::lend_out(x.buffer());
    }
}

dlpack_tensor exported_with(const array& x, package_use use, std::vector<std::shared_ptr<package>> consumers,
                            std::shared_ptr<void> besides) {
    runtime::reaper::start();
    return dlpack_tensor(&(new exported(x, use, std::move(consumers), std::move(besides)))->managed);
}

dlpack_tensor to_dlpack(weir::detail::passkey /*key*/, const array& x, package_use use,
                        std::vector<std::shared_ptr<package>> consumers, const std::optional<dlpack::device>& as) {
    if (!as) {
        return exported_with(x, use, std::move(consumers), nullptr);
    }
    const std::optional<array> seen = view_on(x, *as);
    if (!seen) {
        throw copy_error(x.to_string() + " is not memory of the device that DLPack names (" +
                         std::to_string(static_cast<std::int32_t>(as->type)) + ", " + std::to_string(as->id) +
                         "): copy it there first");
    }
    dlpack_tensor made = exported_with(*seen, use, std::move(consumers), nullptr);
    made->what.on = *as;
    if (as->type == dlpack::device_type::cuda_host) {
        memory::lend_out(x.buffer());  // the consumer may be at work on a CUDA device
    }
    return made;
}

dlpack_tensor to_dlpack(weir::detail::passkey key, const stream& to, const array& x, package_use use,
                        std::shared_ptr<package> its, std::vector<std::shared_ptr<package>> others,
                        const std::optional<dlpack::device>& as, source_location where) {
    // Shared first: what another thread enqueues meanwhile either is found by `enter`, or finds the consumer. With the others only
    // then, since `to` need not wait for what they do.
    dlpack_tensor made = to_dlpack(key, x, use, {std::move(its)}, as);
    auto* const tensor = static_cast<exported*>(made->context);
    try {
        enter(x, to, tensor->is_writable(), order_asked_by::program, where);
        tensor->share_with(std::move(others));
    } catch (...) {
        // No consumer ever had it, so that nothing is left for the reaper to do later.
        static_cast<void>(made.release());
        delete tensor;  // NOLINT(cppcoreguidelines-owning-memory)
        throw;
    }
    return made;
}

std::optional<array> exported_array(const dlpack::managed_tensor_versioned& of) {
    if (of.version.major != 1 || of.deleter != exported::let_go) {
        return std::nullopt;
    }
    const auto& made = *static_cast<const exported*>(of.context);
    return made.is_unchanged() ? std::optional(made.of()) : std::nullopt;
}

array from_dlpack(dlpack_tensor tensor, std::shared_ptr<package> from, source_location where) {
    if (!tensor) {
        throw argument_error("from_dlpack() got no tensor");
    }
    if (tensor->version.major != 1) {
        throw exchange_error("a DLPack tensor has the version " + std::to_string(tensor->version.major) + "." +
                             std::to_string(tensor->version.minor) +
                             ", and weir reads version 1: ask the producer for max_version=(1, 3)");
    }
    const dlpack::managed_tensor_versioned& of = *tensor;
    auto owner = std::make_unique<weir::detail::lender_of<dlpack_tensor>>(std::move(tensor));
    return from_dlpack(weir::detail::key, of.what, of.flags, std::move(owner), std::move(from), where);
}

array from_dlpack(weir::detail::passkey /*key*/, const dlpack::tensor& what, std::uint64_t flags,
                  std::unique_ptr<weir::detail::lender> owner, std::shared_ptr<package> from, source_location where) {
    if ((flags & dlpack::is_subbyte_type_padded) != 0) {
        throw exchange_error(
            "a DLPack tensor has a byte for each of its smaller elements, and weir packs them: convert it in the "
            "package that it comes from");
    }
    const tensor_layout layout = layout_of(what);
    const std::optional<device> on = device_of(what.on);
    if (!on) {
        throw exchange_error("a DLPack tensor is on a device of type " +
                             std::to_string(static_cast<std::int32_t>(what.on.type)) + " with the number " +
                             std::to_string(what.on.id) +
                             ", which weir does not know: copy it to the CPU or to a CUDA device first");
    }
    const bool read_only = (flags & dlpack::read_only) != 0;
    if (read_only && !from) {
        throw exchange_error(
            "a DLPack tensor is read-only, and its producer does not let go of it: name the package that it is of");
    }
    if (layout.bytes == 0) {
        return {weir::detail::key, layout.type, shape(layout.extents), *on};
    }
    if (on->kind() == device_kind::cuda) {
        memory::expect_room_for_import(on->state(weir::detail::key), layout.bytes);
    }
    buffer memory(weir::detail::key, memory::lend({layout.lowest, 0}, layout.bytes, on->state(weir::detail::key),
                                                  std::move(owner), nullptr, where));
    if (from) {
        weir::detail::tie(memory, std::move(from), package_use::writes,
                          read_only ? import_access::read_only : import_access::writable, where);
    }
    return {std::move(memory), layout.type, shape(layout.extents), layout.strides, layout.first};
}

}  // namespace weir::exchange
