#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <stdexcept>
#include <string>

#include "record.hpp"

namespace weir_verify {

/// The log does not say what a log has to say: `what()` is the reason, with the line.
class malformed_log : public std::runtime_error {
public:
    malformed_log(std::uint64_t line, const std::string& why)
        : std::runtime_error("line " + std::to_string(line) + ": " + why) {}
};

/// Reads an evidence log, version 2 of any revision, record by record: never more than one line is kept, and texts once each. Strict:
/// what the format does not allow is refused, but for fields that it does not know.
class log_reader {
public:
    static constexpr std::uint64_t version = 2;

    /// Records name texts in `texts`, which must live as long as they, and what is found in them, are used.
    log_reader(std::istream& from, text_store& texts) : from_(&from), texts_(&texts) {}

    /// The next record; nothing after the last one, when the end of the log has been read. Throws malformed_log.
    [[nodiscard]] std::optional<record> next();

    /// News that the log says are missing, known at the end.
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
