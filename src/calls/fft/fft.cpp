// The stateless calls: each describes its transform; calls/call.cpp executes it.
#include "weir/fft.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "calls/execution.hpp"
#include "calls/fft/fft_call.hpp"
#include "calls/kept_calls.hpp"
#include "weir/buffer.hpp"

namespace weir::fft {

namespace {

/// The differences between the calls.
struct form {
    const char* call;
    fft_kind kind;
    fft_direction direction;
    bool all_axes;

    /// What transforms of arrays like `a` need again.
    [[nodiscard]] std::shared_ptr<calls::kept_fft> of(const array& a, const options& how) const {
        calls::call_key words;
        words.add(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)));
        words.add(a);
        const auto add_optional = [&](const std::optional<std::int64_t>& number) {
            words.add(std::uint64_t{number.has_value()});
            words.add(number.value_or(0));
        };
        add_optional(how.n);
        add_optional(how.axis);
        words.add(std::span(how.s));
        words.add(std::span(how.axes));
        words.add(static_cast<std::uint64_t>(how.norm));
        return calls::kept_ffts().get(words, [&] {
            return std::make_shared<calls::kept_fft>(
                calls::fft_geometry(call, kind, a.shape(), a.dtype(), how, all_axes));
        });
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
    const std::shared_ptr<calls::kept_fft> known = which.of(a, how);
    return calls::execute(calls::fft_call(known->what, which.direction), calls::terms_of(how), where, {&a, 1},
                          &known->prepared);
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
    const std::shared_ptr<calls::kept_fft> known = what.of(a, how);
    buffer workspace;
    return calls::execute(calls::fft_call(known->what, what.direction), calls::terms_of(how), where, {&a, 1}, out,
                          workspace, &known->prepared);
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
