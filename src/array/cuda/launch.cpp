#include "array/cuda/launch.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "backend/cuda/context.hpp"
#include "backend/cuda/driver.hpp"
#include "backend/cuda/launch.hpp"
#include "backend/own_variable.hpp"
#include "runtime/device_state.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/mutex.hpp"

namespace weir::array_kernels {

namespace {

using backend::cuda::function_handle;

/// The kernels that were asked for, by what they are: their sources are long, and are written once.
class known_kernels {
public:
    static known_kernels& instance() {
        static auto* const one = new known_kernels;  // lives for ever
        return *one;
    }

    function_handle find(const context& in, const description& what) {
        // The one that the thread asked for last, without a lock: kernels stay for ever.
        thread_local known of_thread;
        known& last = backend::found_once(of_thread);
        if (last.in != &in || !(last.what == what)) {
            last = {&in, what, look_up({&in, what})};
        }
        return last.function;
    }

private:
    using key = std::pair<const context*, description>;
    struct known {
        const context* in = nullptr;
        description what;
        function_handle function = nullptr;
    };

    function_handle look_up(const key& wanted) {
        {
            const std::shared_lock lock(mutex_);
            if (const auto found = all_.find(wanted); found != all_.end()) {
                return found->second;
            }
        }
        const function_handle made =
            backend::cuda::compiled(*wanted.first, source_of(wanted.second), kernel_name, compiler_options());
        const std::unique_lock lock(mutex_);
        return all_.emplace(wanted, made).first->second;
    }

    detail::shared_mutex mutex_;  ///< guards all_; a leaf in the lock order
    std::map<key, function_handle> all_;
};

/// Few enough that a block works on several pieces, where there are many: then the start of blocks costs little.
constexpr std::uint64_t blocks_for_each_multiprocessor = 32;

/// A type of the same size, and no stricter alignment, that is moved without a look at its value.
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

/// What is there again and again in an element: of so many bytes.
std::size_t period_of(const std::byte* element, std::size_t item) noexcept {
    std::size_t period = 1;
    while (period < item && !std::equal(element + period, element + item, element)) {
        period *= 2;
    }
    return period;
}

}  // namespace

const context* context_of(const device& where) {
    if (where.kind() != device_kind::cuda || where.state().driver().runs_host_code()) {
        return nullptr;
    }
    where.state().expect_usable();
    return &backend::cuda::context_of(where.state().driver());
}

std::uint64_t blocks_for(const context& in, std::uint64_t elements, std::uint64_t by_block) {
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (elements - 1) / by_block + 1);
    if (wanted <= blocks_for_each_multiprocessor) {
        return wanted;  // without asking the driver
    }
    const auto multiprocessors = static_cast<std::uint64_t>(
        std::max(1, in.attribute_if_told(backend::cuda::device_attribute::multiprocessor_count)));
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
    kernel = known_kernels::instance().find(*in, of);
    blocks = static_cast<unsigned>(blocks_for(*in, elements, std::uint64_t{threads} * elements_at_once));
}

void launches::add(const description& what, std::uint64_t blocks, std::span<const std::uint64_t> words) {
    small_launch made;
    made.in = in_;
    made.kernel = known_kernels::instance().find(*in_, what);
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
    // Elements that stay as they are, are so many bytes: fewer kernels.
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
    const backend::cuda::in_context here(*in);
    const backend::cuda::driver_api& api = in->api();
    auto* const stream = static_cast<backend::cuda::stream_handle>(into.value);
    const auto [address, value, count] = std::array{its_words[0], its_words[1], its_words[2]};
    if (what == call::fill8) {
        in->expect(api.fill8_async(address, static_cast<unsigned char>(value), count, stream), "cuMemsetD8Async");
    } else if (what == call::fill16) {
        in->expect(api.fill16_async(address, static_cast<unsigned short>(value), count, stream), "cuMemsetD16Async");
    } else {
        in->expect(api.fill32_async(address, static_cast<unsigned>(value), count, stream), "cuMemsetD32Async");
    }
}

void small_launch::run(const std::uint64_t* its_words, detail::queue_handle into) const {
    if (what != call::launch) {
        return fill(its_words, into);
    }
    detail::launch_shape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    void* const arguments[] = {const_cast<std::uint64_t*>(its_words)};  // is read alone
    backend::cuda::launch(*in, kernel, shape, arguments, into);
}

void launches::operator()(detail::queue_handle into) const {
    for (const one& each : all_) {
        each.head.run(each.more_words.empty() ? each.head.words.data() : each.more_words.data(), into);
    }
}

}  // namespace weir::array_kernels
