#pragma once

#include <memory>
#include <utility>

#include "calls/call.hpp"
#include "calls/kept_calls.hpp"
#include "calls/matmul/geometry.hpp"
#include "weir/calls.hpp"
#include "weir/dtype.hpp"
#include "weir/linalg.hpp"
#include "weir/shape.hpp"

namespace weir::calls {

/// One product, as a library call with two to four inputs. Refers to the geometry.
class matmul_call final : public library_call {
public:
    matmul_call(const matmul_geometry& what, const weir::memory_limit& limit) noexcept : what_(what), limit_(limit) {}

    [[nodiscard]] const matmul_geometry& what() const noexcept { return what_; }
    /// What the program lets the call take, so that a library can choose an algorithm that needs less.
    [[nodiscard]] const weir::memory_limit& limit() const noexcept { return limit_; }

    [[nodiscard]] const char* name() const noexcept override { return what_.call(); }
    [[nodiscard]] const char* label() const noexcept override { return "matmul"; }
    [[nodiscard]] const weir::shape& result_shape() const noexcept override { return what_.result_shape(); }
    [[nodiscard]] dtype result_type() const noexcept override { return what_.type(); }
    [[nodiscard]] std::unique_ptr<const call_plan> plan(const call_layout& layout) const override;

private:
    const matmul_geometry& what_;
    weir::memory_limit limit_;
};

/// A stateless product that was made before.
struct kept_matmul {
    explicit kept_matmul(matmul_geometry described) : what(std::move(described)) {}

    const matmul_geometry what;
    prepared_calls prepared;
};
/// Those of the process.
[[nodiscard]] kept_calls<kept_matmul>& kept_matmuls();

/// The library that multiplies on a device. Opens it.
[[nodiscard]] library_in_use matmul_library_on(const device& computing);

/// What a program's options say that is not the product's own.
[[nodiscard]] inline call_terms terms_of(const matmul_options& how) {
    return {how.execution, how.blocking, how.memory_limit};
}

}  // namespace weir::calls
