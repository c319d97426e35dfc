// Arrays: typed, shaped windows onto buffers. Layer: array.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/access.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/intrusive.hpp"
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

/// The address of an array's elements. Null for an array that was moved from.
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

/// The time in which the arrays of a borrow may be used; their views share it. Any thread.
class use_period final : public shared_object {
public:
    void end() const noexcept { ended_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

private:
    mutable std::atomic<bool> ended_{false};
};

}  // namespace detail

/// An n-dimensional array on one device: a window onto a buffer that knows its pending accesses. Elements lie in C order, or, after
/// slicing or transposing, with any strides. Copies, slices and all other arrays that a member function returns share the same memory.
/// Any thread.
///
/// A const array can only be read: a function that writes takes an array that is not const, or a temporary array such as a slice made in
/// the call. An array refers to its elements as a std::shared_ptr does: a copy or a slice of a const array is an array of its own,
/// which may be written.
class WEIR_EXPORT array {
public:
    /// An empty array: no elements, no memory.
    array() = default;

    /// The element type.
    [[nodiscard]] weir::dtype dtype() const noexcept { return dtype_; }
    /// @{
    /// The extents, outermost first. Those of a temporary array are a copy, as are its strides and its buffer.
    [[nodiscard]] const weir::shape& shape() const& noexcept { return shape_; }
    [[nodiscard]] weir::shape shape() const&& noexcept { return shape_; }
    /// @}
    /// @{
    /// Bytes from one index to the next, for each dimension. May be negative, or 0 if one element stands for many. In bits if an element is
    /// not a whole number of bytes (`has_whole_bytes(dtype())`); such elements always lie in C order.
    [[nodiscard]] std::span<const std::int64_t> strides() const& noexcept { return strides_.values(); }
    [[nodiscard]] std::vector<std::int64_t> strides() const&& {
        return {strides_.values().begin(), strides_.values().end()};
    }
    /// @}
    /// The number of dimensions.
    [[nodiscard]] std::size_t dimensions() const noexcept { return shape_.dimensions(); }
    /// The number of elements.
    [[nodiscard]] std::int64_t size() const noexcept { return shape_.elements(); }
    /// Bytes of all elements, packed; rounded up if elements are not whole bytes.
    [[nodiscard]] std::size_t nbytes() const noexcept { return bytes_for(dtype_, static_cast<std::size_t>(size())); }
    /// The device whose memory holds the elements; without elements, the device for which the array was made.
    [[nodiscard]] weir::device device() const noexcept {
        return place_ == nullptr ? buffer_.device() : weir::device(detail::key, *place_);
    }
    /// All devices that reach the elements where they lie, its own first: more than one for memory::pinned(), which the CPU and all CUDA
    /// devices reach, and for memory::managed(), which its CUDA device and the CPU reach. Without the CPU if that may use managed memory only
    /// while nothing runs on the CUDA device: host views wait for that (rule O6), operations cannot.
    [[nodiscard]] std::vector<weir::device> devices() const;
    /// The same elements as an array of another of these devices: both arrays are one memory, with one history of accesses, and nothing is
    /// copied. Operations on the result run on that device. Does not block. Throws copy_error for a device that is none of them.
    [[nodiscard]] array view_on(const weir::device& other) const;
    /// The device of a `view_on`, and of an array without memory; null: the memory's device.
    [[nodiscard]] const runtime::device_state* place(detail::passkey /*key*/) const noexcept { return place_; }
    /// The bytes that it occupies in its buffer: exactly its elements, not the gaps between them (rule O3).
    [[nodiscard]] const order::footprint& footprint(detail::passkey /*key*/) const noexcept { return footprint_; }
    /// The same for an operation or the host that uses them. Throws state_error after the end of the array's period of use.
    [[nodiscard]] const order::footprint& used(detail::passkey key) const {
        expect_usable(key);
        return footprint_;
    }
    /// Throws state_error if the array was for use inside of a borrow that has ended.
    void expect_usable(detail::passkey /*key*/) const {
        if (period_ && period_->has_ended()) [[unlikely]] {
            refuse_use();
        }
    }
    /// Lets the array, and the views that are made from it from now on, be used in that period alone; null: for ever.
    void use_within(detail::passkey /*key*/, detail::shared_owner<detail::use_period> period) noexcept {
        period_ = std::move(period);
    }
    /// The period in which the array may be used; null: for ever.
    [[nodiscard]] const detail::shared_owner<detail::use_period>& period(detail::passkey /*key*/) const noexcept {
        return period_;
    }
    /// @{
    /// The memory that it is a window onto, which other arrays may share.
    [[nodiscard]] const weir::buffer& buffer() const& noexcept { return buffer_; }
    [[nodiscard]] weir::buffer buffer() const&& noexcept { return buffer_; }
    /// @}
    /// Whether the elements lie one after the other in C order.
    [[nodiscard]] bool is_contiguous() const noexcept { return contiguous_; }
    /// Whether each element has its own memory, so that the array can be written: false for results of broadcast_to.
    [[nodiscard]] bool has_own_elements() const noexcept;

