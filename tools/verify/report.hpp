#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "auditor.hpp"

namespace weir_verify {

struct verdict {
    std::string log;  ///< its name
    audit_summary sum;
    const findings* found = nullptr;
    std::uint64_t lost = 0;  ///< records that the log says are missing
    std::string malformed;   ///< why it could not be read to its end; empty if it was
    bool strict = false;     ///< notes count as violations
};

/// 0: everything is proved. 1: something is not. 2: the log is no log, or not a whole one.
[[nodiscard]] int exit_status(const verdict& of);

/// At most `limit` findings of each weight in words, and the numbers in one line. `all`: information and notes, too.
void print(std::ostream& to, const verdict& of, bool all, std::size_t limit);

/// All findings as one JSON object.
void print_json(std::ostream& to, const verdict& of);

}  // namespace weir_verify
