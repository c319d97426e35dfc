#pragma once

#include <array>
#include <concepts>
#include <cstddef>

#include "array/cuda/source.hpp"

namespace weir {

/// What an element-wise operation computes, on the host and on CUDA devices alike: all that `elementwise` needs to know of it.
/// On the host it is called with up to three packed inputs, and packed memory for `count` results. On a CUDA device a kernel
/// computes the function `same_as()`.
template <class Body, std::size_t Inputs>
concept element_wise_body = requires(const Body& body, const std::array<const std::byte*, Inputs>& in, std::byte* out,
                                     std::size_t count) {
    body(in, out, count);
    { body.same_as() } -> std::same_as<array_kernels::function>;
};

/// A body whose host code is a function that is known only at run time: one of several instances of a template, or code that
/// was compiled from text. Its code for CUDA devices may be text as well: see array/cuda/body.hpp.
template <std::size_t Inputs>
class element_body {
public:
    using loop = void (*)(const std::array<const std::byte*, Inputs>& in, std::byte* out, std::size_t count);

    element_body(loop on_host, array_kernels::function on_cuda) noexcept : on_host_(on_host), on_cuda_(on_cuda) {}

    void operator()(const std::array<const std::byte*, Inputs>& in, std::byte* out, std::size_t count) const {
        on_host_(in, out, count);
    }
    [[nodiscard]] array_kernels::function same_as() const noexcept { return on_cuda_; }

private:
    loop on_host_;
    array_kernels::function on_cuda_;
};

}  // namespace weir
