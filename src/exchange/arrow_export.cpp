#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exchange/arrow_types.hpp"
#include "exchange/exported_columns.hpp"
#include "memory/quarantine.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "runtime/lifetime/resource.hpp"
#include "weir/access.hpp"
#include "weir/arrow.hpp"
#include "weir/borrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/sharing.hpp"

namespace weir::exchange {

namespace {

void expect_column(const weir::array& x) {
    if (x.dimensions() != 1) {
        throw exchange_error("Arrow's columns have one dimension, and " + x.to_string() + " has " +
                             std::to_string(x.dimensions()) +
                             ": export x.reshape({-1}), or slices of it, or use DLPack");
    }
    if (!x.is_contiguous()) {
        throw exchange_error("Arrow's columns lie one element after the other, and those of " + x.to_string() +
                             " do not: export x.copy()");
    }
}

/// The state behind an array that a consumer holds. The consumer may release it on any thread, under any lock, so that the release
/// function only passes it to the reaper (rule L4).
class exported_column final : public runtime::retired {
public:
    exported_column(const weir::array& x, std::vector<std::shared_ptr<package>> consumers, const source_location& where)
        : keeps_(x), memory_(x) {
        for (std::shared_ptr<package>& one : consumers) {
            shared_.emplace_back(x, std::move(one));  // const: they read
        }
        buffers_[1] = x.size() == 0 ? nullptr : x.device_data();
        const dlpack::device on = dlpack_device_of(x);
        structure.device_type = static_cast<std::int32_t>(on.type);
        structure.device_id = on.type == dlpack::device_type::cpu ? -1 : on.id;
        structure.array.length = x.size();
        structure.array.n_buffers = static_cast<std::int64_t>(buffers_.size());
        structure.array.buffers = buffers_.data();
        structure.array.private_data = this;
        structure.array.release = [](arrow::array* self) {
            auto* const ended = static_cast<exported_column*>(self->private_data);
            self->release = nullptr;
            runtime::reaper::push(*ended);
        };
        if (!x.buffer()) {
            return;
        }
        if (x.device().kind() != device_kind::cuda) {
            const host_access there(detail::key, x.buffer(), x.used(detail::key), order::access_mode::read, where);
            return;
        }
        memory::lend_out(x.buffer());
        if (!x.ready() || x.buffer().resource(detail::key)->packages().any()) {
            note_writes(where);
        }
    }

    arrow::device_array structure;

private:
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override { return std::nullopt; }
    void release() noexcept override { delete this; }

    /// Records an event that is complete when pending writes are, in a stream of its own: it waits for nothing else.
    void note_writes(const source_location& where) {
        const stream after(keeps_.device());
        hand_over(after, keeps_, where);
        written_ = after.record(where);
        handle_ = written_.handle();
        if (handle_ != nullptr) {
            structure.sync_event = &handle_;
        }
    }

    weir::array keeps_;
    exported_column_memory memory_;
    std::vector<live_export> shared_;
    /// The validity bitmap (none: no element is null), and the elements.
    std::array<const void*, 2> buffers_{nullptr, nullptr};
    event written_;
    void* handle_ = nullptr;  ///< of `written_`
};

}  // namespace

arrow_schema to_arrow_schema(dtype type) {
    arrow::schema made;
    made.format = arrow_format_of(type);
    made.name = "";
    made.release = [](arrow::schema* self) { self->release = nullptr; };  // everything in it is constant
    return arrow_schema(made);
}

arrow_array to_arrow(const weir::array& x, std::vector<std::shared_ptr<package>> consumers, source_location where) {
    expect_column(x);
    static_cast<void>(arrow_format_of(x.dtype()));
    runtime::reaper::start();
    auto made = std::make_unique<exported_column>(x, std::move(consumers), where);
    arrow::device_array structure = made.release()->structure;  // from here on the release function owns it
    return arrow_array(structure);
}

}  // namespace weir::exchange
