// Where an operation goes, and what it comes after. Layer: array.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/completion.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/site.hpp"
#include "weir/event.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

namespace detail {

/// The operations that an operation comes after. The first two are stored in place.
class completion_list {
public:
    /// Throws std::bad_alloc; then nothing was added.
    void add(completion one) {
        if (count_ < few_.size()) [[likely]] {
            few_[count_++] = std::move(one);
            return;
        }
        if (many_.empty()) {
            many_.reserve(4 * few_.size());
            many_.assign(few_.begin(), few_.end());
        }
        many_.push_back(std::move(one));
    }
    [[nodiscard]] std::span<const completion> all() const noexcept {
        return many_.empty() ? std::span(few_).first(count_) : std::span(many_);
    }

private:
    std::array<completion, 2> few_;
    std::size_t count_ = 0;         ///< number of entries in `few_`
    std::vector<completion> many_;  ///< all entries, once they do not fit into `few_`
};

}  // namespace detail

/// A string literal that names an operation in errors, reports and timelines. Text that is made at run time does not compile here, as with
/// std::format_string, because the text is used long after the call.
class label {
public:
    /// From a literal, or from a constant with static storage. Reads the characters, which only constants allow, so that a variable does
    /// not compile.
    template <std::size_t N>
    consteval label(const char (&literal)[N])  // NOLINT(google-explicit-constructor): as std::format_string
        : text_(literal) {
        if (std::string_view(literal, N).find('\0') != N - 1) {
            throw "a label ends with its first null character";  // the compiler refuses the call
        }
    }
    /// The text, which lives as long as the program.
    [[nodiscard]] constexpr const char* text() const noexcept { return text_; }

private:
    const char* text_;
};

/// The destination of an operation: a stream, and optionally a label and what the operation must come after. Converts implicitly from a
/// stream. Stores the line of the program that made it. On a variable, `label` and `after` change it and return a reference; on a temporary
/// object they return a new object, so that `const auto& w = on(s).label("x")` stays valid.
///
/// \code
/// weir::parallel_for(s, n, body, weir::in(x));
/// weir::parallel_for(weir::on(s).label("window").after(e), n, body, weir::in(x));
/// \endcode
class on {
public:
    /// The stream must outlive the call that takes this object. `where` is this line of the program.
    on(const stream_ref& stream,  // NOLINT(google-explicit-constructor): a stream alone is the common case
       source_location where = source_location::current()) noexcept
        : stream_(stream), site_{nullptr, where} {}

    /// @{
    /// A name for errors, reports and timelines: a string literal.
    on& label(weir::label name) & noexcept {
        site_.label = name.text();
        return *this;
    }
    [[nodiscard]] on label(weir::label name) && noexcept { return std::move(label(name)); }
    /// @}
    /// @{
    /// The operation also starts after `event`, or after the operation whose end is `end` (rule O5), in every ordering mode. Throws
    /// std::bad_alloc; never for the first two.
    on& after(completion end) & {
        after_.add(std::move(end));
        return *this;
    }
    on& after(const event& event) & { return after(event.recorded()); }
    [[nodiscard]] on after(completion end) && { return std::move(after(std::move(end))); }
    [[nodiscard]] on after(const event& event) && { return std::move(after(event.recorded())); }
    /// @}

    /// The same on another stream.
    [[nodiscard]] on moved_to(const stream_ref& stream) const {
        on moved = *this;
        moved.stream_ = stream;
        return moved;
    }

    /// For other parts of Weir: the same with this name, unless it has one. `name` lives as long as the program.
    [[nodiscard]] on named(const char* name, detail::passkey /*key*/) const {
        on copy = *this;
        copy.site_.label = site_.label != nullptr ? site_.label : name;
        return copy;
    }

    /// The stream.
    [[nodiscard]] const stream_ref& stream() const noexcept { return stream_; }
    /// Its label and the line of the program.
    [[nodiscard]] const runtime::site& site(detail::passkey /*key*/) const noexcept { return site_; }
    /// The operations that were passed to `after`.
    [[nodiscard]] std::span<const completion> dependencies() const noexcept { return after_.all(); }

private:
    stream_ref stream_;
    runtime::site site_;
    detail::completion_list after_;
};

}  // namespace weir
