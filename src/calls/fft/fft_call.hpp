#pragma once

#include <memory>
#include <utility>

#include "calls/call.hpp"
#include "calls/fft/geometry.hpp"
#include "calls/kept_calls.hpp"
#include "weir/dtype.hpp"
#include "weir/fft.hpp"
#include "weir/shape.hpp"

namespace weir::calls {

/// One transform in one direction, as a library call with one input. Refers to the geometry.
class fft_call final : public library_call {
public:
    fft_call(const fft_geometry& what, fft_direction direction) noexcept : what_(what), direction_(direction) {}

    [[nodiscard]] const fft_geometry& what() const noexcept { return what_; }
    [[nodiscard]] fft_direction direction() const noexcept { return direction_; }

    [[nodiscard]] const char* name() const noexcept override { return what_.call(); }
    [[nodiscard]] const char* label() const noexcept override;
    [[nodiscard]] const weir::shape& result_shape() const noexcept override { return what_.result_shape(); }
    [[nodiscard]] dtype result_type() const noexcept override { return what_.result_type(); }
    [[nodiscard]] bool can_overwrite_copy() const noexcept override;
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const call_layout& layout) const override;

private:
    const fft_geometry& what_;
    fft_direction direction_;
};

/// A stateless transform that was made before.
struct kept_fft {
    explicit kept_fft(fft_geometry described) : what(std::move(described)) {}

    const fft_geometry what;
    prepared_calls prepared;
};
/// Those of the process.
[[nodiscard]] kept_calls<kept_fft>& kept_ffts();

/// The library that transforms on a device. Opens it.
[[nodiscard]] library_in_use fft_library_on(const device& computing);

/// The options of a program that all calls share.
[[nodiscard]] inline call_terms terms_of(const fft::options& how) {
    return {how.execution, how.blocking, how.memory_limit};
}

}  // namespace weir::calls
