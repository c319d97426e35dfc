#pragma once

#include <cstdint>
#include <cstdlib>

namespace sharing_programs {

/// How many programs a test runs whose default is `otherwise`: one in ten of those asked for, if a number is set.
inline std::uint32_t programs(std::uint32_t otherwise) {
    const char* const wanted = std::getenv("WEIR_TEST_PROGRAMS");
    return wanted == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(wanted, nullptr, 10)) / 10 + 1;
}

}  // namespace sharing_programs
