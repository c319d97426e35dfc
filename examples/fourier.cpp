// Transforms on two streams, without explicit ordering. See docs/fft.md.
#include <cmath>
#include <cstdio>
#include <weir/weir.hpp>

namespace {

/// A wave of `cycles` cycles in 1000 samples, once the stream is there.
weir::array wave(const weir::stream& on, double cycles) {
    weir::array made = weir::empty(1000, weir::dtype::float64, on);
    const double step = cycles * 6.283185307179586 / 1000;
    weir::parallel_for(
        on, made.size(), [step](std::size_t i, auto x) { x[i] = std::sin(step * static_cast<double>(i)); },
        weir::out<double>(made));
    return made;
}

/// Where the spectrum is largest.
std::size_t peak_of(const weir::array& spectrum) {
    const auto values = spectrum.read<std::complex<double>>();
    std::size_t best = 0;
    for (std::size_t k = 0; k < values.size(); ++k) {
        best = std::abs(values[k]) > std::abs(values[best]) ? k : best;
    }
    return best;
}

}  // namespace

int main() {
    const weir::stream first;
    const weir::stream second;
    const weir::array signal = wave(first, 7);
    const weir::array other = wave(second, 11);

    const weir::array spectrum = weir::fft::rfft(first, signal);                // on stream `first`
    const weir::array again = weir::fft::irfft(second, spectrum, {.n = 1000});  // on stream `second`, ordered after it

    weir::fft_plan plan(signal);
    plan.plan(first);
    const weir::array a = plan.execute(first, weir::fft_direction::forward);
    plan.reset_operand(other);  // may be pending on any stream
    const weir::array b = plan.execute(second, weir::fft_direction::forward);
    plan.release_operand();  // `other` may be dropped before the transform has run

    // Computed on a simulated accelerator, to which the samples go and from which the result comes back.
    const weir::array far = weir::fft::rfft(signal, {.execution = weir::device_kind::sim});

    const double difference = std::abs(again.read<double>()[123] - signal.read<double>()[123]);
    std::printf("peaks at %zu, %zu and %zu\n", peak_of(spectrum), peak_of(a), peak_of(b));
    return difference < 1e-12 && peak_of(spectrum) == 7 && peak_of(a) == 7 && peak_of(b) == 11 && peak_of(far) == 7 ? 0
                                                                                                                    : 1;
}
