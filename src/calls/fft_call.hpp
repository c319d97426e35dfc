#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "calls/fft_provider.hpp"
#include "weir/array.hpp"
#include "weir/fft.hpp"
#include "weir/launch.hpp"

namespace weir::calls {

/// What the program asks for.
struct fft_request {
    fft_kind kind = fft_kind::complex_to_complex;
    fft_direction direction = fft_direction::forward;
    fft::options how;
};

/// One transform of operands of some shape and type, with all that follows from them. A pure value.
///
/// Where the operand's rows are too short, or real although the transform is complex, they are first copied to where they
/// are long enough and have the right type: to the result, which is then transformed in place, or, since the rows of a
/// real result are shorter than those of its complex operand, to a workspace.
class fft_call {
public:
    /// Throws argument_error, argument_type_error.
    fft_call(const fft_request& request, const weir::shape& operand, dtype type);

    [[nodiscard]] const weir::shape& result_shape() const noexcept { return result_shape_; }
    [[nodiscard]] dtype result_type() const noexcept { return result_type_; }
    [[nodiscard]] std::size_t workspace_bytes() const noexcept;

    /// Prepares, with the provider, what operands with the pool's alignment need, so that errors come at once.
    void prepare() const;

    /// Throws argument_error or argument_type_error unless `out` can be the result of transforming `a` on a stream of
    /// device `on`.
    void expect_operands(const array& a, const array& out, device on) const;

    /// Enqueues the transform of `a` to `out` by way of `workspace`, which has workspace_bytes() at least. One operation:
    /// reads a, writes out and workspace. Does not block.
    completion enqueue(const on& where, const array& a, const array& out, const buffer& workspace) const;

private:
    enum class path : std::uint8_t { direct, by_result, by_workspace };

    [[nodiscard]] fft_problem problem(bool in_place, bool aligned) const noexcept;
    [[nodiscard]] bool same_memory(const array& a, const array& out) const noexcept;
    [[nodiscard]] double factor() const noexcept;

    fft_request request_;
    weir::shape operand_shape_;
    dtype operand_type_;
    weir::shape result_shape_;
    dtype result_type_;
    path path_ = path::direct;
    std::int64_t n_ = 0;
    std::int64_t batch_ = 0;
    std::int64_t in_length_ = 0;   ///< elements of a row of the operand
    std::int64_t row_length_ = 0;  ///< elements of a row that the transform reads, of the transform's element type
    std::int64_t out_length_ = 0;  ///< elements of a row of the result
};

/// The stateless call with a result of its own.
[[nodiscard]] array transform(const on& where, const array& a, const fft_request& request);
/// The stateless call.
completion transform(const on& where, const array& a, const array& out, const fft_request& request);

}  // namespace weir::calls
