// Arrays: typed, shaped windows onto buffers. Layer: array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "weir/buffer.hpp"
#include "weir/dtype.hpp"
#include "weir/export.hpp"
#include "weir/indexing.hpp"
#include "weir/scalar.hpp"
#include "weir/shape.hpp"
#include "weir/source_location.hpp"
#include "weir/stream.hpp"
#include "weir/strided_span.hpp"

namespace weir {

class operand;
template <class T>
class array_view;
template <class T, std::size_t Rank>
class strided_view;
template <class T>
class host_view;

namespace detail {

/// Where the elements of an array are. There are none in an array that was moved from.
struct elements_memory : buffer::tracked_memory {
    elements_memory() = default;
    explicit elements_memory(const tracked_memory& where) noexcept : tracked_memory(where) {}
    elements_memory(const elements_memory&) = default;
    elements_memory(elements_memory&& other) noexcept : tracked_memory(std::exchange<tracked_memory>(other, {})) {}
    elements_memory& operator=(const elements_memory&) = default;
    elements_memory& operator=(elements_memory&& other) noexcept {
        tracked_memory::operator=(std::exchange<tracked_memory>(other, {}));
        return *this;
    }
    ~elements_memory() = default;
};

}  // namespace detail

/// An n-dimensional array on one device: a window onto a buffer that knows its pending accesses. Elements lie in C order
/// or, after slicing or transposing, anyhow. Copies, slices and all else that a member gives as an array are the same
/// memory. Any thread.
class WEIR_EXPORT array {
public:
    /// No array: no elements, no memory.
    array() = default;

    /// The element type.
    [[nodiscard]] weir::dtype dtype() const noexcept { return dtype_; }
    /// The extents, outermost first.
    [[nodiscard]] const weir::shape& shape() const noexcept { return shape_; }
    /// Bytes from one index to the next, for each dimension; may be negative, or 0 where an element stands for many.
    [[nodiscard]] std::span<const std::int64_t> strides() const noexcept { return strides_.values(); }
    /// The number of dimensions.
    [[nodiscard]] std::size_t dimensions() const noexcept { return shape_.dimensions(); }
    /// The number of elements.
    [[nodiscard]] std::int64_t size() const noexcept { return shape_.elements(); }
    /// Bytes of all elements, packed.
    [[nodiscard]] std::size_t nbytes() const noexcept { return static_cast<std::size_t>(size()) * size_of(dtype_); }
    /// The device whose memory holds the elements; of none, the one for which it was made.
    [[nodiscard]] weir::device device() const noexcept {
        return place_ == nullptr ? buffer_.device() : weir::device(*place_);
    }
    /// The bytes it occupies in its buffer: exactly its elements, not what lies between them (rule O3).
    [[nodiscard]] const order::footprint& footprint() const noexcept { return footprint_; }
    /// The memory that it is a window onto, which other arrays may share.
    [[nodiscard]] const weir::buffer& buffer() const noexcept { return buffer_; }
    /// Whether the elements lie one after the other in C order.
    [[nodiscard]] bool is_contiguous() const noexcept { return contiguous_; }
    /// Whether each element has memory of its own, so that the array can be written: not what broadcast_to gives.
    [[nodiscard]] bool has_own_elements() const noexcept;

    /// The part [first, last) along the outermost dimension. Throws argument_error out of range.
    [[nodiscard]] array slice(std::int64_t first, std::int64_t last) const;
    /// A part as NumPy's indexing selects it: `x[3]`, `x[{slice{1, 5}, -1}]`, `x[{ellipsis, new_axis}]`. Throws
    /// argument_error: an index out of range, too many of them, a step of 0.
    [[nodiscard]] array operator[](std::initializer_list<index_term> index) const {
        return at(std::span(index.begin(), index.size()));
    }
    /// The same for one index.
    [[nodiscard]] array operator[](const index_term& index) const { return at(std::span(&index, 1)); }
    /// The same, for an index made at run time.
    [[nodiscard]] array at(std::span<const index_term> index) const;

    /// The dimensions in another order: dimension i of the result is dimension axes[i]; negative ones count from the end.
    /// Throws argument_error unless each is named once.
    [[nodiscard]] array transpose(std::span<const std::int64_t> axes) const;
    /// The same: `x.transpose({1, 0})`.
    [[nodiscard]] array transpose(std::initializer_list<std::int64_t> axes) const {
        return transpose(std::span(axes.begin(), axes.size()));
    }
    /// All dimensions in reverse.
    [[nodiscard]] array t() const;

    /// The same elements, in C order, under another shape. Throws argument_error if it has another number of elements, or
    /// if the elements lie so that no strides say it: `reshape(on, x, shape)` copies then.
    [[nodiscard]] array reshape(const weir::shape& to) const;
    /// The same; nothing if a copy would be needed.
    [[nodiscard]] std::optional<array> try_reshape(const weir::shape& to) const;
    /// The same where one extent may be -1: what is left.
    [[nodiscard]] array reshape(std::initializer_list<std::int64_t> to) const {
        return reshape(completed(std::span(to.begin(), to.size())));
    }
    /// A shape for `reshape`, from extents one of which may be -1. Throws argument_error.
    [[nodiscard]] weir::shape completed(std::span<const std::int64_t> extents) const;

