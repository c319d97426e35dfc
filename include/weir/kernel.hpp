// Kernels for CUDA devices, from source or code, and their launches. Layer: array.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/detail/footprint.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/event.hpp"
#include "weir/export.hpp"
#include "weir/launch.hpp"

namespace weir {

/// How many blocks a grid has, or threads a block, along up to three axes.
struct dimensions {
    std::size_t x = 1;  ///< along the first axis
    std::size_t y = 1;  ///< along the second
    std::size_t z = 1;  ///< along the third
    /// @{
    /// So many along the axes that are named, one along the others. The launch refuses what is not positive.
    dimensions() = default;
    template <std::integral X>
    dimensions(X along_x) noexcept  // NOLINT(google-explicit-constructor): one axis is the common case
        : x(static_cast<std::size_t>(along_x)) {}
    template <std::integral X, std::integral Y>
    dimensions(X along_x, Y along_y) noexcept
        : x(static_cast<std::size_t>(along_x)), y(static_cast<std::size_t>(along_y)) {}
    template <std::integral X, std::integral Y, std::integral Z>
    dimensions(X along_x, Y along_y, Z along_z) noexcept
        : x(static_cast<std::size_t>(along_x)),
          y(static_cast<std::size_t>(along_y)),
          z(static_cast<std::size_t>(along_z)) {}
    /// @}
};

/// How a kernel is launched: `{blocks, threads}`, `{{bx, by}, {tx, ty}, bytes}`.
struct launch_config {
    dimensions grid;               ///< blocks
    dimensions block;              ///< threads of each block
    std::size_t shared_bytes = 0;  ///< shared memory of each block, beyond what the kernel itself declares
    bool waits_for_others =
        false;  ///< the kernel waits for work of other streams (it spins on memory, say): see rule O7
};

class kernel;

namespace detail {

class kernel_code;
struct kernel_parameters;

/// What a launch knows of an argument when it is compiled.
struct kernel_argument {
    std::size_t bytes;      ///< as the kernel gets it
    bool is_array = false;  ///< of which the kernel gets the address
    bool has_type = false;
    dtype type = dtype::bool_;  ///< of the value or of the elements
};

/// The bytes of up to seven arguments as one number, for a quick comparison; 0 if they are more or larger.
template <class Arguments, class Bytes>
[[nodiscard]] constexpr std::uint64_t sizes_in_one(const Arguments& all, Bytes&& bytes_of) noexcept {
    std::uint64_t sizes = std::size(all);
    if (sizes > 7) {
        return 0;
    }
    for (const auto& one : all) {
        if (bytes_of(one) > 255) {
            return 0;
        }
        sizes = sizes << 8 | bytes_of(one);
    }
    return sizes | std::uint64_t{1} << 63;
}

/// All arguments of a launch.
struct kernel_arguments {
    std::span<const kernel_argument> all;
    std::uint64_t sizes = 0;  ///< sizes_in_one
};

/// What a signature says of a parameter, for launches whose arguments are known at run time only.
struct declared_parameter {
    bool is_array;                                       ///< of which the kernel gets the address
    std::optional<dtype> type;                           ///< of the value or of the elements; none: any
    order::access_mode mode = order::access_mode::read;  ///< how an array is used
    bool overwrites = false;                             ///< see access_request
    std::string text;                                    ///< "inout float32* y"
};
/// In their order. Throws state_error if none are declared, std::bad_alloc.
[[nodiscard]] WEIR_EXPORT std::vector<declared_parameter> declared_parameters(const kernel& of);

/// Throws what `launch` says it throws, if the launch cannot be.
[[nodiscard]] WEIR_EXPORT launch_shape checked_launch(const kernel& what, const stream_ref& on,
                                                      const launch_config& config, const kernel_arguments& arguments,
                                                      std::span<const runtime::access_request> accesses);
/// @{
/// What of that is left to check where the arguments are made from what the signature declares.
WEIR_EXPORT void expect_stream(const kernel& what, const stream_ref& on);
[[nodiscard]] WEIR_EXPORT launch_shape checked_shape(const kernel& what, const launch_config& config);
/// @}
/// Puts the launch into the queue, and says so in `shape`. `arguments` are the addresses of the values, which are copied. Throws
/// device_error.
WEIR_EXPORT void put_launch(const kernel_code& code, launch_shape& shape, void* const* arguments, queue_handle into);

template <class T>
concept typed_element = requires {
    dtype_for<std::remove_const_t<T>>::value;
};

/// What a kernel gets for an argument, by value.
template <class T>
struct kernel_value {
    static_assert(!std::is_pointer_v<T> && !std::is_array_v<T>,
                  "a kernel gets arrays as weir::in(x), weir::out(x) or weir::inout(x), which say how they are used; "
                  "weir::buffer::wrap makes Weir know memory of others");
    static_assert(std::is_trivially_copyable_v<T>,
                  "a kernel gets numbers and trivially copyable structures by value, and arrays as weir::in(x), "
                  "weir::out(x) or weir::inout(x)");
    using type = T;
    static constexpr std::size_t arrays = 0;
    static constexpr kernel_argument description() noexcept {
        if constexpr (typed_element<T>) {
            return {sizeof(T), false, true, dtype_of<T>};
        } else {
            return {sizeof(T)};
        }
    }
    static type value(const T& argument) noexcept { return argument; }
    static void collect(const T& /*argument*/, runtime::access_request*& /*next*/) noexcept {}
    static void find(const T& /*argument*/, const runtime::access_request*& /*one*/) noexcept {}
};
template <class T, class Data>
struct kernel_value<access_argument<T, Data>> {
    using type = T*;
    static constexpr std::size_t arrays = 1;
    static constexpr kernel_argument description() noexcept {
        if constexpr (typed_element<T>) {
            return {sizeof(T*), true, true, dtype_of<std::remove_const_t<T>>};
        } else {
            return {sizeof(T*), true};
        }
    }
    static type value(const access_argument<T, Data>& argument) noexcept { return argument.data.data(); }
    static void collect(const access_argument<T, Data>& argument, runtime::access_request*& next) noexcept {
        *next++ = argument.request;
    }
    static void find(const access_argument<T, Data>& argument, const runtime::access_request*& one) noexcept {
        one = &argument.request;
    }
};

/// What the arrays among the arguments of a launch ask for, in their order.
template <std::size_t Count, class... Arguments>
class requests_of {
public:
    explicit requests_of(const Arguments&... arguments) {
        [[maybe_unused]] runtime::access_request* next = all_.data();
        (kernel_value<Arguments>::collect(arguments, next), ...);
    }
    [[nodiscard]] std::span<const runtime::access_request> all() const noexcept { return all_; }

private:
    std::array<runtime::access_request, Count> all_;
};
/// One is not copied: the argument outlives the launch.
template <class... Arguments>
class requests_of<1, Arguments...> {
public:
    explicit requests_of(const Arguments&... arguments) noexcept {
        (kernel_value<Arguments>::find(arguments, one_), ...);
    }
    [[nodiscard]] std::span<const runtime::access_request> all() const noexcept { return {one_, 1}; }

private:
    const runtime::access_request* one_ = nullptr;
};

/// A launch on its way into the driver's queue, which copies the arguments. Owns nothing: see kernel::from_source on how long
/// code lives.
template <class... Values>
struct kernel_launch {
    const kernel_code* code;
    launch_shape shape;
    std::tuple<Values...> values;

