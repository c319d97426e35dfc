#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "array/cuda/call.hpp"
#include "backend/cuda/compile.hpp"
#include "frontier/small_vector.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"

namespace weir::array_kernels {

using backend::cuda::context;

/// The context of a CUDA device, where operations on arrays are kernels. Null for a device that runs the loops.
/// Throws state_error if the device stayed with the process that this one was forked from.
[[nodiscard]] const context* context_of(const device& where);

/// A launch of a kernel, or a call of the driver that needs none: a value that a native task is made of, and that a stream
/// need not keep once it is enqueued.
struct small_launch {
    enum class call : std::uint8_t { launch, fill8, fill16, fill32 };
    static constexpr std::size_t most_words = 20;

    const context* in = nullptr;
    backend::cuda::function_handle kernel = nullptr;
    unsigned blocks = 1;
    call what = call::launch;
    std::array<std::uint64_t, most_words> words;  ///< the kernel's argument; or address, value and count

    /// Takes the kernel of an element by element operation, which is compiled when it is first asked for, and so many blocks
    /// as suit `elements`. Throws as launches::add.
    void choose(const description& of, std::uint64_t elements);
    /// Puts it into the queue. Throws device_error.
    void operator()(detail::queue_handle into) const { run(words.data(), into); }
    /// The same with these words.
    void run(const std::uint64_t* its_words, detail::queue_handle into) const;

private:
    void fill(const std::uint64_t* its_words, detail::queue_handle into) const;
};

/// Launches of kernels, one after the other: what a native task does. Kernels are compiled when they are added.
class launches {
public:
    explicit launches(const context& in) : in_(&in) {}

    /// Adds a launch with these 64-bit words as argument (see source_of). Throws missing_library, device_error,
    /// out_of_memory, std::bad_alloc.
    void add(const description& what, std::uint64_t blocks, std::span<const std::uint64_t> words);

    /// Computes operand 0 of a plan of the others, element by element. `extra` are numbers for the function. Throws as `add`.
    void add(function what, const argument& result, std::span<const argument> inputs, const walk::plan& all,
             std::array<std::uint64_t, 2> extra = {});

    /// Copies operand 1 of a plan to operand 0, converting elements on the way. Throws as `add`.
    void add_copy(const walk::plan& both, dtype to, dtype from);
    /// Sets every element of operand 0 of a plan to `element`. Throws as `add`.
    void add_fill(const walk::plan& all, dtype type, const std::byte* element);

    [[nodiscard]] const context& in() const noexcept { return *in_; }

    /// All of it as one small launch; null if it is more than that. Valid until the next change.
    [[nodiscard]] const small_launch* alone() const noexcept {
        return all_.size() == 1 && all_[0].more_words.empty() ? &all_[0].head : nullptr;
    }

    /// Puts them into the queue. Throws device_error.
    void operator()(detail::queue_handle into) const;

private:
    struct one {
        small_launch head;
        std::vector<std::uint64_t> more_words;  ///< instead of the head's, where those have no room
    };
    void add(const small_launch& head, std::span<const std::uint64_t> words);

    const context* in_;
    detail::small_vector<one, 1> all_;
};

/// So many blocks of threads for so many elements.
[[nodiscard]] std::uint64_t blocks_for(const context& in, std::uint64_t elements, std::uint64_t by_block);

}  // namespace weir::array_kernels
