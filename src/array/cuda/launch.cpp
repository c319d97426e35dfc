#include "array/cuda/launch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "array/cuda/known_kernels.hpp"
#include "backend/capability/capabilities.hpp"
#include "backend/own_variable.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/launch_shape.hpp"

namespace weir::array_kernels {

namespace {

/// The kernel that this thread used last is found without a lock: kernels are never destroyed.
backend::capability::function_handle find_kernel(const kernels& in, const description& what) {
    struct known {
        const kernels* in = nullptr;
        description what;
        backend::capability::function_handle function = nullptr;
    };
    thread_local known of_thread;
    known& last = backend::found_once(of_thread);
    if (last.in != &in || !(last.what == what)) {
        last = {&in, what, known_kernels::instance().find(in, what)};
    }
    return last.function;
}

/// Few enough blocks that each works on several parts of a large array: then starting blocks costs little.
constexpr std::uint64_t blocks_for_each_multiprocessor = 32;

/// A type of the same size, and no stricter alignment, whose values are moved unchanged.
dtype as_bytes(dtype type) noexcept {
    switch (size_of(type)) {
        case 1:
            return dtype::uint8;
        case 2:
            return dtype::uint16;
        case 4:
            return dtype::uint32;
        case 8:
            return is_complex(type) ? type : dtype::uint64;
        default:
            return type;
    }
}

/// The smallest number of bytes that repeats throughout an element.
std::size_t period_of(const std::byte* element, std::size_t item) noexcept {
    std::size_t period = 1;
    while (period < item && !std::equal(element + period, element + item, element)) {
        period *= 2;
    }
    return period;
}

}  // namespace

const kernels* kernels_of(const device& where) {
    const runtime::device_state& device = where.state(detail::key);
    const kernels* const found = device.driver().can().kernels;
    if (found == nullptr || device.driver().runs_host_code()) {
        return nullptr;
    }
    device.expect_usable();
    return found;
}

std::uint64_t blocks_for(const kernels& in, std::uint64_t elements, std::uint64_t by_block) {
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (elements - 1) / by_block + 1);
    if (wanted <= blocks_for_each_multiprocessor) {
        return wanted;  // without a query to the driver
    }
    const auto multiprocessors = static_cast<std::uint64_t>(std::max(1, in.multiprocessors()));
    return std::min(wanted, multiprocessors * blocks_for_each_multiprocessor);
}

void launches::add(const small_launch& head, std::span<const std::uint64_t> words) {
    one made{head, {}};
    if (words.size() <= small_launch::most_words) {
        std::copy(words.begin(), words.end(), made.head.words.begin());
    } else {
        made.more_words.assign(words.begin(), words.end());
    }
    all_.push_back(std::move(made));
}

void small_launch::choose(const description& of, std::uint64_t elements) {
    kernel = find_kernel(*in, of);
    blocks = static_cast<unsigned>(blocks_for(*in, elements, std::uint64_t{threads} * elements_at_once));
}

void launches::add(const description& what, std::uint64_t blocks, std::span<const std::uint64_t> words) {
    small_launch made;
    made.in = in_;
    made.kernel = find_kernel(*in_, what);
    made.blocks = static_cast<unsigned>(blocks);
    add(made, words);
}

void launches::add(function what, const argument& result, std::span<const argument> inputs, const walk::plan& all,
                   std::array<std::uint64_t, 2> extra) {
    if (all.elements() != 0) {
        const call made = call_of(what, result, inputs, all, extra);
        small_launch head;
        head.in = in_;
        head.choose(made.kernel, word(all.elements()));
        add(head, made.words);
    }
}

void launches::add_copy(const walk::plan& both, dtype to, dtype from) {
    // Elements that are not converted are treated as bytes of their size: fewer different kernels.
    if (to == from) {
        to = from = as_bytes(to);
    }
    const argument source[] = {{from, to, nullptr}};
    add(function::same, {to, to, nullptr}, source, both);
}

void launches::add_fill(const walk::plan& all, dtype type, const std::byte* element) {
    const std::size_t item = size_of(type);
    const std::size_t period = period_of(element, item);
    const bool packed =
        all.dimensions() == 0 || (all.dimensions() == 1 && all.column_stride(0) == static_cast<std::int64_t>(item));
    if (all.elements() == 0 || !packed || period > 4) {
        const dtype bytes = as_bytes(type);
        const argument value[] = {{bytes, bytes, element}};
        return add(function::same, {bytes, bytes, nullptr}, value, all);
    }
    std::uint32_t value = 0;
    std::memcpy(&value, element, period);
    constexpr std::array calls = {small_launch::call::fill8, small_launch::call::fill16, small_launch::call::fill32};
    small_launch made;
    made.in = in_;
    made.what = calls[period / 2];
    const std::uint64_t words[] = {word(all.first(0)), value,
                                   static_cast<std::uint64_t>(all.elements()) * item / period};
    add(made, words);
}

void small_launch::fill(const std::uint64_t* its_words, detail::queue_handle into) const {
    const auto [address, value, count] = std::array{its_words[0], its_words[1], its_words[2]};
    in->fill(reinterpret_cast<std::byte*>(address), static_cast<std::uint32_t>(value), static_cast<std::size_t>(what),
             count, into);
}

void small_launch::run(const std::uint64_t* its_words, detail::queue_handle into) const {
    if (what != call::launch) {
        return fill(its_words, into);
    }
    detail::launch_shape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    void* const arguments[] = {const_cast<std::uint64_t*>(its_words)};  // only read
    in->launch(kernel, shape, arguments, into);
}

void launches::operator()(detail::queue_handle into) const {
    for (const one& each : all_) {
        each.head.run(each.more_words.empty() ? each.head.words.data() : each.more_words.data(), into);
    }
}

}  // namespace weir::array_kernels
