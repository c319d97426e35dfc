#pragma once

#include <optional>

#include "cli/demo/kernels.hpp"
#include "cli/demo/layout.hpp"
#include "weir/array.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/kernel.hpp"
#include "weir/on.hpp"

namespace weir::demo {

/// The operations that the pipeline enqueues. Where host code runs these are the functions of kernels.hpp and Weir's transforms; on
/// a CUDA device they are kernels that compute the same, with a thread for each sample or bin, compiled for the device when this is
/// constructed. There, sums are computed in another order, so that results are the same within rounding: see tolerance().
///
/// Must live until the operations that it enqueued are complete.
class work {
public:
    /// Throws argument_error (the device has too little memory for the frames), missing_library, device_error.
    work(const layout& cut, device where);

    /// The largest difference of samples from those of reference.cpp, for a recording whose loudest sample is 1: 0 where the same code
    /// runs. On a CUDA device 1e-5: a transform of n samples has an error of about 1.2e-7 * (2 + log2 n), 2e-6 here, relative to the
    /// loudest bin; the filter, which only makes bins smaller, does not increase this error in any of them.
    [[nodiscard]] static float tolerance(device where) noexcept {
        return where.kind() == device_kind::cuda ? 1e-5F : 0.0F;
    }

    completion window(const on& where, const array& samples, array& frames);
    completion transform(const on& where, const array& frames, array& spectrum);
    completion keep_tones(const on& where, array& spectrum, array& level);
    completion transform_back(const on& where, const array& spectrum, array& frames);
    completion overlap_add(const on& where, const array& frames, array& part, array& next);
    completion store(const on& where, array& part, array& result);

private:
    struct device_code {
        device_code(const layout& cut, const kernels& as, device where);

        kernel window;
        kernel transform;
        kernel keep_tones;
        kernel transform_back;
        kernel overlap_add;
        kernel store;
        array fade;        ///< (frame) float32, as kernels::fade
        array fade_back;   ///< (frame) float32
        array turns;       ///< (frame / 2) complex64: the powers of the transform's root of unity
        array magnitudes;  ///< (channels, bins) float32: of the frame that the filter is processing
    };

    layout cut_;
    kernels kernels_;
    std::optional<device_code> on_device_;
};

}  // namespace weir::demo