    /// An array of a larger shape in which elements stand for many, as NumPy broadcasts: to be read, not to be written.
    /// Throws argument_error.
    [[nodiscard]] array broadcast_to(const weir::shape& to) const;

    /// A typed window that keeps the memory, to be handed to `in`, `out`, `inout`, whose bodies get a std::span; they take
    /// the array itself as well. Throws argument_type_error for another element type, argument_error if the elements do
    /// not lie in C order.
    template <class T>
    [[nodiscard]] array_view<T> view() const {
        expect(dtype_of<T>);
        expect_contiguous();
        return array_view<T>(*this);
    }
    /// The same whatever the strides: bodies get a strided_span<T, Rank>. Throws argument_type_error; argument_error for
    /// another number of dimensions.
    template <class T, std::size_t Rank>
    [[nodiscard]] strided_view<T, Rank> strided() const {
        expect(dtype_of<T>);
        expect_dimensions(Rank);
        return strided_view<T, Rank>(*this);
    }

    /// The host's window for reading: blocks until pending writes to these elements are over (rule O6). A copy, as
    /// they are then, of elements that do not lie in C order or that the host cannot reach. Throws argument_type_error;
    /// operation_error if what wrote them failed (rule K4).
    template <class T>
    [[nodiscard]] host_view<const T> read(source_location where = source_location::current()) const {
        expect(dtype_of<T>);
        return host_view<const T>(*this, where);
    }
    /// The host's window for reading and changing: blocks until all pending accesses to these elements are over. Throws
    /// argument_type_error, argument_error if the elements do not lie in C order or the host cannot reach them.
    template <class T>
    [[nodiscard]] host_view<T> write(source_location where = source_location::current()) const {
        expect(dtype_of<T>);
        expect_contiguous();
        return host_view<T>(*this, where);
    }

