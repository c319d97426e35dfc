// The order of another library's work, where that is kept by the accesses of each operation. Layer: runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "weir/access.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/export.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

/// An access of Weir's to memory that a package shares with it.
struct shared_access {
    std::uintptr_t address = 0;            ///< where the memory begins that they share, on its device
    std::uint64_t bytes = 0;               ///< its size
    order::footprint where;                ///< the bytes, counted from there
    access_mode mode = access_mode::read;  ///< whether it changes them
};

/// Orders the operations of a package and those of Weir on memory that they share, whatever streams they are on: each waits, on the device,
/// for what it conflicts with, and for nothing else (rule O1). Any thread, under no lock. Functions throw std::bad_alloc, and what the package
/// throws.
class WEIR_EXPORT package_order {
public:
    package_order() = default;
    package_order(const package_order&) = delete;
    package_order& operator=(const package_order&) = delete;
    virtual ~package_order();

    /// Whether all that the package does is seen. Otherwise operations are ordered with its current stream, too. Constant.
    [[nodiscard]] virtual bool sees_all() const noexcept { return true; }

    /// An operation that is being put into a stream, until it is there or has failed.
    class WEIR_EXPORT operation {
    public:
        operation() = default;
        operation(const operation&) = delete;
        operation& operator=(const operation&) = delete;
        virtual ~operation();
    };

    /// An operation of Weir's is about to be put into `on`, which waits for what it must come after; what the package does later comes after
    /// it. The result is kept until the operation is there. Null: this operation is not ordered, and the caller has to.
    [[nodiscard]] virtual std::unique_ptr<operation> begin(const stream& on,
                                                           std::span<const shared_access> accesses) = 0;
    /// Blocks until the host may make these accesses. False: they are not ordered, and the caller has to.
    [[nodiscard]] virtual bool host_waits(std::span<const shared_access> accesses) = 0;
    /// Whether the host may make them now. Never blocks. Nothing: as `host_waits`.
    [[nodiscard]] virtual std::optional<bool> is_over(std::span<const shared_access> accesses) = 0;
};

}  // namespace weir::detail