    /// The part [first, last) along the outermost dimension. Throws argument_error out of range.
    [[nodiscard]] array slice(std::int64_t first, std::int64_t last) const;
    /// A part as NumPy's indexing selects it: `x[3]`, `x[{slice{1, 5}, -1}]`, `x[{ellipsis, new_axis}]`. Throws argument_error: an index
    /// out of range, too many indices, a step of 0, or a part that does not begin and end at a byte if elements are not whole bytes.
    [[nodiscard]] array operator[](std::initializer_list<index_term> index) const {
        return at(std::span(index.begin(), index.size()));
    }
    /// The same for one index.
    [[nodiscard]] array operator[](const index_term& index) const { return at(std::span(&index, 1)); }
    /// The same for an index made at run time.
    [[nodiscard]] array at(std::span<const index_term> index) const;

    /// The dimensions in another order: dimension i of the result is dimension axes[i]; negative numbers count from the end. Throws
    /// argument_error unless each dimension is named once.
    [[nodiscard]] array transpose(std::span<const std::int64_t> axes) const;
    /// The same: `x.transpose({1, 0})`.
    [[nodiscard]] array transpose(std::initializer_list<std::int64_t> axes) const {
        return transpose(std::span(axes.begin(), axes.size()));
    }
    /// All dimensions in reverse.
    [[nodiscard]] array t() const;

    /// The same elements, in C order, with another shape. Throws argument_error if that has another number of elements, or if no strides
    /// can describe the result without a copy: `reshape(on, x, shape)` copies then.
    [[nodiscard]] array reshape(const weir::shape& to) const;
    /// The same; nothing if a copy would be necessary.
    [[nodiscard]] std::optional<array> try_reshape(const weir::shape& to) const;
    /// The same; one extent may be -1 and is computed from the others.
    [[nodiscard]] array reshape(std::initializer_list<std::int64_t> to) const {
        return reshape(completed(std::span(to.begin(), to.size())));
    }
    /// A shape for `reshape`, from extents one of which may be -1. Throws argument_error.
    [[nodiscard]] weir::shape completed(std::span<const std::int64_t> extents) const;

    /// An array of a larger shape in which one element stands for many, as NumPy broadcasts. It can be read, not written. Throws
    /// argument_error.
    [[nodiscard]] array broadcast_to(const weir::shape& to) const;

    /// @{
    /// A typed window that keeps the memory, for `in`, `out` and `inout`, whose bodies get a std::span; these also take the array itself.
    /// Throws argument_type_error for another element type, argument_error if the elements do not lie in C order.
    ///
    /// The window of a const array can only be read: `out` and `inout` do not take it.
    template <element T>
    [[nodiscard]] array_view<T> view() {
        expect(dtype_of<T>);
        expect_contiguous();
        return array_view<T>(detail::key, *this);
    }
    template <element T>
    [[nodiscard]] array_view<const T> view() const {
        expect(dtype_of<T>);
        expect_contiguous();
        return array_view<const T>(detail::key, *this);
    }
    /// @}
    /// @{
    /// The same for any strides: bodies get a strided_span<T, Rank>. Throws argument_type_error; argument_error for another number of
    /// dimensions.
    template <element T, std::size_t Rank>
    [[nodiscard]] strided_view<T, Rank> strided() {
        expect(dtype_of<T>);
        expect_dimensions(Rank);
        return strided_view<T, Rank>(detail::key, *this);
    }
    template <element T, std::size_t Rank>
    [[nodiscard]] strided_view<const T, Rank> strided() const {
        expect(dtype_of<T>);
        expect_dimensions(Rank);
        return strided_view<const T, Rank>(detail::key, *this);
    }
    /// @}

