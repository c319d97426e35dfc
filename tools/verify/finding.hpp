// The results of an audit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "record.hpp"

namespace weir_verify {

enum class severity : std::uint8_t {
    violation,    ///< the log does not prove what it must
    note,         ///< not an error, but superfluous or odd
    information,  ///< left to the program (rule O5), which does not order it either
};

/// An operation, a wait, or an access by the host: the subject of a record.
struct party {
    std::uint64_t line = 0;  ///< line number in the log
    place from;
    text label = nullptr;
    moment at;  ///< stream 0: the host
    text stream = nullptr;
};

struct finding {
    severity weight = severity::violation;
    const char* kind = "";
    std::string what;     ///< one sentence
    std::string missing;  ///< how to correct it; may be empty
    party here;           ///< where it was found
    std::optional<party> other;
    std::uint64_t times = 1;
};

/// Findings. Each kind is kept once for each pair of places in the program.
class findings {
public:
    void add(finding one);

    [[nodiscard]] const std::vector<finding>& all() const noexcept { return all_; }
    /// The number of findings, repetitions included.
    [[nodiscard]] std::uint64_t count(severity of) const noexcept { return counts_[static_cast<std::size_t>(of)]; }

private:
    using spot = std::tuple<text, std::uint32_t>;
    std::vector<finding> all_;
    std::map<std::tuple<std::string, spot, spot>, std::size_t> index_;
    std::uint64_t counts_[3] = {};
};

/// The finding as text of several lines; `log` is the log's name.
[[nodiscard]] std::string to_string(const finding& one, const std::string& log);

}  // namespace weir_verify
