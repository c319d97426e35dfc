// Values from a fuzzer's bytes, or zeros once they are used up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weir::fuzz {

class random_bytes {
public:
    explicit random_bytes(std::span<const std::uint8_t> bytes) : left_(bytes) {}

    template <class T>
    [[nodiscard]] T take() {
        T made{};
        const std::size_t count = std::min(sizeof made, left_.size());
        if (count != 0) {
            std::memcpy(&made, left_.data(), count);
        }
        left_ = left_.subspan(count);
        return made;
    }
    /// A number that is often small and sometimes absurd.
    [[nodiscard]] std::int64_t number() {
        const auto choice = take<std::uint8_t>();
        if (choice < 200) {
            return choice % 9;
        }
        return choice < 225 ? static_cast<std::int64_t>(take<std::int8_t>()) : take<std::int64_t>();
    }
    [[nodiscard]] bool one_in(unsigned count) { return take<std::uint8_t>() % count == 0; }

private:
    std::span<const std::uint8_t> left_;
};

}  // namespace weir::fuzz
