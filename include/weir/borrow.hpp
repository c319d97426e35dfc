// Memory of Weir's in work that other libraries put into a stream. Layer: exchange.
#pragma once

#include <memory>
#include <optional>
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
    explicit stream_package(const stream& on);
    [[nodiscard]] std::string_view name() const noexcept override;
    [[nodiscard]] std::optional<stream> current_stream(device of) override;

private:
    stream on_;
};

/// Makes `to` wait, on the device, for everything that work which reads `x`, or writes it (`writes`), must come after: in every ordering
/// mode, as DLPack's argument `stream` asks (rules O5, X2). Does not block, unless rule O9 says so. Throws argument_error (memory that the stream's device cannot reach), state_error.
WEIR_EXPORT void hand_over(const array& x, const stream_ref& to, bool writes,
                           source_location where = source_location::current());

/// An array like `like`, whose period of use has ended, that does not keep its memory.
[[nodiscard]] WEIR_EXPORT array ended_view(const array& like, source_location where = source_location::current());

/// The tokens of a borrow.
struct borrowed_tokens {
    std::vector<token> reads;   ///< as `in` declares them
    std::vector<token> writes;  ///< as `inout` does
};

/// From its construction to its end, other libraries use arrays, and what tokens stand for, in the stream `on` (rule X6). The constructor makes the stream wait for
/// what their work must come after. What Weir enqueues elsewhere on them, meanwhile and later, comes after what is in the stream
/// by then; so does, from the end on, what packages that share the memory put into their current streams. Does not block. If the stream is of a CUDA device, CUDA devices must reach the arrays' memory.
///
/// \code
/// weir::exchange::borrow scope(s, {x}, {y});
/// library_call(stream_of_the_library(s), x.device_data(), y.device_data());
/// \endcode
class WEIR_EXPORT borrow {
public:
    /// Other libraries' work in `on` reads `reads`, and reads or writes `writes`. Throws argument_error, state_error, std::bad_alloc.
    [[nodiscard]] borrow(const stream& on, std::vector<array> reads, std::vector<array> writes,
                         const borrowed_tokens& tokens = {}, source_location where = source_location::current());
    borrow(const borrow&) = delete;
    borrow& operator=(const borrow&) = delete;
    /// As `end`; if that fails, the memory is kept for ever.
    ~borrow();

    /// Ends the borrow: later uses come after what other libraries have put into the stream up to now. Idempotent. Throws what the stream
    /// throws.
    void end(source_location where = source_location::current());

    /// Whether to wait for the stream would neither wait nor throw: all that is in it is complete, and nothing has failed. Never blocks.
    [[nodiscard]] bool is_over(weir::detail::passkey /*key*/, source_location where) const;

private:
    stream on_;
    std::vector<array> arrays_;
    std::vector<live_export> shared_;
    std::vector<runtime::access_request> accesses_;
};

}  // namespace weir::exchange
