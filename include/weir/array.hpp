// Arrays: typed, shaped windows onto buffers. Layer: array.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "weir/buffer.hpp"
#include "weir/dtype.hpp"
#include "weir/export.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"

namespace weir {

/// The extents of an array, outermost first. At most `most` dimensions; none is a single element. Extents are not
/// negative.
class WEIR_EXPORT shape {
public:
    static constexpr std::size_t most = 8;

    shape() = default;
    /// Throws argument_error for negative extents, too many dimensions, or more elements than can be addressed.
    shape(std::initializer_list<std::int64_t> extents) : shape(std::span(extents.begin(), extents.size())) {}
    explicit shape(std::span<const std::int64_t> extents);
    /// One dimension.
    shape(std::int64_t extent) : shape({extent}) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] std::size_t dimensions() const noexcept { return count_; }
    [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
    [[nodiscard]] std::span<const std::int64_t> extents() const noexcept { return {extents_.data(), count_}; }
    /// The number of elements; 1 without dimensions.
    [[nodiscard]] std::int64_t elements() const noexcept;
    /// "(3, 4)", as NumPy prints it.
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const shape&, const shape&) = default;

private:
    std::array<std::int64_t, most> extents_{};
    std::size_t count_ = 0;
};

template <class T>
class array_view;
template <class T>
class host_view;

/// An n-dimensional array in C order on one device: a window onto a buffer that knows its pending accesses. Copies and
/// slices are the same memory. Any thread.
class WEIR_EXPORT array {
public:
    /// No array: no elements, no memory.
    array() = default;

    [[nodiscard]] weir::dtype dtype() const noexcept { return dtype_; }
    [[nodiscard]] const weir::shape& shape() const noexcept { return shape_; }
    /// The number of elements.
    [[nodiscard]] std::int64_t size() const noexcept { return shape_.elements(); }
    [[nodiscard]] std::size_t nbytes() const noexcept;
    [[nodiscard]] weir::device device() const noexcept { return buffer_.device(); }
    /// The bytes it occupies in its buffer.
    [[nodiscard]] order::footprint footprint() const noexcept;
    [[nodiscard]] const weir::buffer& buffer() const noexcept { return buffer_; }

    /// The part [first, last) along the outermost dimension: the same memory. Throws argument_error out of range.
    [[nodiscard]] array slice(std::int64_t first, std::int64_t last) const;
    /// The same elements under another shape of as many elements. Throws argument_error.
    [[nodiscard]] array reshape(const weir::shape& to) const;

    /// A typed window, to be handed to `in`, `out`, `inout`. Throws argument_type_error for another element type.
    template <class T>
    [[nodiscard]] array_view<T> view() const {
        expect(dtype_of<T>);
        return array_view<T>(*this);
    }

    /// The host's window for reading: blocks until pending writes to these elements are over (rule O6). Throws
    /// argument_type_error; operation_error if what wrote them failed.
    template <class T>
    [[nodiscard]] host_view<const T> read(source_location where = source_location::current()) const {
        expect(dtype_of<T>);
        return host_view<const T>(*this, where);
    }
    /// The host's window for reading and changing: blocks until all pending accesses to these elements are over.
    template <class T>
    [[nodiscard]] host_view<T> write(source_location where = source_location::current()) const {
        expect(dtype_of<T>);
        return host_view<T>(*this, where);
    }

    /// Whether nothing pending conflicts with reading it now. Never blocks.
    [[nodiscard]] bool ready() const;
    void set_ordering(std::optional<ordering_mode> mode) const noexcept { buffer_.set_ordering(mode); }
    /// `<weir.array float32 (3, 4) on cpu>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// A window onto `memory`, `offset` bytes from its start. Throws argument_error if it does not fit or is misaligned.
    array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::size_t offset = 0);

    /// For Weir's own use: the device's address of the first element.
    [[nodiscard]] std::byte* data() const noexcept { return buffer_.data() + offset_; }

private:
    void expect(weir::dtype wanted) const;

    weir::buffer buffer_;
    weir::shape shape_{0};
    std::size_t offset_ = 0;
    weir::dtype dtype_ = dtype::float64;
};

/// A typed window onto an array: what `in`, `out` and `inout` take.
template <class T>
class array_view {
public:
    explicit array_view(array of) : array_(std::move(of)) {}
    [[nodiscard]] const array& base() const noexcept { return array_; }
    /// Device memory: for code that runs in a stream.
    [[nodiscard]] std::span<T> device_span() const noexcept {
        // The buffer's memory holds objects of this type by its dtype, which view() has checked.
        return {reinterpret_cast<T*>(array_.data()), static_cast<std::size_t>(array_.size())};
    }

private:
    array array_;
};

/// The host's window onto an array's elements, in C order, while it lives. See host_access for what it waits for.
template <class T>
class host_view {
public:
    [[nodiscard]] std::span<T> span() const noexcept { return span_; }
    [[nodiscard]] T& operator[](std::size_t i) const noexcept { return span_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
    [[nodiscard]] auto begin() const noexcept { return span_.begin(); }
    [[nodiscard]] auto end() const noexcept { return span_.end(); }

    host_view(const array& of, source_location where)
        : access_(of.buffer(), of.footprint(),
                  std::is_const_v<T> ? order::access_mode::read : order::access_mode::write, where),
          span_(reinterpret_cast<T*>(of.data()), static_cast<std::size_t>(of.size())) {}

private:
    host_access access_;
    std::span<T> span_;
};

/// An array of uninitialised elements on the device of `on`. Does not block as long as memory can be had without (L1).
/// Throws argument_error, out_of_memory.
[[nodiscard]] WEIR_EXPORT array empty(const shape& extents, dtype type = dtype::float64,
                                      const stream_ref& on = current_stream(),
                                      source_location where = source_location::current());
/// An array of zeros; the filling is enqueued on `on`.
[[nodiscard]] WEIR_EXPORT array zeros(const shape& extents, dtype type = dtype::float64,
                                      const stream_ref& on = current_stream(),
                                      source_location where = source_location::current());
/// An array whose elements all are `value` (its imaginary part must be 0 for real types: argument_error).
[[nodiscard]] WEIR_EXPORT array full(const shape& extents, std::complex<double> value, dtype type = dtype::float64,
                                     const stream_ref& on = current_stream(),
                                     source_location where = source_location::current());

}  // namespace weir
