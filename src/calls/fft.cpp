// The stateless calls: each names what it asks for; fft_call.cpp does it.
#include "weir/fft.hpp"

#include <array>
#include <cstddef>

#include "calls/execution.hpp"
#include "calls/fft_call.hpp"
#include "weir/buffer.hpp"

namespace weir::fft {

namespace {

/// What the calls differ in.
struct form {
    const char* call;
    fft_kind kind;
    fft_direction direction;
    bool all_axes;

    [[nodiscard]] calls::fft_geometry of(const array& a, const options& how) const {
        return {call, kind, a.shape(), a.dtype(), how, all_axes};
    }
};

constexpr form form_fft{"fft", fft_kind::complex_to_complex, fft_direction::forward, false};
constexpr form form_ifft{"ifft", fft_kind::complex_to_complex, fft_direction::inverse, false};
constexpr form form_rfft{"rfft", fft_kind::real_to_complex, fft_direction::forward, false};
constexpr form form_irfft{"irfft", fft_kind::complex_to_real, fft_direction::inverse, false};
constexpr form form_fftn{"fftn", fft_kind::complex_to_complex, fft_direction::forward, true};
constexpr form form_ifftn{"ifftn", fft_kind::complex_to_complex, fft_direction::inverse, true};
constexpr form form_rfftn{"rfftn", fft_kind::real_to_complex, fft_direction::forward, true};
constexpr form form_irfftn{"irfftn", fft_kind::complex_to_real, fft_direction::inverse, true};

array transform(const form& which, const on& where, const array& a, const options& how) {
    const calls::fft_geometry what = which.of(a, how);
    const calls::fft_call call(what, which.direction, how);
    array out = call.make_result(where, a);
    buffer workspace;
    call.run(where, a, out, workspace);
    return out;
}

array transform(const form& which, const array& a, const options& how, source_location where) {
    const stream current = current_stream(calls::computing_device(how.execution, a));
    return transform(which, on(current, where), a, how);
}

}  // namespace

completion detail::transform_into(transform which, const on& where, const array& a, const array& out,
                                  const options& how) {
    static constexpr std::array<const form*, 8> forms = {&form_fft,  &form_ifft,  &form_rfft,  &form_irfft,
                                                         &form_fftn, &form_ifftn, &form_rfftn, &form_irfftn};
    const form& what = *forms[static_cast<std::size_t>(which)];
    const calls::fft_geometry geometry = what.of(a, how);
    buffer workspace;
    return calls::fft_call(geometry, what.direction, how).run(where, a, out, workspace);
}

array fft(const on& where, const array& a, const options& how) { return transform(form_fft, where, a, how); }
array fft(const array& a, const options& how, source_location where) { return transform(form_fft, a, how, where); }

array ifft(const on& where, const array& a, const options& how) { return transform(form_ifft, where, a, how); }
array ifft(const array& a, const options& how, source_location where) { return transform(form_ifft, a, how, where); }

array rfft(const on& where, const array& a, const options& how) { return transform(form_rfft, where, a, how); }
array rfft(const array& a, const options& how, source_location where) { return transform(form_rfft, a, how, where); }

array irfft(const on& where, const array& a, const options& how) { return transform(form_irfft, where, a, how); }
array irfft(const array& a, const options& how, source_location where) { return transform(form_irfft, a, how, where); }

array fftn(const on& where, const array& a, const options& how) { return transform(form_fftn, where, a, how); }
array fftn(const array& a, const options& how, source_location where) { return transform(form_fftn, a, how, where); }

array ifftn(const on& where, const array& a, const options& how) { return transform(form_ifftn, where, a, how); }
array ifftn(const array& a, const options& how, source_location where) { return transform(form_ifftn, a, how, where); }

array rfftn(const on& where, const array& a, const options& how) { return transform(form_rfftn, where, a, how); }
array rfftn(const array& a, const options& how, source_location where) { return transform(form_rfftn, a, how, where); }

array irfftn(const on& where, const array& a, const options& how) { return transform(form_irfftn, where, a, how); }
array irfftn(const array& a, const options& how, source_location where) {
    return transform(form_irfftn, a, how, where);
}

}  // namespace weir::fft
