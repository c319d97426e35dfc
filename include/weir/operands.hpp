// What an operation reads and writes: its operands, as the program declares them. Layer: array.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "weir/array.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/detail/submission.hpp"
#include "weir/token.hpp"

namespace weir {

/// One operand of an operation, and how it is used: what `in`, `out` and `inout` return. `T` is const if the operand is only read;
/// `Data` is what the body gets.
template <class T, class Data = std::span<T>>
class access_argument {
public:
    /// `to_host`: what to add to the device's addresses in `data` to get the host's.
    access_argument(detail::passkey /*key*/, const runtime::access_request& request, const Data& data,
                    std::ptrdiff_t to_host) noexcept
        : request_(request), data_(data), to_host_(to_host) {}
    /// What is touched, and how.
    [[nodiscard]] const runtime::access_request& request(detail::passkey /*key*/) const noexcept { return request_; }

    /// The elements, with the device's addresses.
    [[nodiscard]] const Data& data() const noexcept { return data_; }
    /// The same elements for code that runs on the host. Memory that the host cannot reach faults when it is touched.
    [[nodiscard]] Data host_data() const noexcept;

private:
    runtime::access_request request_;
    Data data_;
    std::ptrdiff_t to_host_;
};

namespace detail {

/// @{
/// The element and the data of a token: there is none, and bodies get nothing for it.
struct no_element {};
struct no_data {};
/// @}

/// Throws argument_error if elements of `x` share memory.
WEIR_EXPORT void expect_own_elements(const array& x);

[[nodiscard]] inline no_data moved(no_data none, std::ptrdiff_t /*bytes*/) noexcept { return none; }
template <class T>
[[nodiscard]] T* moved(T* pointer, std::ptrdiff_t bytes) noexcept {
    using byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    return reinterpret_cast<T*>(reinterpret_cast<byte*>(pointer) + bytes);
}
template <class T>
[[nodiscard]] std::span<T> moved(const std::span<T>& span, std::ptrdiff_t bytes) noexcept {
    return {moved(span.data(), bytes), span.size()};
}
template <class T, std::size_t Rank>
[[nodiscard]] strided_span<T, Rank> moved(const strided_span<T, Rank>& span, std::ptrdiff_t bytes) noexcept {
    return {moved(span.data(), bytes), span.extents(), span.strides()};
}

/// `overwrites`: see access_request.
template <class T, class Data>
[[nodiscard]] access_argument<T, Data> argument_of(const array& x, const Data& data, order::access_mode mode,
                                                   bool overwrites = false) {
    const buffer::tracked_memory& memory = x.tracked(key);
    return {key, {memory.resource, x.used(key), mode, overwrites}, data, memory.to_host};
}
/// The same for elements in C order. Throws as array::view does.
template <class T>
[[nodiscard]] access_argument<T> argument_of(const array& x, order::access_mode mode, bool overwrites = false) {
    const buffer::tracked_memory& memory = x.tracked<std::remove_const_t<T>>(key);
    // Contiguous elements fill exactly the range of the footprint. The buffer's memory holds objects of this type by its dtype.
    const order::footprint& where = x.used(key);
    return {key,
            {memory.resource, where, mode, overwrites},
            {reinterpret_cast<T*>(memory.device_data), static_cast<std::size_t>(where.end - where.begin) / sizeof(T)},
            memory.to_host};
}

}  // namespace detail

template <class T, class Data>
Data access_argument<T, Data>::host_data() const noexcept {
    return detail::moved(data_, to_host_);
}

/// @{
/// The operation reads the elements; its body gets a std::span<const T>. `in<float>(x)` names the element type of an array, and copies
/// nothing. Throws as array::view does.
template <element T>
[[nodiscard]] access_argument<const T> in(const array& x) {
    return detail::argument_of<const T>(x, order::access_mode::read);
}
template <class T>
[[nodiscard]] access_argument<const T> in(const array_view<T>& x) {
    return detail::argument_of<const T>(x.base(), std::span<const T>(x.device_span()), order::access_mode::read);
}
/// @}
/// @{
/// The operation writes every element and reads none before; its body gets a std::span<T>. Const arrays and windows do not compile, here
/// and in `inout`.
template <element T, writable_array X>
[[nodiscard]] access_argument<T> out(X&& x) {
    return detail::argument_of<T>(x, order::access_mode::write, true);
}
template <class T>
    requires(!std::is_const_v<T>)
[[nodiscard]] access_argument<T> out(const array_view<T>& x) {
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write, true);
}
/// @}
/// @{
/// The operation reads and writes the elements; its body gets a std::span<T>.
template <element T, writable_array X>
[[nodiscard]] access_argument<T> inout(X&& x) {
    return detail::argument_of<T>(x, order::access_mode::write);
}
template <class T>
    requires(!std::is_const_v<T>)
