// Kernels for CUDA devices, from source or code, and their launches. Layer: array.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/detail/launch_shape.hpp"
#include "weir/detail/rare.hpp"
#include "weir/detail/site.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/event.hpp"
#include "weir/export.hpp"
#include "weir/kernel_argument.hpp"
#include "weir/launch.hpp"

namespace weir {

/// The number of blocks in a grid, or of threads in a block, along up to three axes.
struct dimensions {
    std::size_t x = 1;  ///< along the first axis
    std::size_t y = 1;  ///< along the second
    std::size_t z = 1;  ///< along the third
    /// @{
    /// Sizes along the named axes, 1 along the others. The launch refuses sizes that are not positive.
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

/// The configuration of a launch: `{blocks, threads}`, `{{bx, by}, {tx, ty}, bytes}`.
struct launch_config {
    dimensions grid;               ///< blocks
    dimensions block;              ///< threads of each block
    std::size_t shared_bytes = 0;  ///< shared memory of each block, beyond what the kernel itself declares
    /// The kernel waits for work of other streams (for example, it spins on memory): see rule O7.
    bool waits_for_others = false;
    /// Blocks of each thread block cluster: its blocks run at the same time and read each other's shared memory. One block: as the kernel
    /// itself declares (`__cluster_dims__`), or no clusters. 8 blocks at most, and along each axis a divisor of the grid.
    dimensions cluster = {};
    /// All blocks run at the same time, so that they may wait for each other (`cooperative_groups::grid_group::sync`). A grid that does not
    /// fit on the device is refused: see kernel::max_cooperative_blocks.
    bool cooperative = false;
};

class kernel;

namespace detail {

class kernel_code;
struct kernel_parameters;

/// What is known of an argument when the launch is compiled.
struct argument_description {
    std::size_t bytes;      ///< size as the kernel gets it
    bool is_array = false;  ///< the kernel gets the address of the elements
    bool is_null = false;   ///< no array: the kernel gets a null pointer
    bool has_type = false;
    dtype type = dtype::bool_;  ///< type of the value or of the elements
};

/// The sizes in bytes of up to seven arguments as one number, for a quick comparison; 0 if there are more or one is larger than 255.
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

/// All arguments of a launch, whose types are known when it is compiled.
struct argument_descriptions {
    std::span<const argument_description> all;
    std::uint64_t sizes = 0;  ///< sizes_in_one: compared at each launch, which costs 3 per cent less than a loop
};

/// Makes the checks of `launch`, and throws what `launch` throws.
[[nodiscard]] WEIR_EXPORT launch_shape checked_launch(const kernel& what, const stream_ref& on,
                                                      const launch_config& config,
                                                      const argument_descriptions& arguments,
                                                      std::span<const runtime::access_request> accesses);
/// If `refused` says what is wrong with the arguments of a launch: throws the same with the launch's label, or the kernel's name, and its
/// line in the program.
WEIR_EXPORT void throw_with_place(const error& refused, const kernel& what, const runtime::site& at);
/// @{
/// Two parts of that, for launches whose arguments are checked at run time.
WEIR_EXPORT void expect_stream(const kernel& what, const stream_ref& on);
[[nodiscard]] WEIR_EXPORT launch_shape checked_shape(const kernel& what, const launch_config& config);
/// @}
/// Puts the launch into the queue, and stores the queue in `shape`. `arguments` are the addresses of the values, which are copied. Throws
/// device_error.
WEIR_EXPORT void put_launch(const kernel_code& code, launch_shape& shape, void* const* arguments, queue_handle into);

template <class T>
inline constexpr bool is_access_argument = false;
template <class T, class Data>
inline constexpr bool is_access_argument<access_argument<T, Data>> = true;

template <class T>
inline constexpr bool is_token = std::is_same_v<T, token_argument>;

template <class T>
concept typed_element = requires {
    dtype_for<std::remove_const_t<T>>::value;
};

/// What a kernel gets for an argument, by value.
template <class T>
struct kernel_value {
    using type = T;
    static constexpr std::size_t arrays = 0;
    static constexpr argument_description description() noexcept {
        if constexpr (typed_element<T>) {
            return {sizeof(T), false, false, true, dtype_of<T>};
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
    static constexpr argument_description description() noexcept {
        if constexpr (typed_element<T>) {
            return {sizeof(T*), true, false, true, dtype_of<std::remove_const_t<T>>};
        } else {
            return {sizeof(T*), true};
        }
    }
    static type value(const access_argument<T, Data>& argument) noexcept { return argument.data().data(); }
    static void collect(const access_argument<T, Data>& argument, runtime::access_request*& next) noexcept {
        *next++ = argument.request(detail::key);
    }
    static void find(const access_argument<T, Data>& argument, const runtime::access_request*& one) noexcept {
        one = &argument.request(detail::key);
    }
};

template <>
struct kernel_value<std::nullptr_t> {
    using type = std::nullptr_t;
    static constexpr std::size_t arrays = 0;
    static constexpr argument_description description() noexcept { return {sizeof(std::nullptr_t), false, true}; }
    static type value(std::nullptr_t /*argument*/) noexcept { return nullptr; }
    static void collect(std::nullptr_t /*argument*/, runtime::access_request*& /*next*/) noexcept {}
    static void find(std::nullptr_t /*argument*/, const runtime::access_request*& /*one*/) noexcept {}
};

/// The accesses of the arrays among a launch's arguments, in their order.
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
/// A single access is not copied: the argument outlives the launch.
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

/// The same, and behind it what the tokens of the launch ask for.
template <std::size_t Count, std::size_t Tokens, class... Arguments>
class requests_with_tokens {
public:
    explicit requests_with_tokens(const std::array<runtime::access_request, Tokens>& tokens,
                                  const Arguments&... arguments) {
        runtime::access_request* next = all_.data();
        (kernel_value<Arguments>::collect(arguments, next), ...);
        std::copy(tokens.begin(), tokens.end(), next);
    }
    [[nodiscard]] std::span<const runtime::access_request> all() const noexcept { return all_; }

private:
    std::array<runtime::access_request, Count + Tokens> all_;
};
template <std::size_t Count, class... Arguments>
class requests_with_tokens<Count, 0, Arguments...> : public requests_of<Count, Arguments...> {
    using without_tokens = requests_of<Count, Arguments...>;

public:
    explicit requests_with_tokens(const std::array<runtime::access_request, 0>& /*none*/, const Arguments&... arguments)
        : without_tokens(arguments...) {}
};

/// A launch on its way into the driver's queue, which copies the arguments. Owns nothing: kernel::from_source says how long code lives.
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

/// A kernel for one CUDA device: loaded code, ready to run. Copies are the same kernel. It is loaded when it is made, never at its first
/// launch (rule K2), and the code stays until all launches are complete, even if the kernel objects are gone.
///
/// \code
/// const auto axpy = weir::kernel::from_source(source, "axpy").with_signature("in float* x, inout float* y, float a, int64 n");
/// weir::launch(s, axpy, {blocks, 256}, weir::in(x), weir::inout(y), 2.0F, n);
/// \endcode
class WEIR_EXPORT kernel {
public:
    /// The kernel `name` of a source in CUDA C++. It is compiled by NVRTC for the device, or taken from the cache: a folder of compiled
    /// kernels (WEIR_CACHE_DIR, else `weir` in XDG_CACHE_HOME or ~/.cache). If nothing in the source is `extern "C"`, `name` is an
    /// expression, such as "axpy<float>". `options` are NVRTC's ("-I/some/folder", "--use_fast_math", "-DN=4"), each in a string of its
    /// own. Weir adds the device's architecture, unless the options name one, and CUDA's headers if they are installed next to the
    /// compiler.
    ///
    /// Blocks while it compiles, and may wait for work of the device while it loads. Throws argument_error (the source does not compile:
    /// the first error's line, and the log; it has no such kernel; a wrong option; a device that is not a CUDA device), missing_library (no
    /// NVRTC: the message says what to install), device_error, out_of_memory.
    [[nodiscard]] static kernel from_source(const std::string& source, const std::string& name,
                                            const std::vector<std::string>& options = {}, weir::device on = cuda());
    /// The kernel `name` of PTX, compiled by the driver. `name` is the symbol: the mangled name of a kernel that is not `extern "C"`.
    /// Throws as from_source does.
    [[nodiscard]] static kernel from_ptx(const std::string& text, const std::string& name, weir::device on = cuda());
    /// The same from machine code for the device's architecture: a cubin, or a fat binary.
    [[nodiscard]] static kernel from_cubin(std::span<const std::byte> bytes, const std::string& name,
                                           weir::device on = cuda());
    /// A kernel that other code loaded into the device's primary context: a CUfunction, which must stay loaded until the launches are
    /// complete. Throws argument_error (null, a device that is not a CUDA device), device_error.
    [[nodiscard]] static kernel from_function(void* handle, weir::device on = cuda());

    /// The same kernel with declared parameters: "in float* x, inout float* y, float a, int64 n". Launches then also check types and uses
    /// of their arguments. Types have names of C++ or NumPy; void* is any array, and "struct point p" a structure by value. Throws
    /// argument_error, which quotes what is wrong; also if the kernel has parameters of other sizes, as far as the driver reports them.
    [[nodiscard]] kernel with_signature(std::string_view text) const;

    /// @{
    /// `weir::launch` for programs that know only at run time which arguments the kernel takes. Checks the arguments against the signature:
    /// their number, their element types, how arrays are used, that elements lie in C order, and that numbers are in the range of their
    /// type. Reads and writes the arrays as the signature says. `tokens`: what the kernel uses besides (rule K5), `{in(pool)}`; it gets no
    /// argument for them. Returns once enqueued.
    ///
    /// Throws state_error (no signature), argument_error, argument_type_error, and as `weir::launch` does. Then nothing was
    /// enqueued.
    completion launch(const on& where, const launch_config& config, std::span<const kernel_argument> arguments,
                      std::initializer_list<token_argument> tokens = {}) const;
    completion launch(const on& where, const launch_config& config, std::initializer_list<kernel_argument> arguments,
                      std::initializer_list<token_argument> tokens = {}) const {
        return launch(where, config, std::span(arguments.begin(), arguments.size()), tokens);
    }
    /// @}

    /// The name that was given.
    [[nodiscard]] const std::string& name() const noexcept;
    /// The device that the kernel is loaded on.
    [[nodiscard]] weir::device device() const noexcept;
    /// The largest number of threads in a block with which it can be launched.
    [[nodiscard]] int max_threads_per_block() const noexcept;
    /// The largest number of blocks in the grid of a cooperative launch: what the idle device runs at the same time. 0 if the device has no
    /// cooperative launch. Throws argument_error (a block that cannot be launched), device_error.
    [[nodiscard]] std::size_t max_cooperative_blocks(const dimensions& block, std::size_t shared_bytes = 0) const;
    /// The driver's handle, a CUfunction.
    [[nodiscard]] void* handle() const noexcept;
    /// `<weir.kernel axpy(in float32* x, int64 n) on cuda:0>`.
    [[nodiscard]] std::string to_string() const;

    /// Whether both are the same loaded code.
    friend bool operator==(const kernel& a, const kernel& b) noexcept { return a.code_ == b.code_; }

    /// The loaded code.
    [[nodiscard]] const detail::kernel_code& code(detail::passkey /*key*/) const noexcept { return *code_; }
    /// Null if no parameters are declared.
    [[nodiscard]] const detail::kernel_parameters* parameters(detail::passkey /*key*/) const noexcept {
        return parameters_.get();
    }

private:
    explicit kernel(std::shared_ptr<const detail::kernel_code> code) noexcept;

    std::shared_ptr<const detail::kernel_code> code_;
    std::shared_ptr<const detail::kernel_parameters> parameters_;
};

/// An argument of weir::launch: a number or a trivially copyable structure, by value, or the result of `in`, `out` or `inout`, written in
/// the call, or `nullptr` for an array that the kernel can do without. Not a pointer, because it does not say how its memory is used:
/// weir::buffer::wrap makes an array of it.
template <class A>
concept kernel_operand = (detail::is_access_argument<std::remove_cvref_t<A>> && !std::is_lvalue_reference_v<A>) ||
                         (!detail::is_access_argument<std::remove_cvref_t<A>> &&
                          std::is_trivially_copyable_v<std::remove_cvref_t<A>> &&
                          !std::is_pointer_v<std::remove_cvref_t<A>> && !std::is_array_v<std::remove_cvref_t<A>>);

namespace detail {

/// `launch` with these arguments for the kernel, and the accesses of tokens besides.
template <std::size_t Tokens, class... Arguments>
completion launch_with_tokens(const on& where, const kernel& what, const launch_config& config,
                              const std::array<runtime::access_request, Tokens>& tokens,
                              const Arguments&... arguments) {
    constexpr std::size_t arrays = (std::size_t{0} + ... + kernel_value<Arguments>::arrays);
    static constexpr std::array<argument_description, sizeof...(Arguments)> each{
        kernel_value<Arguments>::description()...};
    static constexpr argument_descriptions descriptions{
        each, sizes_in_one(each, [](const argument_description& one) { return one.bytes; })};
    const requests_with_tokens<arrays, Tokens, Arguments...> requests(tokens, arguments...);
    const std::span<const runtime::access_request> accesses = requests.all();
    using body = kernel_launch<typename kernel_value<Arguments>::type...>;
    const auto checked = [&] {
        try {
            return checked_launch(what, where.stream(), config, descriptions, accesses);
        } catch (const error& refused) {
            throw_with_place(refused, what, where.site(detail::key));
            throw;
        }
    };
    native_task<body> task{{&what.code(detail::key), checked(), {kernel_value<Arguments>::value(arguments)...}}};
    const auto submit = [&](auto& given) {
        return with_task(std::move(given), [&](task_ref work) {
            return runtime::submit(
                where.stream().state(detail::key),
                {accesses, where.dependencies(), work, where.site(detail::key), runtime::work_kind::device});
        });
    };
    if (config.waits_for_others) [[unlikely]] {
        cold_path();
        auto foreign = foreign_task(std::move(task.body));
        return submit(foreign);
    }
    return submit(task);
}

/// The argument, unless it is a token's.
template <class Argument>
[[nodiscard]] auto for_kernel(const Argument& argument) noexcept {
    if constexpr (is_token<Argument>) {
        return std::tuple<>();
    } else {
        return std::tuple<const Argument&>(argument);
    }
}
template <class Argument>
void collect_token(const Argument& argument, runtime::access_request*& next) noexcept {
    if constexpr (is_token<Argument>) {
        *next++ = argument.request(detail::key);
    }
}

}  // namespace detail

/// Enqueues a launch of `what` with these arguments, in the order of its parameters: arrays as `in(x)`, `out(x)` and `inout(x)` (the kernel
/// gets the address of the first element) or `nullptr`, numbers and trivially copyable structures by value. The arguments' values are
/// copied at the call. Tokens may stand anywhere among them: the kernel gets nothing for them. Returns once enqueued.
///
/// Throws argument_error: a stream of another device, a grid, block or cluster that the device or the kernel cannot have, too much shared
/// memory, a number of arguments, or a size of one, other than the kernel's (if the driver reports it: 12.4 and later), arrays used
/// otherwise than the signature says; argument_type_error: types other than the signature's; both with the launch's label, or the kernel's
/// name, and the line of the call; and as parallel_for does. Then nothing was enqueued. An error of the driver at the launch fails the
/// operation (rule K4).
template <kernel_operand... Arguments>
completion launch(const on& where, const kernel& what, const launch_config& config, Arguments&&... arguments) {
    constexpr std::size_t count = (std::size_t{0} + ... + (detail::is_token<std::remove_cvref_t<Arguments>> ? 1 : 0));
    std::array<runtime::access_request, count> tokens;
    if constexpr (count == 0) {
        return detail::launch_with_tokens(where, what, config, tokens, arguments...);
    } else {
        runtime::access_request* next = tokens.data();
        (detail::collect_token(arguments, next), ...);
        return std::apply(
            [&](const auto&... rest) { return detail::launch_with_tokens(where, what, config, tokens, rest...); },
            std::tuple_cat(detail::for_kernel(arguments)...));
    }
}

/// The same, with an event for its end.
template <kernel_operand... Arguments>
[[nodiscard]] event launch_event(const on& where, const kernel& what, const launch_config& config,
                                 Arguments&&... arguments) {
    return launch(where, what, config, std::forward<Arguments>(arguments)...);
}

#ifdef __CUDACC__
/// The kernel of a `__global__` function of a program that nvcc compiles: `kernel_of(&axpy)`. Loaded when it is made. Throws argument_error
/// (a device that is not a CUDA device), device_error (it was compiled for other architectures).
template <class... Parameters>
[[nodiscard]] kernel kernel_of(void (*function)(Parameters...), device on = cuda()) {
    const auto symbol = reinterpret_cast<const void*>(function);
    return kernel::from_function(detail::handle_of(detail::function_of(on, symbol)), on);
}
#endif

}  // namespace weir
