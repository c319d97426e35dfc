#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <stdexcept>
#include <string>

#include "record.hpp"

namespace weir_verify {

/// The log violates the format: `what()` is the reason, with the line.
class malformed_log : public std::runtime_error {
public:
    malformed_log(std::uint64_t line, const std::string& why)
        : std::runtime_error("line " + std::to_string(line) + ": " + why) {}
};

/// Reads an evidence log, version 2 of any revision, record by record: keeps one line at a time, and each text once. Strict:
/// refuses what the format does not allow, except unknown fields.
class log_reader {
public:
    static constexpr std::uint64_t version = 2;

    /// Records refer to texts in `texts`, which must outlive the records and the findings.
    log_reader(std::istream& from, text_store& texts) : from_(&from), texts_(&texts) {}

    /// The next record; nothing after the last one, once the end of the log has been read. Throws malformed_log.
    [[nodiscard]] std::optional<record> next();

    /// The number of records that are missing according to the log; known at the end.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

private:
    bool read_line();

    std::istream* from_;
    std::string line_;
    std::uint64_t number_ = 0;
    std::uint64_t records_ = 0;
    std::uint64_t lost_ = 0;
    std::int64_t time_ = 0;
    text_store* texts_;
};

}  // namespace weir_verify
