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
    std::uint64_t lost = 0;  ///< number of records that are missing according to the log
    std::string malformed;   ///< why the log could not be read to its end; empty if it could
    bool strict = false;     ///< notes count as violations
};

/// 0: everything is proved. 1: something is not. 2: the log is invalid or incomplete.
[[nodiscard]] int exit_status(const verdict& of);

/// Prints at most `limit` findings of each severity as text, and the numbers in one line. `all`: also information and notes.
void print(std::ostream& to, const verdict& of, bool all, std::size_t limit);

/// Prints all findings as one JSON object.
void print_json(std::ostream& to, const verdict& of);

}  // namespace weir_verify
