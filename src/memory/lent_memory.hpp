#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>

#include "frontier/point.hpp"
#include "memory/block.hpp"
#include "observe/observer.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/buffer.hpp"
#include "weir/source_location.hpp"

namespace weir::memory {

/// An owner that can take its memory back in stream order, before the accesses are complete.
class ends_in_order {
public:
    /// Gives the memory back behind `last`, its last use, and before anything else can use it. Returns false, and does nothing, if
    /// that is impossible.
    [[nodiscard]] virtual bool end_behind(frontiers::point last) noexcept = 0;

protected:
    ~ends_in_order() = default;
};

/// Memory that Weir does not own: tracked like a block of the pool, given back when the last access is complete (rule L4). Contains its
/// block; the two end together.
class lent_memory final : private runtime::retired {
public:
    lent_memory(backend::memory_chunk memory, std::size_t bytes, runtime::device_state& device,
                std::unique_ptr<detail::lender> owner, ends_in_order* ends);

    [[nodiscard]] block& described() noexcept { return described_; }
    [[nodiscard]] runtime::device_state& device() const noexcept { return *device_; }

    /// The last owner of the block is gone. Destroys this object, now or later. Neither waits nor fails.
    void give_back() noexcept;

    /// @{
    /// Room with the alignment of a block. The library's functions for aligned memory cost several times what those without alignment do.
    [[nodiscard]] static void* operator new(std::size_t size, std::align_val_t alignment);
    static void operator delete(void* object, std::align_val_t alignment) noexcept;
    /// @}

private:
    ~lent_memory() override = default;
    [[nodiscard]] std::optional<frontiers::point> pending() noexcept override;
    void release() noexcept override;

    block described_;
    runtime::device_state* device_;
    std::unique_ptr<detail::lender> owner_;
    ends_in_order* ends_;  ///< the same object as owner_; null if that cannot take memory back in stream order
};

/// As buffer::wrap; null for 0 bytes. `stream`: for observers, the stream it was allocated on; null if there was none. `ends`: the
/// owner, if it can take memory back in stream order.
[[nodiscard]] detail::owner<block> lend(backend::memory_chunk memory, std::size_t bytes, runtime::device_state& on,
                                        std::unique_ptr<detail::lender> owner, const observe::stream_info* stream,
                                        const source_location& where, ends_in_order* ends = nullptr);

}  // namespace weir::memory