    void operator()(queue_handle into) {
        std::apply(
            [&](auto&... value) {
                const std::array<void*, sizeof...(Values)> addresses{static_cast<void*>(&value)...};
                put_launch(*code, shape, addresses.data(), into);
            },
            values);
    }
};

}  // namespace detail

/// A kernel for one CUDA device: code that is loaded, ready to run. Copies are the same kernel. It is loaded when it is made,
/// never at its first launch (rule K2), and the code stays until all launches are over, whether or not somebody still has
/// the kernel.
///
/// \code
/// const auto axpy = weir::kernel::from_source(source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
/// weir::launch(s, axpy, {blocks, 256}, weir::in(x), weir::inout(y), 2.0F, n);
/// \endcode
class WEIR_EXPORT kernel {
public:
    /// The kernel `name` of a source in CUDA C++, compiled by NVRTC for the device; or taken from the cache: a folder of
    /// compiled kernels (WEIR_CACHE_DIR, else `weir` in XDG_CACHE_HOME or ~/.cache). If nothing in the source is
    /// `extern "C"`, `name` is an expression, such as "axpy<float>". `options` are NVRTC's ("-I/some/folder",
    /// "--use_fast_math", "-DN=4"), each a text of its own; Weir adds the device's architecture, unless they name one, and
    /// CUDA's headers where they lie beside the compiler.
    ///
    /// Blocks while it compiles, and may wait for work of the device while it loads. Throws argument_error (the source does
    /// not compile: the first error's line, and the log; it has no such kernel; a wrong option; a device that is no CUDA
    /// device), missing_library (no NVRTC: the message says what to install), device_error, out_of_memory.
    [[nodiscard]] static kernel from_source(const std::string& source, const std::string& name,
                                            const std::vector<std::string>& options = {}, weir::device on = cuda());
    /// The kernel `name` of PTX, compiled by the driver. `name` is the symbol: of a kernel that is not `extern "C"`, the
    /// mangled name. Throws as from_source does.
    [[nodiscard]] static kernel from_ptx(const std::string& text, const std::string& name, weir::device on = cuda());
    /// The same from machine code for the device's architecture: a cubin, or a fat binary.
    [[nodiscard]] static kernel from_cubin(std::span<const std::byte> bytes, const std::string& name,
                                           weir::device on = cuda());
    /// A kernel that others loaded into the device's primary context: a CUfunction, which must stay loaded until the launches
    /// are over. Throws argument_error (null, a device that is no CUDA device), device_error.
    [[nodiscard]] static kernel from_function(void* handle, weir::device on = cuda());