    /// The host's window for reading: blocks until pending writes to these elements are complete (rule O6). If the elements do not lie in
    /// C order, or the host cannot reach them, it is a copy of their values at that moment. Throws argument_type_error; operation_error if
    /// the operation that wrote them failed (rule K4).
    template <element T>
    [[nodiscard]] host_view<const T> read(source_location where = source_location::current()) const {
        expect(dtype_of<T>);
        return host_view<const T>(detail::key, *this, where);
    }
    /// The host's window for reading and changing: blocks until all pending accesses to these elements are complete. Throws
    /// argument_type_error, argument_error if the elements do not lie in C order or the host cannot reach them.
    template <element T>
    [[nodiscard]] host_view<T> write(source_location where = source_location::current()) {
        expect(dtype_of<T>);
        expect_contiguous();
        return host_view<T>(detail::key, *this, where);
    }

    /// Whether no pending access conflicts with reading it now. Never blocks. For `check` a yes counts as having waited for them.
    [[nodiscard]] bool ready() const;
    /// Whether Weir or the program orders operations on its memory: buffer::set_ordering.
    void set_ordering(std::optional<ordering_mode> mode) const noexcept { buffer_.set_ordering(mode); }
    /// `<weir.array float32 (3, 4) on cpu>`. Never blocks.
    [[nodiscard]] std::string to_string() const;

    /// A window onto `memory`, in C order, `offset` bytes from its start. Throws argument_error if it does not fit or is misaligned.
    array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::size_t offset = 0);
    /// The same with strides, in bytes: multiples of the element's size. `offset` is the position of the element with all indices 0.
    array(weir::buffer memory, weir::dtype type, const weir::shape& extents, std::span<const std::int64_t> strides,
          std::size_t offset);

    /// Without elements and memory, for a device.
    array(detail::passkey key, weir::dtype type, const weir::shape& extents, const weir::device& on);

    /// The host's address of the element with all indices 0: see buffer::data.
    [[nodiscard]] std::byte* data() const noexcept { return buffer_.data() + offset_; }
    /// The device's address of that element, for code that runs in a stream. What uses it must be declared in another way.
    [[nodiscard]] std::byte* device_data() const noexcept { return elements_.device_data; }
    /// The memory, with the address of that element; null if there is no memory.
    [[nodiscard]] const weir::buffer::tracked_memory& tracked(detail::passkey /*key*/) const noexcept {
        return elements_;
    }
    /// The same. Throws as `view` does.
    template <class T>
    [[nodiscard]] const weir::buffer::tracked_memory& tracked(detail::passkey /*key*/) const {
        expect(dtype_of<T>);
        expect_contiguous();
        return elements_;
    }

    /// @{
    /// Arithmetic, element by element, on the current stream of the device of the first array: `compute` in arithmetic.hpp, which defines
    /// operands, rules and errors. Reads its operands; the forms with = write the elements of this array, which other arrays may share.
    /// Never blocks.
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
    array& operator+=(const operand& b);
    array& operator-=(const operand& b);
    array& operator*=(const operand& b);
    array& operator/=(const operand& b);
    array& operator&=(const operand& b);
    array& operator|=(const operand& b);
    array& operator^=(const operand& b);
    /// @}

private:
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
    [[noreturn]] static void refuse_use();
    void expect_dimensions(std::size_t wanted) const;
    /// The same memory with another layout.
    [[nodiscard]] array with_layout(weir::shape extents, std::span<const std::int64_t> strides,
                                    std::int64_t moved) const;
    /// For a part of `whole`, whose elements are not whole bytes: converts `moved` from bits to bytes. Throws argument_error.
    [[nodiscard]] std::int64_t bytes_to_part(const array& whole, std::int64_t moved) const;
    void find_footprint();
    void find_elements() noexcept;

    weir::buffer buffer_;
    weir::shape shape_{0};
    detail::axis_list strides_{std::array{std::int64_t{8}}};
    // The members that an operation reads lie together.
    order::footprint footprint_;
    detail::elements_memory elements_;
    weir::dtype dtype_ = dtype::float64;
    bool contiguous_ = true;
    std::size_t offset_ = 0;
    /// The device of an array without memory, and of a `view_on`; null: the memory's device.
    runtime::device_state* place_ = nullptr;
    detail::shared_owner<detail::use_period> period_;
};

/// An argument that is an array, const or not.
template <class X>
concept array_argument = std::same_as<std::remove_cvref_t<X>, array>;

/// An argument that can be written: an array that is not const, or a temporary array.
template <class X>
concept writable_array = std::same_as<std::remove_reference_t<X>, array>;

