#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "calls/sparse/factorization.hpp"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/completion.hpp"
#include "weir/device.hpp"
#include "weir/on.hpp"
#include "weir/sparse.hpp"

namespace weir::calls {

/// Checks a matrix and returns its description. Throws argument_error, argument_type_error, whose messages begin with `name`.
[[nodiscard]] sparse_system describe(const char* name, const csr_matrix& a, const solve_options& how);
/// Throws the same for a right-hand side of that system, whose matrix is on `home`.
void expect_right_hand_side(const char* name, const sparse_system& system, const device& home, const array& b);

/// The device of the arrays of a matrix.
[[nodiscard]] device home_of(const csr_matrix& a);

/// What a factorization knows of the places of the matrix's elements.
enum class places : std::uint8_t {
    analyzed,        ///< they are those of the analysis
    to_be_compared,  ///< the indices lie in other arrays, which it reads and compares: it fails with structure_error
};

/// A system in its three phases, each of which is one operation of a stream, with copies before and after if the
/// computing device does not reach the operands or the library needs another layout.
///
/// Accesses to two internal bytes order the phases, as accesses to any memory do (rule P3): the analysis writes the first; the
/// factorization reads the first and writes the second; a solution reads the second, or modifies it if the library computes one
/// solution at a time. So a failed phase fails the phases that need it, and a factorization with other values repairs a failed one
/// (rule K4).
class sparse_phases {
public:
    /// Loads the library. Enqueues nothing. Throws as direct_solver::plan does.
    sparse_phases(const char* name, const on& where, const csr_matrix& a, const solve_options& how,
                  const sparse_system& system);

    /// The device that computes.
    [[nodiscard]] device computing() const noexcept { return computing_; }
    /// What explain() says of the phases.
    [[nodiscard]] std::vector<std::string> explained() const;
    /// Whether a call blocks (rule P2).
    [[nodiscard]] bool blocks() const noexcept { return elsewhere_ || how_.blocking == call_blocking::always; }

    /// @{
    /// The phases. Each is enqueued without blocking. They throw as the phases of direct_solver do.
    completion analyze(const on& where, const csr_matrix& a);
    completion factorize(const on& where, const csr_matrix& a, places at = places::analyzed);
    completion solve(const on& where, const array& b, const array& x);
    /// @}

private:
    /// Throws argument_error for a stream that the phases after `analyze` refuse.
    void expect_same_device(const stream_ref& of) const;
    /// Throws out_of_memory if the copies of these, on the computing device, are more than the memory limit.
    void expect_room_for_copies(std::initializer_list<const array*> of) const;
    /// The array, packed, in memory that the computing device reaches: `x` itself, or a copy. `next`: where the call's next step goes.
    [[nodiscard]] array brought(on& next, const array& x) const;
    /// The same, but always a copy.
    [[nodiscard]] array copied(on& next, const array& x) const;

    const char* name_;
    solve_options how_;
    sparse_system system_;
    device computing_;
    bool elsewhere_;  ///< the computing device does not reach the operands
    std::shared_ptr<factorization> by_;
    buffer progress_;  ///< two bytes, whose accesses represent those to `by_`
    array offsets_;    ///< held if the library refers to them
    array columns_;
};

}  // namespace weir::calls
