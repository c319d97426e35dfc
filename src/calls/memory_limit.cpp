#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "weir/calls.hpp"
#include "weir/error.hpp"
#include "weir/memory.hpp"

namespace weir {

namespace {

struct unit {
    std::string_view name;  ///< in lower case
    double bytes;
};

constexpr std::array<unit, 10> units = {{{"", 1},
                                         {"b", 1},
                                         {"kb", 1e3},
                                         {"mb", 1e6},
                                         {"gb", 1e9},
                                         {"tb", 1e12},
                                         {"kib", 0x1p10},
                                         {"mib", 0x1p20},
                                         {"gib", 0x1p30},
                                         {"tib", 0x1p40}}};

[[noreturn]] void refuse(std::string_view text) {
    throw argument_error("the memory limit \"" + std::string(text) +
                         "\" cannot be read: give a number of bytes, a part such as 0.8, or text such as \"80%\", "
                         "\"512 MB\" or \"1.5 GiB\"");
}

/// In lower case, without blanks at its ends.
std::string plain(std::string_view text) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && is_blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    std::string result(text);
    for (char& c : result) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return result;
}

}  // namespace

memory_limit memory_limit::from_part(double part) {
    if (!(part > 0 && part <= 1)) {
        throw argument_error("the memory limit " + std::to_string(part) +
                             " is no part of the device's memory: give a part of more than 0 and at most 1, a whole "
                             "number of bytes, or text such as \"1.5 GiB\"");
    }
    memory_limit made;
    made.part_ = part;
    return made;
}

memory_limit::memory_limit(std::string_view text) {
    const std::string wanted = plain(text);
    double number = 0;
    const auto [end, failure] =
        std::from_chars(wanted.data(), wanted.data() + wanted.size(), number, std::chars_format::fixed);
    if (failure != std::errc() || !std::isfinite(number) || std::signbit(number)) {
        refuse(text);
    }
    const std::string name =
        plain(std::string_view(end, static_cast<std::size_t>(wanted.data() + wanted.size() - end)));
    if (name == "%") {
        if (!(number > 0 && number <= 100)) {
            throw argument_error("the memory limit \"" + std::string(text) +
                                 "\" must be more than 0% and at most 100%");
        }
        part_ = number / 100;
        return;
    }
    for (const unit& one : units) {
        if (one.name == name) {
            const double bytes = std::floor(number * one.bytes);
            if (one.bytes == 1 && bytes != number) {
                refuse(text);  // a fraction of a byte: perhaps meant as a fraction of the memory
            }
            is_part_ = false;
            bytes_ = bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : std::numeric_limits<std::uint64_t>::max();
            return;
        }
    }
    refuse(text);
}

memory_limit memory_limit::from_bytes(bool negative, std::uint64_t bytes) {
    if (negative) {
        throw argument_error("the memory limit is negative: give a number of bytes of 0 or more");
    }
    memory_limit made;
    made.is_part_ = false;
    made.bytes_ = bytes;
    return made;
}

std::size_t memory_limit::bytes(device on) const {
    if (!is_part_) {
        return bytes_;
    }
    return static_cast<std::size_t>(part_ * static_cast<double>(memory::stats(on).limit));
}

}  // namespace weir
