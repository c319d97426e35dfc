// An Arrow column of a fuzzer's bytes (scenario B10): it is accepted or refused, and released exactly once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/dlpack_input.hpp"
#include "fuzz/random_bytes.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "weir/arrow.hpp"
#include "weir/error.hpp"

namespace weir::fuzz {

/// Whether a column says that it has more elements than there are addresses.
inline bool has_impossible_size(const exchange::arrow::array& column) {
    constexpr std::uint64_t addresses = std::uint64_t{1} << 57;
    return column.length < 0 || column.offset < 0 ||
           static_cast<std::uint64_t>(column.length) + static_cast<std::uint64_t>(column.offset) > addresses;
}

inline void arrow_input(std::span<const std::uint8_t> bytes, outcomes& seen) {
    namespace arrow = exchange::arrow;
    static std::array<std::uint64_t, 512> memory{};
    constexpr std::array<const char*, 19> formats{"c", "C", "s", "S",  "i",  "I",   "l",       "L",  "e", "f",
                                                  "g", "b", "n", "+s", "+l", "w:4", "tsu:UTC", "vu", ""};
    random_bytes from(bytes);
    std::atomic<int> released{0};
    std::string made_up;
    arrow::schema child;
    arrow::schema type;
    if (from.one_in(8)) {
        for (int i = 0; i < 4; ++i) {
            made_up += static_cast<char>(from.take<std::uint8_t>());
        }
        type.format = made_up.c_str();
    } else {
        type.format = from.one_in(32) ? nullptr : formats[from.take<std::uint8_t>() % formats.size()];
    }
    type.n_children = from.one_in(8) ? from.number() : 0;
    type.dictionary = from.one_in(16) ? &child : nullptr;
    if (!from.one_in(32)) {
        type.release = [](arrow::schema* self) { self->release = nullptr; };
    }

    arrow::device_array column;
    column.array.length = from.number();
    column.array.offset = from.number();
    column.array.null_count = from.one_in(4) ? from.number() : 0;
    column.array.n_buffers = from.one_in(8) ? from.number() : 2;
    column.array.n_children = from.one_in(16) ? from.number() : 0;
    std::array<const void*, 2> buffers{nullptr, from.one_in(8) ? nullptr : memory.data()};
    // Only its producer knows how much memory a column points to: the bits, which are read, are as many as the column says.
    const auto capacity = static_cast<std::int64_t>(sizeof memory * 8);
    const bool bits_fit = column.array.length >= 0 && column.array.offset >= 0 && column.array.length < capacity / 2 &&
                          column.array.offset < capacity / 2;
    if (bits_fit && from.one_in(2)) {
        memory[0] = from.take<std::uint64_t>();
        buffers[0] = memory.data();
    } else if (!bits_fit && has_impossible_size(column.array)) {
        buffers[0] = memory.data();  // refused before any bit is read
        column.array.null_count = from.one_in(2) ? -1 : column.array.null_count;
    }
    if (!bits_fit && type.format != nullptr && std::string_view(type.format) == "b") {
        buffers[1] = nullptr;
    }
    column.array.buffers = from.one_in(16) ? nullptr : buffers.data();
    column.device_type = from.one_in(8) ? from.take<std::int32_t>() : 1;
    column.device_id = from.one_in(4) ? -1 : 0;
    column.array.private_data = &released;
    column.array.release = [](arrow::array* self) {
        static_cast<std::atomic<int>*>(self->private_data)->fetch_add(1);
        self->release = nullptr;
    };
    try {
        const array made = exchange::from_arrow(exchange::arrow_array(column), type);
        ++seen.taken;
        if (made.dimensions() != 1 || made.to_string().empty()) {
            std::abort();
        }
    } catch (const error&) {
        ++seen.refused;
    }
    runtime::reaper::wait_until_empty();
    if (released != 1) {
        std::abort();
    }
}

}  // namespace weir::fuzz
