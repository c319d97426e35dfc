#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/capability/libraries.hpp"
#include "calls/matmul/cublaslt_library.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"

namespace weir::calls {

/// A matrix, or several at equal distances, as described to the library. In elements.
struct cublaslt_matrix {
    std::int64_t leading = 1;
    std::int64_t step = 0;         ///< from one matrix to the next
    std::uint32_t alignment = 16;  ///< bytes of which each matrix begins at a multiple

    friend auto operator<=>(const cublaslt_matrix&,
                            const cublaslt_matrix&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// A product as the library knows it, but for addresses and factors: d = epilogue(alpha op(a) op(b) + beta d).
struct cublaslt_problem {
    int number = 0;  ///< cublaslt_number
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t depth = 0;
    std::int64_t count = 1;  ///< matrices
    bool turns_a = false;
    bool turns_b = false;
    std::uint32_t epilogue = cublaslt_epilogue_default;
    std::uint32_t bias_alignment = 0;  ///< bytes; 0 without a bias
    cublaslt_matrix a;
    cublaslt_matrix b;
    cublaslt_matrix d;
    std::uint64_t most_workspace = 0;  ///< bytes

    friend auto operator<=>(const cublaslt_problem&,
                            const cublaslt_problem&) = default;  // NOLINT(modernize-use-nullptr): LLVM 14
};

/// As what the library takes the elements of a product, and its factors.
[[nodiscard]] cublaslt_number cublaslt_number_of(dtype type) noexcept;

/// The library's descriptions of one product and its matrices, on the host. Any number of threads may use them at once.
class cublaslt_descriptions {
public:
    /// `bias`, if the epilogue adds one, is on the device. Throws device_error.
    cublaslt_descriptions(const cublaslt_functions& by, const cublaslt_problem& problem, const std::byte* bias);
    ~cublaslt_descriptions();
    cublaslt_descriptions(const cublaslt_descriptions&) = delete;
    cublaslt_descriptions& operator=(const cublaslt_descriptions&) = delete;

    void* product = nullptr;
    void* a = nullptr;
    void* b = nullptr;
    void* d = nullptr;

private:
    void make(const cublaslt_problem& problem, const std::byte* bias);
    void destroy() noexcept;

    const cublaslt_functions* by_;
};

/// How a problem is solved.
struct cublaslt_choice {
    cublaslt_algorithm algorithm{};
    std::size_t workspace_bytes = 0;
};

/// The library on one device. Keeps which algorithm it chose for which problem.
class cublaslt_provider {
public:
    /// Throws missing_library, device_error.
    explicit cublaslt_provider(const backend::capability::libraries& in);

    [[nodiscard]] const cublaslt_functions& library() const noexcept { return *library_; }
    [[nodiscard]] void* handle() const noexcept { return handle_; }

    /// The algorithm for a problem: the one that `keep` was told, else the one that the library suggests first. None if the library
    /// does not solve such problems. Throws device_error, out_of_memory.
    [[nodiscard]] std::optional<cublaslt_choice> choose(const cublaslt_problem& problem);
    /// Up to `most` algorithms, the one that the library takes for the fastest first.
    [[nodiscard]] std::vector<cublaslt_choice> suggested(const cublaslt_problem& problem, int most) const;
    /// Has `choose` give this algorithm from now on.
    void keep(const cublaslt_problem& problem, const cublaslt_choice& choice);

    /// That of a device whose driver has capability::libraries; kept for ever.
    [[nodiscard]] static cublaslt_provider& of(const device& where);

private:
    /// How many choices are kept; when there are more, all are let go of.
    static constexpr std::size_t most_kept = 4096;

    const backend::capability::libraries* in_;
    const cublaslt_functions* library_;
    void* handle_ = nullptr;  ///< lives for ever, as the provider does
    detail::mutex mutex_;     ///< guards kept_; a leaf in the lock order
    std::map<cublaslt_problem, std::optional<cublaslt_choice>> kept_;
};

}  // namespace weir::calls