    /// The same kernel with its parameters declared: "in float* x, inout float* y, float a, int64 n". Launches then check
    /// types and uses of their arguments, too. Types have names of C++ or NumPy; void* is any array. Throws argument_error,
    /// which quotes what is wrong: also where the kernel has parameters of other sizes, as far as the driver tells them.
    [[nodiscard]] kernel with_signature(std::string_view text) const;

    /// As it was given.
    [[nodiscard]] const std::string& name() const noexcept;
    /// The device that it is loaded on.
    [[nodiscard]] weir::device device() const noexcept;
    /// The most threads of a block with which it can be launched.
    [[nodiscard]] int max_threads_per_block() const noexcept;
    /// The driver's handle, a CUfunction.
    [[nodiscard]] void* handle() const noexcept;
    /// `<weir.kernel axpy(in float32* x, int64 n) on cuda:0>`.
    [[nodiscard]] std::string to_string() const;

    /// Whether both are the same loaded code.
    friend bool operator==(const kernel& a, const kernel& b) noexcept { return a.code_ == b.code_; }

    /// For Weir's own use.
    [[nodiscard]] const detail::kernel_code& code() const noexcept { return *code_; }
    /// For Weir's own use; null if none are declared.
    [[nodiscard]] const detail::kernel_parameters* parameters() const noexcept { return parameters_.get(); }

private:
    explicit kernel(std::shared_ptr<const detail::kernel_code> code) noexcept;

    std::shared_ptr<const detail::kernel_code> code_;
    std::shared_ptr<const detail::kernel_parameters> parameters_;
};

/// Enqueues a launch of `what` with these arguments, in the order of its parameters: arrays as `in(x)`, `out(x)` and
/// `inout(x)` (it gets the address of the first element), numbers and trivially copyable structures by value. What they are
/// is copied at the call. Returns once enqueued.
///
/// Throws argument_error: a stream of another device, a grid or block without threads or beyond the device's limits, too
/// much shared memory, another number of arguments, or of bytes of one, than the kernel has (where the driver tells: 12.4
/// and later), arrays used otherwise than the signature says; argument_type_error: types other than the signature's; and as
/// parallel_for does. Then nothing was enqueued. An error of the driver at the launch fails the operation (rule K4).
template <class... Arguments>
completion launch(const on& where, const kernel& what, const launch_config& config, const Arguments&... arguments) {
    constexpr std::size_t arrays = (std::size_t{0} + ... + detail::kernel_value<Arguments>::arrays);
    static constexpr std::array<detail::kernel_argument, sizeof...(Arguments)> each{
        detail::kernel_value<Arguments>::description()...};
    static constexpr detail::kernel_arguments descriptions{
        each, detail::sizes_in_one(each, [](const detail::kernel_argument& one) { return one.bytes; })};
    const detail::requests_of<arrays, Arguments...> requests(arguments...);
    const std::span<const runtime::access_request> accesses = requests.all();
    using body = detail::kernel_launch<typename detail::kernel_value<Arguments>::type...>;
    detail::native_task<body> task{{&what.code(),
                                    detail::checked_launch(what, where.stream(), config, descriptions, accesses),
                                    {detail::kernel_value<Arguments>::value(arguments)...}}};
    const auto submit = [&](auto& given) {
        return detail::with_task(std::move(given), [&](detail::task_ref work) {
            return runtime::submit(where.stream().state(),
                                   {accesses, where.dependencies(), work, where.site(), runtime::work_kind::device});
        });
    };
    if (config.waits_for_others) [[unlikely]] {
        detail::rare();
        auto foreign = detail::foreign_task(std::move(task.body));
        return submit(foreign);
    }
    return submit(task);
}

/// The same, with an event for its end.
template <class... Arguments>
[[nodiscard]] event launch_event(const on& where, const kernel& what, const launch_config& config,
                                 const Arguments&... arguments) {
    return launch(where, what, config, arguments...);
}

#ifdef __CUDACC__
/// The kernel of a `__global__` function of a program that nvcc compiles: `kernel_of(&axpy)`. Loaded when it is made.
/// Throws argument_error (a device that is no CUDA device), device_error (it was compiled for other architectures).
template <class... Parameters>
[[nodiscard]] kernel kernel_of(void (*function)(Parameters...), device on = cuda()) {
    const auto symbol = reinterpret_cast<const void*>(function);
    return kernel::from_function(detail::handle_of(detail::function_of(on, symbol)), on);
}
#endif

}  // namespace weir