[[nodiscard]] access_argument<T> inout(const array_view<T>& x) {
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write);
}
/// @}
/// @{
/// The same for elements with any strides: the body gets a strided_span, and the operation touches only these elements, not the gaps
/// between them. If it writes them, each must have its own memory: else throws argument_error.
template <class T, std::size_t Rank>
[[nodiscard]] access_argument<const T, strided_span<const T, Rank>> in(const strided_view<T, Rank>& x) {
    return detail::argument_of<const T>(x.base(), strided_span<const T, Rank>(x.device_span()),
                                        order::access_mode::read);
}
template <class T, std::size_t Rank>
    requires(!std::is_const_v<T>)
[[nodiscard]] access_argument<T, strided_span<T, Rank>> out(const strided_view<T, Rank>& x) {
    detail::expect_own_elements(x.base());
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write, true);
}
template <class T, std::size_t Rank>
    requires(!std::is_const_v<T>)
[[nodiscard]] access_argument<T, strided_span<T, Rank>> inout(const strided_view<T, Rank>& x) {
    detail::expect_own_elements(x.base());
    return detail::argument_of<T>(x.base(), x.device_span(), order::access_mode::write);
}
/// @}
/// @{
/// The same for an array of any type: the body gets the bytes. Throws argument_error if they do not lie in C order.
[[nodiscard]] WEIR_EXPORT access_argument<const std::byte> in(const array& x);
[[nodiscard]] WEIR_EXPORT access_argument<std::byte> out(array& x);
[[nodiscard]] inline access_argument<std::byte> out(array&& x) { return out(x); }
[[nodiscard]] WEIR_EXPORT access_argument<std::byte> inout(array& x);
[[nodiscard]] inline access_argument<std::byte> inout(array&& x) { return inout(x); }
/// @}

/// What an operation says of a token: its body gets nothing for it.
using token_argument = access_argument<detail::no_element, detail::no_data>;

namespace detail {

/// The accesses that tokens stand for.
[[nodiscard]] inline std::vector<runtime::access_request> accesses_of(std::initializer_list<token_argument> tokens) {
    std::vector<runtime::access_request> all;
    all.reserve(tokens.size());
    for (const token_argument& one : tokens) {
        all.push_back(one.request(detail::key));
    }
    return all;
}

}  // namespace detail

/// @{
/// The operation uses what the token stands for: beside others that do so with `in`; with `out` and `inout`, after all that came
/// before, and before all that come later. `out` besides says that it begins anew: what a failed operation left does not matter
/// to it (rule K4). Throws argument_error if the token was moved from.
[[nodiscard]] inline token_argument in(const token& t) {
    return {detail::key, {&t.expect_resource(detail::key), {0, 1}, order::access_mode::read}, {}, 0};
}
[[nodiscard]] inline token_argument out(const token& t) {
    return {detail::key, {&t.expect_resource(detail::key), {0, 1}, order::access_mode::write, true}, {}, 0};
}
[[nodiscard]] inline token_argument inout(const token& t) {
    return {detail::key, {&t.expect_resource(detail::key), {0, 1}, order::access_mode::write}, {}, 0};
}
/// @}

}  // namespace weir
