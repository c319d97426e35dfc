// Operands without memory. Layer: runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/detail/intrusive.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/export.hpp"
#include "weir/ordering.hpp"
#include "weir/source_location.hpp"

namespace weir {

namespace runtime {
class resource;
class token_resource;
}  // namespace runtime

/// An operand without memory, for what operations share and no array stands for: a communicator, a file, a slot of a pool, a queue
/// that lives on the device (rule K5). Operations declare it with `in`, `out` and `inout` as they declare arrays, and it is
/// ordered, checked and explained like one: what reads it runs side by side, what writes it comes one after the other. It
/// belongs to no device, so that operations of different devices, and host tasks, may name the same one. A body gets nothing
/// for it, and a kernel no argument.
///
/// \code
/// const weir::token file("results.bin");
/// weir::host_task(s1, [&] { append(first); }, weir::inout(file));
/// weir::host_task(s2, [&] { append(second); }, weir::inout(file));  // after the first
/// \endcode
///
/// Copies are the same token. It may be dropped while operations that name it are pending: they stay in the order that they have.
/// An operation that fails leaves the tokens that it writes invalid, as it does arrays: what names them next, other than by
/// `out`, does not run (rule K4). Any thread.
class WEIR_EXPORT token {
public:
    /// A new one. Reports and messages call it by its name, which need not be unique; without one they give its number. Does not
    /// block. Throws std::bad_alloc.
    explicit token(const std::string& name = {}, source_location where = source_location::current());
    /// @{
    /// The same token. What was moved from stands for none: it can be assigned to and destroyed.
    token(const token&) noexcept;
    token(token&&) noexcept;
    token& operator=(const token&) noexcept;
    token& operator=(token&&) noexcept;
    ~token();
    /// @}

    /// As it was given; empty if there is none.
    [[nodiscard]] std::string name() const;
    /// Unique in the process, among buffers too; 0 if it was moved from.
    [[nodiscard]] std::uint64_t unique_id() const noexcept;

    /// The ordering mode of operations that name it; std::nullopt leaves it to stream, scope and process (rule O5).
    void set_ordering(std::optional<ordering_mode> mode) const noexcept;
    /// What set_ordering has set.
    [[nodiscard]] std::optional<ordering_mode> ordering() const noexcept;

    /// `<weir.token "results.bin">`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// Whether both are the same token.
    friend bool operator==(const token& a, const token& b) noexcept { return a.state_ == b.state_; }

    /// For Weir's other parts: null if it was moved from.
    [[nodiscard]] runtime::resource* resource(detail::passkey key) const noexcept;
    /// For Weir's other parts: the same. Throws argument_error if it was moved from.
    [[nodiscard]] runtime::resource& expect_resource(detail::passkey key) const;

private:
    detail::owner<runtime::token_resource> state_;
};

}  // namespace weir
