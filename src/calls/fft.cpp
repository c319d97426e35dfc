// The stateless calls: each names what it asks for; fft_call.cpp does it.
#include "weir/fft.hpp"

#include "calls/fft_call.hpp"

namespace weir::fft {

namespace {

calls::fft_request request_fft(const options& how) {
    return {fft_kind::complex_to_complex, fft_direction::forward, how};
}
calls::fft_request request_ifft(const options& how) {
    return {fft_kind::complex_to_complex, fft_direction::inverse, how};
}
calls::fft_request request_rfft(const options& how) { return {fft_kind::real_to_complex, fft_direction::forward, how}; }
calls::fft_request request_irfft(const options& how) {
    return {fft_kind::complex_to_real, fft_direction::inverse, how};
}

/// The transform on the current stream of the operand's device.
array transform_here(const array& a, const calls::fft_request& request, source_location where) {
    const stream current = current_stream(a.size() > 0 ? a.device() : cpu());
    return calls::transform(on(current, where), a, request);
}

}  // namespace

array fft(const on& where, const array& a, const options& how) { return calls::transform(where, a, request_fft(how)); }
array ifft(const on& where, const array& a, const options& how) {
    return calls::transform(where, a, request_ifft(how));
}
array rfft(const on& where, const array& a, const options& how) {
    return calls::transform(where, a, request_rfft(how));
}
array irfft(const on& where, const array& a, const options& how) {
    return calls::transform(where, a, request_irfft(how));
}

completion fft(const on& where, const array& a, const array& out, const options& how) {
    return calls::transform(where, a, out, request_fft(how));
}
completion ifft(const on& where, const array& a, const array& out, const options& how) {
    return calls::transform(where, a, out, request_ifft(how));
}
completion rfft(const on& where, const array& a, const array& out, const options& how) {
    return calls::transform(where, a, out, request_rfft(how));
}
completion irfft(const on& where, const array& a, const array& out, const options& how) {
    return calls::transform(where, a, out, request_irfft(how));
}

array fft(const array& a, const options& how, source_location where) {
    return transform_here(a, request_fft(how), where);
}
array ifft(const array& a, const options& how, source_location where) {
    return transform_here(a, request_ifft(how), where);
}
array rfft(const array& a, const options& how, source_location where) {
    return transform_here(a, request_rfft(how), where);
}
array irfft(const array& a, const options& how, source_location where) {
    return transform_here(a, request_irfft(how), where);
}

}  // namespace weir::fft
