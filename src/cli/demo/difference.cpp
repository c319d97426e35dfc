#include "cli/demo/difference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::demo {

difference compare(const recording& result, const recording& right, float tolerance) {
    difference d;
    for (std::size_t i = 0; i < right.samples.size(); ++i) {
        d.samples += differ(result.samples[i], right.samples[i], tolerance) ? 1 : 0;
        const double apart = std::abs(static_cast<double>(result.samples[i]) - static_cast<double>(right.samples[i]));
        d.furthest = std::max(d.furthest, std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity());
    }
    d.share = static_cast<double>(d.samples) / static_cast<double>(std::max<std::size_t>(1, right.samples.size()));
    return d;
}

}  // namespace weir::demo
