// The end of one operation. Layer: runtime.
#pragma once

#include <cstdint>
#include <string>

#include "weir/detail/intrusive.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

namespace order {
class shared_frontier;
using clock = weir::detail::shared_owner<shared_frontier>;
}  // namespace order

/// The end of one enqueued operation: a symbolic event. Costs no driver object and no allocation; copies are cheap.
/// An empty completion stands for "nothing to wait for". It may outlive its stream. Any thread.
class WEIR_EXPORT completion {
public:
    /// Nothing to wait for.
    completion() = default;

    /// Whether the operation is complete. Never blocks. An answer of true orders what the program does next (rule V1).
    [[nodiscard]] bool done(source_location where = source_location::current()) const;

    /// Blocks the calling thread until the operation is complete. Throws operation_error if it failed, or did not run because another
    /// failed (rule K4), each time; and as stream_ref::synchronize does.
    void synchronize(source_location where = source_location::current()) const;

    /// `<weir.completion epoch 7 of "load" on cpu, not over>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// @{
    /// The operation's position, and what it is ordered after.
    [[nodiscard]] std::uint32_t timeline(detail::passkey /*key*/) const noexcept { return timeline_; }
    [[nodiscard]] std::uint64_t epoch(detail::passkey /*key*/) const noexcept { return epoch_; }
    [[nodiscard]] const order::clock& known(detail::passkey /*key*/) const noexcept { return known_; }
    completion(detail::passkey /*key*/, std::uint32_t timeline, std::uint64_t epoch, order::clock known) noexcept
        : known_(std::move(known)), epoch_(epoch), timeline_(timeline) {}
    /// @}

private:
    order::clock known_;
    std::uint64_t epoch_ = 0;
    std::uint32_t timeline_ = 0;
};

}  // namespace weir
