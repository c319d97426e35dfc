#include "calls/fft/fft_call.hpp"

#include "backend/backend.hpp"
#include "backend/capability/libraries.hpp"
#include "calls/fft/cuda_fft.hpp"
#include "calls/fft/cufft_library.hpp"
#include "calls/fft/fftw_library.hpp"
#include "calls/fft/host_fft.hpp"
#include "runtime/devices/device_state.hpp"
#include "weir/detail/fork_section.hpp"
#include "weir/detail/passkey.hpp"

namespace weir::calls {

const char* fft_call::label() const noexcept {
    const bool forward = direction_ == fft_direction::forward;
    switch (what_.kind()) {
        case fft_kind::complex_to_complex:
            return forward ? "fft" : "ifft";
        case fft_kind::real_to_complex:
            return "rfft";
        case fft_kind::complex_to_real:
            return "irfft";
    }
    return "fft";
}

bool fft_call::can_overwrite_copy() const noexcept {
    return what_.kind() == fft_kind::complex_to_complex && !what_.has_to_be_filled() &&
           what_.result_shape() == what_.operand_shape();
}

std::unique_ptr<const call_plan> fft_call::plan(const call_layout& layout) const {
    return plan_by_first(*this, layout, cuda_fft_provider{}, host_fft_provider{});
}

library_in_use fft_library_on(const device& computing) {
    if (cuda_fft_provider{}.serves(computing)) {
        const int version = computing.state(detail::key).driver().can().libraries->version();
        return {title_of_library("cuFFT", [&] { return cufft(version).file; }), true};
    }
    return {title_of_library("FFTW", [] { return fftw<double>().file; }), false};
}

kept_calls<kept_fft>& kept_ffts() {
    const detail::fork_section whole;  // else a child could wait for a thread that makes it, and that it does not have
    // Never destroyed: calls may be made until the process ends.
    static auto* const all = new kept_calls<kept_fft>();
    return *all;
}

}  // namespace weir::calls