    /// Whether nothing pending conflicts with reading it now. Never blocks.
    [[nodiscard]] bool ready() const;
    /// Who orders operations on its memory: buffer::set_ordering.
    void set_ordering(std::optional<ordering_mode> mode) const noexcept { buffer_.set_ordering(mode); }
    /// `<weir.array float32 (3, 4) on cpu>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// A window onto `memory`, in C order, `offset` bytes from its start. Throws argument_error if it does not fit or is
    /// misaligned.
    array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::size_t offset = 0);
    /// The same with strides, in bytes: multiples of the element's size. `offset` is where the element with all indices 0
    /// begins.
    array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::span<const std::int64_t> strides,
          std::size_t offset);

    /// The host's address of the element with all indices 0: see buffer::data.
    [[nodiscard]] std::byte* data() const noexcept { return buffer_.data() + offset_; }
    /// For Weir's own use: the device's address of that element, for code that runs in a stream.
    [[nodiscard]] std::byte* device_data() const noexcept { return elements_.device_data; }
    /// For Weir's own use: the memory, with the address of that element; null if there is none.
    [[nodiscard]] const weir::buffer::tracked_memory& tracked() const noexcept { return elements_; }
    /// For Weir's own use: the same. Throws as `view` does.
    template <class T>
    [[nodiscard]] const weir::buffer::tracked_memory& tracked() const {
        expect(dtype_of<T>);
        expect_contiguous();
        return elements_;
    }

    /// @{
    /// Arithmetic, element by element, on the current stream of the device of the first array: `compute` of arithmetic.hpp,
    /// which says what an operand is, and has the rules and errors. Reads its operands; the forms with = write `a`, and are
    /// the only ones that change it. Never blocks.
    friend WEIR_EXPORT array operator+(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator-(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator*(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator/(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator==(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator!=(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator<(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator<=(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator>(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator>=(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator&(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator|(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator^(const operand& a, const operand& b);
    friend WEIR_EXPORT array operator-(const operand& a);
    friend WEIR_EXPORT array operator~(const operand& a);
    friend WEIR_EXPORT const array& operator+=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator-=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator*=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator/=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator&=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator|=(const array& a, const operand& b);
    friend WEIR_EXPORT const array& operator^=(const array& a, const operand& b);
    /// @}

private:
    friend array empty(const weir::shape& extents, weir::dtype type, const stream_ref& on, source_location where);
    void expect(weir::dtype wanted) const {
        if (wanted != dtype_) {
            refuse_type(wanted);
        }
    }
    void expect_contiguous() const {
        if (!contiguous_) {
            refuse_order();
        }
    }
    [[noreturn]] void refuse_type(weir::dtype wanted) const;
    [[noreturn]] void refuse_order() const;
    void expect_dimensions(std::size_t wanted) const;
    /// The same memory, described anew.
    [[nodiscard]] array with_layout(weir::shape extents, std::span<const std::int64_t> strides,
                                    std::int64_t moved) const;
    void find_footprint();
    void find_elements() noexcept;

    weir::buffer buffer_;
    weir::shape shape_{0};
    detail::axis_list strides_{std::array{std::int64_t{8}}};
    // What an operation asks lies together.
    order::footprint footprint_;
    detail::elements_memory elements_;
    weir::dtype dtype_ = dtype::float64;
    bool contiguous_ = true;
    std::size_t offset_ = 0;
    runtime::device_state* place_ = nullptr;  ///< the device of an array without memory; null: the memory's
};

/// A typed window onto an array in C order: what `in`, `out` and `inout` take.
template <class T>
class array_view {
public:
    /// For array: what it has checked.
    explicit array_view(array of) : array_(std::move(of)) {}
    /// The array.
    [[nodiscard]] const array& base() const noexcept { return array_; }
    /// Device memory: for code that runs in a stream.
    [[nodiscard]] std::span<T> device_span() const noexcept {
        // The buffer's memory holds objects of this type by its dtype, which view() has checked.
        return {reinterpret_cast<T*>(array_.device_data()), static_cast<std::size_t>(array_.size())};
    }

private:
    array array_;
};

/// A typed window onto an array with any strides: what `in`, `out` and `inout` take as well.
template <class T, std::size_t Rank>
class strided_view {
public:
    /// For array: what it has checked.
    explicit strided_view(array of) : array_(std::move(of)) {}
    /// The array.
    [[nodiscard]] const array& base() const noexcept { return array_; }
    /// Device memory: for code that runs in a stream.
    [[nodiscard]] strided_span<T, Rank> device_span() const noexcept {
        std::array<std::int64_t, Rank> extents{};
        std::array<std::int64_t, Rank> strides{};
        for (std::size_t axis = 0; axis < Rank; ++axis) {
            extents[axis] = array_.shape()[axis];
            strides[axis] = array_.strides()[axis] / static_cast<std::int64_t>(sizeof(T));
        }
        return {reinterpret_cast<T*>(array_.device_data()), extents, strides};
    }

private:
    array array_;
};

namespace detail {

/// The part of host_view that does not depend on the element type.
class WEIR_EXPORT host_window {
public:
    host_window(const array& of, order::access_mode mode, source_location where);
    /// The host's address of the first element.
    [[nodiscard]] std::byte* data() const noexcept { return data_; }

private:
    std::optional<host_access> access_;
    std::unique_ptr<std::byte[]> copy_;
    std::byte* data_ = nullptr;
};

}  // namespace detail

/// The host's window onto an array's elements, in C order, while it lives. See host_access for what it waits for; a copy,
/// of elements that lie in another order or that the host cannot reach, hinders nobody.
template <class T>
class host_view {
public:
    /// The elements. Valid while the view lives.
    [[nodiscard]] std::span<T> span() const noexcept { return span_; }
    /// An element; the index is not checked.
    [[nodiscard]] T& operator[](std::size_t i) const noexcept { return span_[i]; }
    /// The number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
    /// @{
    /// For loops over the elements.
    [[nodiscard]] auto begin() const noexcept { return span_.begin(); }
    [[nodiscard]] auto end() const noexcept { return span_.end(); }
    /// @}

    /// What array::read and array::write make; blocks as they say.
    host_view(const array& of, source_location where)
        : window_(of, std::is_const_v<T> ? order::access_mode::read : order::access_mode::write, where),
          span_(reinterpret_cast<T*>(window_.data()), static_cast<std::size_t>(of.size())) {}

private:
    detail::host_window window_;
    std::span<T> span_;
};

/// An array of uninitialised elements on the device of `on`. Does not block as long as memory can be had without (L1).
/// Throws argument_error, out_of_memory.
[[nodiscard]] WEIR_EXPORT array empty(const shape& extents, dtype type = dtype::float64,
                                      const stream_ref& on = current_stream(),
                                      source_location where = source_location::current());
/// An array of zeros; the filling is enqueued on `on`. Blocks and throws as `empty` does.
[[nodiscard]] WEIR_EXPORT array zeros(const shape& extents, dtype type = dtype::float64,
                                      const stream_ref& on = current_stream(),
                                      source_location where = source_location::current());
/// An array of ones; the filling is enqueued on `on`. Blocks and throws as `empty` does.
[[nodiscard]] WEIR_EXPORT array ones(const shape& extents, dtype type = dtype::float64,
                                     const stream_ref& on = current_stream(),
                                     source_location where = source_location::current());
/// The numbers start, start + step, ... before stop, as NumPy's arange gives them. Without a type: int64 if all three are
/// integers, else float64. Throws argument_error (a step of 0, a number out of range, more elements than can be
/// addressed), argument_type_error (bool, complex); blocks as `empty` does.
[[nodiscard]] WEIR_EXPORT array arange(const scalar& start, const scalar& stop, const scalar& step = 1,
                                       std::optional<dtype> type = std::nullopt,
                                       const stream_ref& on = current_stream(),
                                       source_location where = source_location::current());
/// An array whose elements all are `value`; the filling is enqueued on `on`. Throws argument_error as scalar::expect_fits
/// does; blocks as `empty` does.
[[nodiscard]] WEIR_EXPORT array full(const shape& extents, const scalar& value, dtype type = dtype::float64,
                                     const stream_ref& on = current_stream(),
                                     source_location where = source_location::current());

}  // namespace weir
