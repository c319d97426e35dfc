// Kernels of arrays, compiled for the host: each thread of a launch one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "array/cuda/source.hpp"

namespace weir::test {

/// Many kernels in one library, since the host's compiler is slow to start. Without barriers: no reductions.
class compiled_kernels {
public:
    compiled_kernels() = default;
    compiled_kernels(const compiled_kernels&) = delete;
    compiled_kernels& operator=(const compiled_kernels&) = delete;
    ~compiled_kernels();

    /// The number that `run` takes for it.
    std::size_t add(const array_kernels::description& what);
    /// After the last `add`. Returns the compiler's messages; empty if there are none.
    [[nodiscard]] std::string compile();
    /// As many blocks as are given.
    void run(std::size_t number, std::span<const std::uint64_t> words, unsigned blocks) const;

private:
    std::vector<array_kernels::description> all_;
    std::string source_;
    void* library_ = nullptr;
};

}  // namespace weir::test
