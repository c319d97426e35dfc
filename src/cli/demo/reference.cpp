#include "cli/demo/reference.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "calls/fft/provider.hpp"
#include "cli/demo/kernels.hpp"

namespace weir::demo {

namespace {

/// Memory with the alignment of arrays: with another alignment libraries may compute results that differ in the last bit.
template <class T>
struct aligned_allocator {
    using value_type = T;
    aligned_allocator() = default;
    template <class U>
    explicit aligned_allocator(const aligned_allocator<U>&) noexcept {}
    T* allocate(std::size_t n) {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(calls::fft_alignment)));
    }
    void deallocate(T* memory, std::size_t) noexcept {
        ::operator delete(memory, std::align_val_t(calls::fft_alignment));
    }
    friend bool operator==(const aligned_allocator&, const aligned_allocator&) noexcept { return true; }
};
template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

template <class T>
std::size_t count_of(T count) {
    return static_cast<std::size_t>(count);
}

}  // namespace

recording reference_result(const recording& sound) {
    const layout cut(sound);
    const kernels compute(cut);
    const std::vector<float> samples = with_silence(sound, cut);
    aligned_vector<float> frames(count_of(cut.batch() * cut.frame));
    aligned_vector<std::complex<float>> spectrum(count_of(cut.batch() * cut.bins()));
    std::vector<float> level(count_of(cut.channels * cut.bins()));
    std::vector<float> here(count_of(cut.step() * cut.channels));
    std::vector<float> next(here.size());
    std::vector<float> result(here.size() * count_of(cut.blocks));

    calls::fft_problem problem;
    problem.double_precision = false;
    problem.kind = fft_kind::real_to_complex;
    problem.transform = {{cut.frame, 1, 1}};
    problem.batch = {{cut.batch(), cut.frame, cut.bins()}};
    const auto forward = calls::cpu_fft_provider().prepare(problem);
    problem.kind = fft_kind::complex_to_real;
    problem.direction = fft_direction::inverse;
    problem.batch = {{cut.batch(), cut.bins(), cut.frame}};
    const auto inverse = calls::cpu_fft_provider().prepare(problem);

    for (std::int64_t block = 0; block < cut.blocks; ++block) {
        const std::span block_samples = std::span(samples).subspan(count_of(block * cut.step() * cut.channels),
                                                                   count_of(cut.span() * cut.channels));
        for (std::size_t frame = 0; frame < count_of(cut.batch()); ++frame) {
            compute.window(frame, block_samples, frames);
        }
        forward->execute(reinterpret_cast<const std::byte*>(frames.data()),
                         reinterpret_cast<std::byte*>(spectrum.data()));
        for (std::size_t channel = 0; channel < count_of(cut.channels); ++channel) {
            compute.keep_tones(channel, spectrum, level);
        }
        inverse->execute(reinterpret_cast<const std::byte*>(spectrum.data()),
                         reinterpret_cast<std::byte*>(frames.data()));
        for (float& sample : frames) {
            sample *= static_cast<float>(1.0 / static_cast<double>(cut.frame));
        }
        for (std::size_t channel = 0; channel < count_of(cut.channels); ++channel) {
            compute.overlap_add(channel, frames, here, next);
        }
        const std::span stored = std::span(result).subspan(count_of(block) * here.size(), here.size());
        for (std::size_t i = 0; i < here.size(); ++i) {
            kernels::store(i, here, stored);
        }
        std::swap(here, next);
    }
    return without_silence(std::move(result), cut);
}

}  // namespace weir::demo
