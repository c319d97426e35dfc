// Memory of Weir's in work that other libraries put into a stream. Layer: exchange.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/export.hpp"
#include "weir/package.hpp"
#include "weir/sharing.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"
#include "weir/token.hpp"

namespace weir::exchange {

/// A package that always works on one stream.
class WEIR_EXPORT stream_package final : public package {
public:
    /// A package whose work on the device of `on` goes into `on`, whichever thread asks. Keeps the stream.
    explicit stream_package(const stream& on);
    [[nodiscard]] std::string_view name() const noexcept override;
    [[nodiscard]] std::optional<stream> current_stream(device of) override;

private:
    stream on_;
};

/// @{
/// Makes `to` wait, on the device, for everything that work which reads `x` must come after: in every ordering mode, as DLPack's argument
/// `stream` asks (rules O5, X2). With `package_use::writes`, for what work that writes `x` must come after; that takes an array that is not
/// const. Does not block, unless rule O9 says so. Throws argument_error (memory that the stream's device cannot reach), state_error.
WEIR_EXPORT void hand_over(const stream_ref& to, const array& x, source_location where = source_location::current());
WEIR_EXPORT void hand_over(const stream_ref& to, array& x, package_use use,
                           source_location where = source_location::current());
/// @}

/// An array like `like`, whose period of use has ended, that does not keep its memory.
[[nodiscard]] WEIR_EXPORT array ended_view(const array& like, source_location where = source_location::current());

/// An array that a borrow writes: made from one that is not const, or from a temporary one.
class written_array {
public:
    /// @{
    /// Stands for the array.
    written_array(array& x) : array_(x) {}              // NOLINT(google-explicit-constructor)
    written_array(array&& x) : array_(std::move(x)) {}  // NOLINT(google-explicit-constructor)
    /// @}
    /// The array.
    [[nodiscard]] array& get(weir::detail::passkey /*key*/) noexcept { return array_; }

private:
    array array_;
};

/// The tokens of a borrow.
struct borrowed_tokens {
    std::vector<token> reads = {};   ///< as `in` declares them
    std::vector<token> writes = {};  ///< as `inout` does
};

/// What other libraries use within a borrow.
struct borrowed {
    std::vector<array> reads = {};           ///< they only read these
    std::vector<written_array> writes = {};  ///< they read or write these
    borrowed_tokens tokens = {};             ///< what they use besides
};

/// From its construction to its end, other libraries use arrays, and what tokens stand for, in the stream `on` (rule X6). The constructor
/// makes the stream wait for what their work must come after. What Weir enqueues elsewhere on them, meanwhile and later, comes after what is
/// in the stream by then; so does, from the end on, what packages that share the memory put into their current streams, and what enters the
/// streams of other borrows of it. Does not block. If the stream is of a CUDA device, CUDA devices must reach the arrays' memory.
///
/// \code
/// weir::exchange::borrow scope(s, {.reads = {x}, .writes = {y}});
/// library_call(stream_of_the_library(s), x.device_data(), y.device_data());
/// \endcode
class WEIR_EXPORT borrow {
public:
    /// Other libraries' work in `on` uses `what`. Throws argument_error, state_error, std::bad_alloc.
    [[nodiscard]] borrow(const stream& on, borrowed what, source_location where = source_location::current());
    borrow(const borrow&) = delete;
    borrow& operator=(const borrow&) = delete;
    /// As `end`; if that fails, the memory is kept for ever.
    ~borrow();

    /// Ends the borrow: later uses come after what other libraries have put into the stream up to now. Idempotent. Throws what the stream
    /// throws.
    void end(source_location where = source_location::current());

    /// @{
    /// The same, in two steps: whether what packages do later has to be ordered after the borrow, for which an operation is enqueued, and the
    /// end with or without it.
    [[nodiscard]] bool hands_back(weir::detail::passkey key) const;
    void end(weir::detail::passkey key, bool hand_back, source_location where);
    /// @}

    /// Whether to wait for the stream would neither wait nor throw: all that is in it is complete, and nothing has failed. Never blocks.
    [[nodiscard]] bool is_over(weir::detail::passkey /*key*/, source_location where) const;

private:
    stream on_;
    std::vector<array> arrays_;
    std::vector<live_export> shared_;
    std::vector<runtime::access_request> accesses_;
};

}  // namespace weir::exchange
