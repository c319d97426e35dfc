// Requirements of tests of sparse systems that a machine may lack.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/devices.hpp"
#include "support/fake_cuda.hpp"
#include "support/sparse_systems.hpp"

/// Skips a test on a device for which the library is not installed, and says so. The fake devices always have one.
#define WEIR_NEEDS_SOLVER()                                                                             \
    if (const std::string missing = weir::test::missing_solver(weir::test::here()); !missing.empty()) { \
        ASSERT_FALSE(weir::test::fake_cuda::in_use()) << missing;                                       \
        GTEST_SKIP() << missing;                                                                        \
    }
