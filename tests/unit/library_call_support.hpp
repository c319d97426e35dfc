// A library call of the tests' own, with two libraries: `join`, which writes one array behind another. It uses calls/call.hpp alone,
// but that its library for CUDA devices copies by the driver. What is here is all that a new call takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "backend/cuda/api/driver_api.hpp"
#include "backend/cuda/device/context.hpp"
#include "backend/cuda/device/driver.hpp"
#include "calls/call.hpp"
#include "runtime/devices/device_state.hpp"

namespace weir::test {

// The call.

class join_call final : public calls::library_call {
public:
    explicit join_call(const std::array<array, 2>& operands)
        : bytes{operands[0].nbytes(), operands[1].nbytes()}, result_shape_{operands[0].size() + operands[1].size()} {
        if (operands[0].dtype() != dtype::float64 || operands[1].dtype() != dtype::float64) {
            throw argument_type_error("join takes float64");
        }
    }
    [[nodiscard]] const char* name() const noexcept override { return "join"; }
    [[nodiscard]] const shape& result_shape() const noexcept override { return result_shape_; }
    [[nodiscard]] dtype result_type() const noexcept override { return dtype::float64; }
    [[nodiscard]] std::unique_ptr<const calls::call_plan> plan(const calls::call_layout& layout) const override;

    const std::array<std::size_t, 2> bytes;

private:
    shape result_shape_;
};

// Its two libraries. Both go by a workspace, and hold a handle that must live as long as work is pending.

/// What a library's handle would be. Counts.
struct handle {
    static inline int made = 0;
    handle() { ++made; }
};

/// The handle that was made last, while it lives.
inline std::weak_ptr<handle> last_handle;

using copy_function = void (*)(std::byte* to, const std::byte* from, std::size_t bytes, const device& on);

/// The work, which both libraries do with their own way to copy bytes.
struct join_work {
    calls::call_layout layout;
    std::array<std::size_t, 2> bytes;
    std::byte* workspace;
    copy_function copy;
    std::shared_ptr<handle> library;

    void operator()() const {
        copy(workspace, layout.inputs[0].where.first, bytes[0], layout.on);
        copy(workspace + bytes[0], layout.inputs[1].where.first, bytes[1], layout.on);
        copy(layout.result.first, workspace, bytes[0] + bytes[1], layout.on);
    }
};

inline void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes, const device&) {
    std::memcpy(to, from, bytes);
}

inline void enqueue_copy(std::byte* to, const std::byte* from, std::size_t bytes, const device& on) {
    const backend::cuda::context& in = backend::cuda::context_of(on.state(detail::key).driver());
    const auto queue = static_cast<backend::cuda::stream_handle>(detail::native_queue_handle());
    in.expect(
        in.api().copy_async(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from), bytes, queue),
        "cuMemcpyAsync");
}

template <bool IsNative>
class join_plan final : public calls::call_plan {
public:
    join_plan(const join_call& call, const calls::call_layout& layout) : layout_(layout), bytes_(call.bytes) {
        for (const calls::call_layout::input& each : layout.inputs) {
            if (each.overlaps_result) {
                throw argument_error("join: the result overlaps an operand");
            }
        }
        last_handle = library_;
    }
    [[nodiscard]] std::size_t workspace_bytes() const noexcept override { return bytes_[0] + bytes_[1]; }
    [[nodiscard]] calls::call_work work(std::byte* workspace) const override {
        if constexpr (IsNative) {
            return calls::call_work::native_task(join_work{layout_, bytes_, workspace, enqueue_copy, library_});
        } else {
            return calls::call_work::host_task(join_work{layout_, bytes_, workspace, copy_on_host, library_});
        }
    }

private:
    calls::call_layout layout_;
    std::array<std::size_t, 2> bytes_;
    std::shared_ptr<handle> library_ = std::make_shared<handle>();
};

struct native_join {
    [[nodiscard]] bool serves(const device& on) const { return on.kind() == device_kind::cuda; }
    [[nodiscard]] std::unique_ptr<const calls::call_plan> plan(const join_call& call,
                                                               const calls::call_layout& layout) const {
        return std::make_unique<join_plan<true>>(call, layout);
    }
};
struct host_join {
    [[nodiscard]] bool serves(const device& on) const { return on.kind() != device_kind::cuda; }
    [[nodiscard]] std::unique_ptr<const calls::call_plan> plan(const join_call& call,
                                                               const calls::call_layout& layout) const {
        return std::make_unique<join_plan<false>>(call, layout);
    }
};
static_assert(calls::provider_of<native_join, join_call> && calls::provider_of<host_join, join_call>);
static_assert(!calls::provider_of<handle, join_call>);

inline std::unique_ptr<const calls::call_plan> join_call::plan(const calls::call_layout& layout) const {
    return calls::plan_by_first(*this, layout, native_join{}, host_join{});
}

// What users would call.

inline array join(const on& where, const std::array<array, 2>& operands, const calls::call_terms& terms = {}) {
    return calls::execute(join_call(operands), terms, where, operands);
}

inline completion join(const on& where, const std::array<array, 2>& operands, const array& result) {
    buffer workspace;
    return calls::execute(join_call(operands), {}, where, operands, result, workspace);
}

/// The stateful form.
class joiner {
public:
    explicit joiner(const std::array<array, 2>& operands) : state_(std::make_unique<state>(operands)) {}
    void plan(const on& where) {
        state& s = alive();
        s.held.prepare(s.call, where);
        s.held.set_planned();
    }
    array execute(const on& where) {
        state& s = alive();
        array result = calls::make_result(s.call, where, s.held.expect_planned());
        execute(where, result);
        return result;
    }
    completion execute(const on& where, const array& result) {
        state& s = alive();
        return s.held.execute(s.call, where, result, s.last);
    }
    void reset_operands(const std::array<array, 2>& operands) { alive().held.reset_operands(operands); }
    void release_operands() { alive().held.release_operands(); }
    void free() noexcept { state_.reset(); }

private:
    struct state {
        join_call call;
        calls::stateful_call held;
        calls::prepared_calls last;
        explicit state(const std::array<array, 2>& operands) : call(operands), held("joiner", operands, {}) {}
    };
    [[nodiscard]] state& alive() const { return calls::expect_alive("joiner", state_); }
    std::unique_ptr<state> state_;
};

}  // namespace weir::test
