#include "cli/demo/work.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "cli/demo/device_source.hpp"
#include "weir/calls.hpp"
#include "weir/dtype.hpp"
#include "weir/fft.hpp"
#include "weir/operands.hpp"
#include "weir/stream.hpp"

namespace weir::demo {

namespace {

using complex = std::complex<float>;

constexpr std::size_t threads = 256;

/// Enough blocks of `threads` threads that there is one thread for each of `count` elements.
launch_config one_for_each(std::int64_t count) {
    return {(static_cast<std::size_t>(count) + threads - 1) / threads, threads};
}

/// The macros that the kernels are compiled with.
std::vector<std::string> numbers(const layout& cut, const kernels& as) {
    const auto define = [](const char* name, auto value) { return "-D" + std::string(name) + "=" + value; };
    return {define("CHANNELS", std::to_string(cut.channels)), define("FRAME", std::to_string(cut.frame)),
            define("HOP", std::to_string(cut.hop())),
            define("FRAMES_PER_BLOCK", std::to_string(layout::frames_per_block)),
            define("REACH", std::to_string(as.reach())),
            define("MEMORY", "(" + std::to_string(std::llround(std::ldexp(as.memory(), 24))) + ".0f / 16777216.0f)"),
            // As on the host: products are rounded before they are added.
            "--fmad=false"};
}

template <class T>
array on_device(const std::vector<T>& values, const stream& setup) {
    array made = empty(static_cast<std::int64_t>(values.size()), dtype_of<T>, setup);
    copy_from_host(setup, made, std::as_bytes(std::span(values)));
    return made;
}

std::vector<complex> powers_of_root(std::int64_t n) {
    std::vector<complex> all;
    for (std::int64_t k = 0; k < n / 2; ++k) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
        all.emplace_back(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
    }
    return all;
}

/// The launch of a kernel that transforms one frame in each block, in shared memory.
launch_config one_block_for_each_frame(const layout& cut) {
    return {static_cast<std::size_t>(cut.batch()), threads, static_cast<std::size_t>(cut.frame) * sizeof(complex)};
}

}  // namespace

work::device_code::device_code(const layout& cut, const kernels& as, device where)
    : window(kernel::from_source(device_source, "window", numbers(cut, as), where)),
      transform(kernel::from_source(device_source, "transform", numbers(cut, as), where)),
      keep_tones(kernel::from_source(device_source, "keep_tones", numbers(cut, as), where)),
      transform_back(kernel::from_source(device_source, "transform_back", numbers(cut, as), where)),
      overlap_add(kernel::from_source(device_source, "overlap_add", numbers(cut, as), where)),
      store(kernel::from_source(device_source, "store", numbers(cut, as), where)) {
    const stream setup(where, {0, "set-up"});
    fade = on_device(as.fade(), setup);
    fade_back = on_device(as.fade_back(), setup);
    turns = on_device(powers_of_root(cut.frame), setup);
    magnitudes = zeros({cut.channels, cut.bins()}, dtype::float32, setup);
    setup.synchronize();
}

work::work(const layout& cut, device where) : cut_(cut), kernels_(cut) {
    if (where.kind() == device_kind::cuda) {
        on_device_.emplace(cut_, kernels_, where);
    }
}

completion work::window(const on& where, const array& samples, array& frames) {
    if (on_device_) {
        return launch(where, on_device_->window, one_for_each(cut_.batch() * cut_.frame), in<float>(samples),
                      in<float>(on_device_->fade), out<float>(frames));
    }
    return parallel_for(
        where, cut_.batch(), [this](std::size_t frame, auto from, auto to) { kernels_.window(frame, from, to); },
        in<float>(samples), out<float>(frames));
}

completion work::transform(const on& where, const array& frames, array& spectrum) {
    if (on_device_) {
        return launch(where, on_device_->transform, one_block_for_each_frame(cut_), in<float>(frames),
                      in<complex>(on_device_->turns), out<complex>(spectrum));
    }
    return fft::rfft(where, frames, spectrum);
}

completion work::keep_tones(const on& where, array& spectrum, array& level) {
    if (on_device_) {
        // The threads of a block wait for each other after each frame: one block for each channel.
        const auto most = static_cast<std::size_t>(on_device_->keep_tones.max_threads_per_block());
        return launch(where, on_device_->keep_tones,
                      {static_cast<std::size_t>(cut_.channels), std::min(most, 4 * threads)}, inout<complex>(spectrum),
                      inout<float>(level), inout<float>(on_device_->magnitudes));
    }
    return parallel_for(
        where, cut_.channels,
        [this](std::size_t channel, auto bins, auto tones) { kernels_.keep_tones(channel, bins, tones); },
        inout<complex>(spectrum), inout<float>(level));
}

completion work::transform_back(const on& where, const array& spectrum, array& frames) {
    if (on_device_) {
        return launch(where, on_device_->transform_back, one_block_for_each_frame(cut_), in<complex>(spectrum),
                      in<complex>(on_device_->turns), out<float>(frames));
    }
    return fft::irfft(where, spectrum, frames);
}

completion work::overlap_add(const on& where, const array& frames, array& part, array& next) {
    if (on_device_) {
        return launch(where, on_device_->overlap_add, one_for_each(cut_.span() * cut_.channels), in<float>(frames),
                      in<float>(on_device_->fade_back), inout<float>(part), inout<float>(next));
    }
    return parallel_for(
        where, cut_.channels,
        [this](std::size_t channel, auto from, auto here, auto after) {
            kernels_.overlap_add(channel, from, here, after);
        },
        in<float>(frames), inout<float>(part), inout<float>(next));
}

completion work::store(const on& where, array& part, array& result) {
    if (on_device_) {
        return launch(where, on_device_->store, one_for_each(part.size()), inout<float>(part), out<float>(result));
    }
    return parallel_for(
        where, part.size(), [](std::size_t i, auto from, auto to) { kernels::store(i, from, to); }, inout<float>(part),
        out<float>(result));
}

}  // namespace weir::demo
