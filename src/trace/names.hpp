#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "order/plan.hpp"
#include "trace/log.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/ordering.hpp"

namespace weir::trace {

/// The names that a log uses for the values of an enumeration, by value. They are part of the published format.
template <class Enum>
struct names_of;

template <>
struct names_of<order::reason> {
    static constexpr std::array<std::string_view, 7> list = {
        "read_after_write", "write_after_read", "write_after_write", "reuse", "dependency", "entry", "exit"};
};
template <>
struct names_of<order::witness_kind> {
    static constexpr std::array<std::string_view, 4> list = {"same_stream", "known", "other_wait", "complete"};
};
template <>
struct names_of<order::access_mode> {
    static constexpr std::array<std::string_view, 2> list = {"read", "write"};
};
template <>
struct names_of<ordering_mode> {
    static constexpr std::array<std::string_view, 2> list = {"automatic", "manual"};
};
template <>
struct names_of<runtime::work_kind> {
    static constexpr std::array<std::string_view, 5> list = {"device", "host_task", "copy", "gate", "moment"};
};

template <>
struct names_of<clock_kind> {
    static constexpr std::array<std::string_view, 2> list = {"steady", "virtual"};
};

template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) noexcept {
    return names_of<Enum>::list[static_cast<std::size_t>(value)];
}

template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> value_of(std::string_view name) noexcept {
    for (std::size_t i = 0; i < names_of<Enum>::list.size(); ++i) {
        if (names_of<Enum>::list[i] == name) {
            return static_cast<Enum>(i);
        }
    }
    return std::nullopt;
}

}  // namespace weir::trace
