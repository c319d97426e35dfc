#include "c_api/operands.hpp"

#include <cstdint>
#include <string>

#include "c_api/handles.hpp"
#include "weir/access.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/shape.hpp"

namespace weir::c_api {

namespace {

[[noreturn]] void refuse(const std::string& which, const std::string& why) { throw argument_error(which + why); }

void expect_inside(const std::string& which, const buffer& memory, std::size_t offset, std::size_t bytes) {
    if (offset > memory.bytes() || bytes > memory.bytes() - offset) {
        refuse(which, " has " + std::to_string(bytes) + " bytes from " + std::to_string(offset) +
                          " on, and its buffer has " + std::to_string(memory.bytes()));
    }
}

operand checked(const std::string& which, const weir_operand& given) {
    if ((given.buffer == nullptr) == (given.token == nullptr)) {
        refuse(which, given.buffer == nullptr ? " is neither a buffer nor a token: pass weir_operand_of(buffer, use)"
                                              : " is a buffer and a token: pass two operands");
    }
    if (given.use != WEIR_IN && given.use != WEIR_OUT && given.use != WEIR_INOUT) {
        refuse(which, " has the use " + std::to_string(given.use) + ": pass WEIR_IN, WEIR_OUT or WEIR_INOUT");
    }
    operand one;
    one.access.mode = given.use == WEIR_IN ? access_mode::read : access_mode::write;
    one.access.overwrites = given.use == WEIR_OUT;
    if (given.token != nullptr) {
        one.instead = given.token->value;
        one.access.target = one.instead->resource(detail::key);
        one.access.where = {0, 1};
        return one;
    }
    one.memory = given.buffer->value;
    one.offset = given.offset;
    expect_inside(which, one.memory, given.offset, given.bytes);
    const std::size_t bytes = given.bytes == 0 ? one.memory.bytes() - given.offset : given.bytes;
    one.access.target = bytes == 0 ? nullptr : one.memory.resource(weir::detail::key);
    one.access.where = {given.offset, given.offset + bytes};
    return one;
}

}  // namespace

std::vector<operand> checked_operands(const char* function, const weir_operand* operands, std::size_t count) {
    if (operands == nullptr && count != 0) {
        refuse(function, std::string(" got null for `operands`, and a count of ") + std::to_string(count));
    }
    std::vector<operand> all;
    all.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(checked(std::string(function) + ": operand " + std::to_string(i), operands[i]));
    }
    return all;
}

std::vector<runtime::access_request> accesses_of(std::span<const operand> operands) {
    std::vector<runtime::access_request> all;
    all.reserve(operands.size());
    for (const operand& one : operands) {
        if (one.access.target != nullptr) {
            all.push_back(one.access);
        }
    }
    return all;
}

std::vector<void*> pointers_of(std::span<const operand> operands, bool for_host) {
    std::vector<void*> all;
    all.reserve(operands.size());
    for (const operand& one : operands) {
        std::byte* const begin = for_host ? one.memory.data() : one.memory.device_data();
        all.push_back(begin == nullptr ? nullptr : begin + one.offset);
    }
    return all;
}

array bytes_of(const char* function, const weir_buffer& memory, std::size_t offset, std::size_t bytes) {
    expect_inside(std::string(function) + ": the range", memory.value, offset, bytes);
    return {memory.value, dtype::uint8, shape{static_cast<std::int64_t>(bytes)}, offset};
}

}  // namespace weir::c_api
