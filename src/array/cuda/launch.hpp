#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "array/cuda/call.hpp"
#include "backend/capability/kernels.hpp"
#include "frontier/small_vector.hpp"
#include "weir/detail/task.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"

namespace weir::array_kernels {

using backend::capability::kernels;

/// The capability that runs kernels on a device whose array operations are kernels. Null for a device that runs the host's loops.
/// Throws state_error if the device stayed with the process that this one was forked from.
[[nodiscard]] const kernels* kernels_of(const device& where);

/// A launch of a kernel, or a driver call that needs no kernel: a trivially copyable value for a native task, which a stream
/// need not keep once it is enqueued.
struct small_launch {
    /// For a fill the value is the number of bytes of the pattern.
    enum class call : std::uint8_t { launch = 0, fill8 = 1, fill16 = 2, fill32 = 4 };
    static constexpr std::size_t most_words = 20;

    const kernels* in = nullptr;
    backend::capability::function_handle kernel = nullptr;
    unsigned blocks = 1;
    call what = call::launch;
    std::array<std::uint64_t, most_words> words;  ///< the kernel's argument; or address, value and count

    /// Selects the kernel of an element-wise operation, compiling it at its first use, and the number of blocks that suits
    /// `elements`. Throws as launches::add.
    void choose(const description& of, std::uint64_t elements);
    /// Puts the launch into the queue. Throws device_error.
    void operator()(detail::queue_handle into) const { run(words.data(), into); }
    /// The same with these words.
    void run(const std::uint64_t* its_words, detail::queue_handle into) const;

private:
    void fill(const std::uint64_t* its_words, detail::queue_handle into) const;
};

/// Launches of kernels, one after the other: the body of a native task. Kernels are compiled when they are added.
class launches {
public:
    explicit launches(const kernels& in) : in_(&in) {}

    /// Adds a launch with these 64-bit words as argument (see source_of). Throws missing_library, device_error,
    /// out_of_memory, std::bad_alloc.
    void add(const description& what, std::uint64_t blocks, std::span<const std::uint64_t> words);

    /// Computes operand 0 of a plan from the others, element by element. `extra` are numbers for the function. Throws as `add`.
    void add(function what, const argument& result, std::span<const argument> inputs, const walk::plan& all,
             std::array<std::uint64_t, 2> extra = {});

    /// Copies operand 1 of a plan to operand 0, converting elements. Throws as `add`.
    void add_copy(const walk::plan& both, dtype to, dtype from);
    /// Sets every element of operand 0 of a plan to `element`. Throws as `add`.
    void add_fill(const walk::plan& all, dtype type, const std::byte* element);

    /// Adds a launch of `head` with these words as the kernel's argument, instead of its own words. Throws std::bad_alloc.
    void add(const small_launch& head, std::span<const std::uint64_t> words);

    [[nodiscard]] const kernels& in() const noexcept { return *in_; }
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

    /// The launches as one small launch; null if they are more than that. Valid until the next change.
    [[nodiscard]] const small_launch* alone() const noexcept {
        return all_.size() == 1 && all_[0].more_words.empty() ? &all_[0].head : nullptr;
    }

    /// Puts the launches into the queue. Throws device_error.
    void operator()(detail::queue_handle into) const;

private:
    struct one {
        small_launch head;
        std::vector<std::uint64_t> more_words;  ///< used instead of the head's words, where these have no room
    };

    const kernels* in_;
    detail::small_vector<one, 1> all_;
};

/// The number of blocks of threads for a number of elements, if a block has `by_block` elements at a time.
[[nodiscard]] std::uint64_t blocks_for(const kernels& in, std::uint64_t elements, std::uint64_t by_block);

}  // namespace weir::array_kernels
