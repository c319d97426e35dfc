#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "calls/cuda_fft.hpp"
#include "calls/fft_route.hpp"
#include "weir/device.hpp"

namespace weir::calls {

/// Where a transform is made, from where, to where, and by way of which workspace.
struct fft_places {
    device on;
    fft_place operand;
    fft_place result;
    bool over = false;  ///< whether both share memory
    const std::byte* workspace = nullptr;

    friend bool operator==(const fft_places&, const fft_places&) = default;
};

/// A transform between known addresses with all that it needs made: it can be enqueued any number of times, on any stream of
/// its device. A plan keeps its last ones, so that the next execution between the same arrays has only to be enqueued.
struct ready_fft {
    fft_places where;
    std::size_t workspace_bytes = 0;
    bool in_place = false;                        ///< whether the operand's memory is changed
    std::shared_ptr<const cuda_fft_work> native;  ///< on a CUDA device
    std::shared_ptr<const fft_work> host;         ///< on others
};

using kept_fft = std::optional<ready_fft>;

}  // namespace weir::calls
