#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "frontier/point.hpp"
#include "memory/block.hpp"
#include "runtime/device_state.hpp"
#include "runtime/reaper.hpp"
#include "weir/buffer.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// An owner that can take its memory back in the order of a stream, before the accesses are over.
class ends_in_order {
public:
    /// Has the memory given back behind `last`, which is the last to use it, and before anybody else uses it; false, and
    /// nothing done, if that cannot be.
    [[nodiscard]] virtual bool end_behind(frontiers::point last) noexcept = 0;

protected:
    ~ends_in_order() = default;
};

/// Memory that others own: tracked as a block of the pool is, given back when the last access is over (rule L4). Its block
/// is inside it; the two end together.
class lent_memory final : private runtime::retired {
public:
    lent_memory(backend::memory_piece memory, std::size_t bytes, runtime::device_state& device,
                std::unique_ptr<detail::lender> owner, ends_in_order* ends);

    [[nodiscard]] block& described() noexcept { return described_; }
    [[nodiscard]] runtime::device_state& device() const noexcept { return *device_; }

    /// The last owner of the block is gone. Ends this object, now or later. Neither waits nor fails.
    void give_back() noexcept;

private:
    ~lent_memory() override = default;
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override;
    void release() noexcept override;

    block described_;
    runtime::device_state* device_;
    std::unique_ptr<detail::lender> owner_;
    ends_in_order* ends_;  ///< the owner as such; null if it is none
};

/// What buffer::wrap says; null for 0 bytes. `stream`: for observers, the one it was allocated on; null if there was none.
/// `ends`: the owner, if it is one that can do that.
[[nodiscard]] detail::owner<block> lend(backend::memory_piece memory, std::size_t bytes, runtime::device_state& on,
                                        std::unique_ptr<detail::lender> owner, const runtime::stream_info* stream,
                                        const source_location& where, ends_in_order* ends = nullptr);

}  // namespace weir::memory
