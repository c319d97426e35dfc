#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "random_programs/generate.hpp"
#include "random_programs/oracle.hpp"
#include "random_programs/program.hpp"

namespace random_programs {

/// Conflicts between two streams, or between a stream and the host, that are races if nothing orders them.
enum class hazard : std::uint8_t { read_after_write, write_after_read, write_after_write, host, reuse };
inline constexpr int hazards = 5;

/// Other features of programs, as the oracle sees them.
enum class feature : std::uint8_t {
    hazard_between_devices,  ///< streams of two devices conflict that the program does not order
    copy_to_accelerator,
    copy_to_host,
    copy_between_accelerators,
    failing,   ///< an operation that fails
    resting,   ///< one that does not run because another failed
    refusing,  ///< the host asks for what is not valid
    telling,   ///< a stream or a device reports a failure to the host
    healing,   ///< what was not valid is written anew
};
inline constexpr int features = 9;

/// Statistics of programs: how many have a feature at least once.
class census {
public:
    /// Counts a completed program in which memory that another stream had used was handed on `reuses` times.
    void count(const program& completed, const expectation& wanted, int reuses);

    /// For readers.
    [[nodiscard]] std::string to_string() const;
    [[nodiscard]] int programs() const noexcept { return programs_; }
    /// Programs in which the program itself leaves accesses of two streams unordered.
    [[nodiscard]] int with_hazard_between_streams() const noexcept { return crossed_; }
    [[nodiscard]] int with(hazard kind) const noexcept { return hazards_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] int with(step_kind kind) const noexcept { return kinds_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] int with(shape kind) const noexcept { return shapes_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] int with(feature kind) const noexcept { return features_[static_cast<std::size_t>(kind)]; }
    /// The names of the features that fewer than one in a hundred programs have; empty for few programs.
    [[nodiscard]] std::string rare_features() const;

private:
    int programs_ = 0;
    int crossed_ = 0;
    std::size_t steps_ = 0;
    std::array<int, hazards> hazards_{};
    std::array<int, step_kinds> kinds_{};
    std::array<int, shapes> shapes_{};
    std::array<int, features> features_{};
};

[[nodiscard]] const char* name_of(hazard kind) noexcept;
[[nodiscard]] const char* name_of(shape kind) noexcept;
[[nodiscard]] const char* name_of(feature kind) noexcept;

/// Whether Weir has something to order in a program: accesses of two streams conflict that the program does not order.
[[nodiscard]] bool leaves_streams_unordered(const program& completed);

}  // namespace random_programs
