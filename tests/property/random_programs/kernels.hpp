#pragma once

#include <cstdint>
#include <span>

#include "random_programs/program.hpp"
#include "weir/weir.hpp"

namespace random_programs {

/// The host code of work.hpp, as kernels of a CUDA device.
class kernels {
public:
    /// Compiles them. Throws as weir::kernel::from_source does.
    explicit kernels(const weir::device& on);

    [[nodiscard]] weir::device device() const noexcept { return operate_.device(); }

    /// Enqueues the operation of a step, which reads and writes these arrays.
    [[nodiscard]] weir::completion operate(const step& one, const weir::on& where, std::span<const weir::array> reads,
                                           std::span<weir::array> writes) const;
    /// Sets each element to what the step brings there; if it fills, to what it brings to the first element.
    [[nodiscard]] weir::completion assign(const step& one, const weir::on& where, weir::array& target) const;
    /// The same as weir::copy.
    [[nodiscard]] weir::completion copy(const weir::on& where, weir::array& target, const weir::array& source) const;

private:
    weir::kernel operate_;
    weir::kernel assign_;
    weir::kernel copy_;
};

}  // namespace random_programs