/// A typed window onto an array in C order, for `in`, `out` and `inout`. With const elements: for `in` only.
template <class T>
class array_view {
public:
    /// For class array, which has checked type and order.
    array_view(detail::passkey /*key*/, array of) : array_(std::move(of)) {}
    /// @{
    /// The array.
    [[nodiscard]] const array& base() const& noexcept { return array_; }
    [[nodiscard]] array base() const&& { return array_; }
    /// @}
    /// Device memory: for code that runs in a stream.
    [[nodiscard]] std::span<T> device_span() const noexcept {
        // The buffer's memory holds objects of this type by its dtype, which view() has checked.
        return {reinterpret_cast<T*>(array_.device_data()), static_cast<std::size_t>(array_.size())};
    }

private:
    array array_;
};

/// A typed window onto an array with any strides, for `in`, `out` and `inout`. With const elements: for `in` only.
template <class T, std::size_t Rank>
class strided_view {
public:
    /// For class array, which has checked type and dimensions.
    strided_view(detail::passkey /*key*/, array of) : array_(std::move(of)) {}
    /// @{
    /// The array.
    [[nodiscard]] const array& base() const& noexcept { return array_; }
    [[nodiscard]] array base() const&& { return array_; }
    /// @}
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

/// An element of a temporary view: takes a value in the statement that makes it, and cannot be kept as a reference.
template <class T>
class assigned_element {
public:
    explicit assigned_element(T& element) noexcept : element_(element) {}
    assigned_element(const assigned_element&) = delete;
    assigned_element& operator=(const assigned_element&) = delete;
    ~assigned_element() = default;
    // NOLINTNEXTLINE(misc-unconventional-assign-operator): only temporaries are assigned to, and there is nothing to chain
    void operator=(const T& value) && noexcept { element_ = value; }

private:
    T& element_;
};

}  // namespace detail

/// The host's window onto an array's elements, in C order, while it lives. host_access says what it waits for. If the elements lie in
/// another order, or the host cannot reach them, the window is a copy and holds back no operation.
template <class T>
class host_view {
public:
    /// @{
    /// The elements, valid while the view lives; so a temporary view does not have them.
    [[nodiscard]] std::span<T> span() const& noexcept { return span_; }
    std::span<T> span() const&& = delete;
    /// @}
    /// @{
    /// An element; the index is not checked. No reference outlives the view: a temporary view for reading returns the value, and one for
    /// writing an element that can only be assigned to.
    [[nodiscard]] T& operator[](std::size_t i) const& noexcept { return span_[i]; }
    [[nodiscard]] std::remove_const_t<T> operator[](std::size_t i) const&& requires std::is_const_v<T> {
        return span_[i];
    }
    [[nodiscard]] detail::assigned_element<T> operator[](std::size_t i) const&& noexcept requires(!std::is_const_v<T>) {
        return detail::assigned_element<T>(span_[i]);
    }
    /// @}
    /// The number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
    /// @{
    /// For loops over the elements, which keep the view. A temporary view has none: of two, begin and end would not belong together.
    [[nodiscard]] auto begin() const& noexcept { return span_.begin(); }
    [[nodiscard]] auto end() const& noexcept { return span_.end(); }
    auto begin() const&& = delete;
    auto end() const&& = delete;
    /// @}

    /// Made by array::read and array::write; blocks as they say.
    host_view(detail::passkey /*key*/, const array& of, source_location where)
        : window_(of, std::is_const_v<T> ? order::access_mode::read : order::access_mode::write, where),
          span_(reinterpret_cast<T*>(window_.data()), static_cast<std::size_t>(of.size())) {}

private:
    detail::host_window window_;
    std::span<T> span_;
};

/// An array of uninitialized elements on the device of `on`. Does not block as long as memory is available without a wait (rule L1).
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
/// The numbers start, start + step, ... before stop, as NumPy's arange returns them. Without a type: int64 if all three are integers,
/// else float64. Throws argument_error (a step of 0, a number out of range, more elements than can be addressed), argument_type_error
/// (bool, complex); blocks as `empty` does.
[[nodiscard]] WEIR_EXPORT array arange(const scalar& start, const scalar& stop, const scalar& step = 1,
                                       std::optional<dtype> type = std::nullopt,
                                       const stream_ref& on = current_stream(),
                                       source_location where = source_location::current());
/// An array whose elements are all `value`; the filling is enqueued on `on`. Throws argument_error as scalar::expect_fits does; blocks
/// as `empty` does.
[[nodiscard]] WEIR_EXPORT array full(const shape& extents, const scalar& value, dtype type = dtype::float64,
                                     const stream_ref& on = current_stream(),
                                     source_location where = source_location::current());

}  // namespace weir
