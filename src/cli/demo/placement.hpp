#pragma once

#include "weir/device.hpp"

namespace weir::demo {

/// How many streams a pipeline has, and on which device.
struct placement {
    placement(int how_many,  // NOLINT(google-explicit-constructor): the CPU is the common case
              device on = cpu())
        : streams(how_many), where(on) {}

    int streams;
    device where;
};

}  // namespace weir::demo
