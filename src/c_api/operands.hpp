#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "weir.h"
#include "weir/array.hpp"
#include "weir/buffer.hpp"
#include "weir/detail/submission.hpp"
#include "weir/token.hpp"

namespace weir::c_api {

/// One operand of a call, checked.
struct operand {
    buffer memory;  ///< none: a token
    std::optional<weir::token> instead;
    std::size_t offset = 0;
    runtime::access_request access;  ///< target null: no bytes
};

/// Throws argument_error, which names the function and the operand's number.
[[nodiscard]] std::vector<operand> checked_operands(const char* function, const weir_operand* operands,
                                                    std::size_t count);

/// What all of them ask for.
[[nodiscard]] std::vector<runtime::access_request> accesses_of(std::span<const operand> operands);

/// Where each begins, null for a token: as the host sees it, or as the device does.
[[nodiscard]] std::vector<void*> pointers_of(std::span<const operand> operands, bool for_host);

/// The bytes of a buffer as an array. Throws argument_error, which names the function, if they are not all in it.
[[nodiscard]] array bytes_of(const char* function, const weir_buffer& memory, std::size_t offset, std::size_t bytes);

}  // namespace weir::c_api
