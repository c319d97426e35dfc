// A DLPack tensor of a fuzzer's bytes (scenario B10): it is accepted or refused, its deleter is called exactly once, and nothing is
// read that the tensor does not point to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "fuzz/random_bytes.hpp"
#include "runtime/lifetime/reaper.hpp"
#include "support/producer.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"

namespace weir::fuzz {

/// The outcomes of the inputs of a run.
struct outcomes {
    std::uint64_t taken = 0;
    std::uint64_t refused = 0;
};

inline void dlpack_input(std::span<const std::uint8_t> bytes, outcomes& seen) {
    namespace dlpack = exchange::dlpack;
    static std::array<double, 512> memory{};
    random_bytes from(bytes);
    // As many dimensions as it says: only the producer knows how much memory a tensor points to.
    std::array<std::int64_t, 8> shape{};
    std::array<std::int64_t, 8> strides{};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        shape[i] = from.number();
        strides[i] = from.number();
    }
    std::atomic<int> deleted{0};
    dlpack::managed_tensor_versioned tensor;
    tensor.context = &deleted;
    tensor.deleter = [](dlpack::managed_tensor_versioned* self) {
        static_cast<std::atomic<int>*>(self->context)->fetch_add(1);
    };
    tensor.version = {from.one_in(16) ? from.take<std::uint32_t>() : 1U, from.take<std::uint8_t>()};
    tensor.flags = from.one_in(8) ? from.take<std::uint64_t>() : from.take<std::uint8_t>() % 4U;
    tensor.what.data = from.one_in(8) ? nullptr : memory.data() + memory.size() / 2;
    tensor.what.on.type = static_cast<dlpack::device_type>(from.one_in(8) ? from.take<std::int32_t>() : 1);
    tensor.what.on.id = from.one_in(4) ? -1 : 0;
    tensor.what.dimensions = static_cast<std::int32_t>(from.take<std::uint8_t>() % 9U);
    if (from.one_in(16)) {
        tensor.what.dimensions = from.take<std::int32_t>() | std::numeric_limits<std::int32_t>::min();
    }
    tensor.what.shape = from.one_in(16) ? nullptr : shape.data();
    tensor.what.strides = from.one_in(4) ? nullptr : strides.data();
    tensor.what.type = {static_cast<std::uint8_t>(from.take<std::uint8_t>() % (from.one_in(4) ? 255U : 7U)),
                        static_cast<std::uint8_t>(8U << (from.take<std::uint8_t>() % 4U)),
                        static_cast<std::uint16_t>(from.one_in(8) ? from.take<std::uint16_t>() : 1U)};
    tensor.what.byte_offset = from.one_in(4) ? from.take<std::uint64_t>() : 0;
    const bool has_package = !from.one_in(2);
    try {
        const array made = exchange::from_dlpack(
            exchange::dlpack_tensor(&tensor),
            has_package ? std::make_shared<test::library_without_queues>() : std::shared_ptr<package>());
        ++seen.taken;
        // Its description is consistent.
        if (made.size() < 0 || made.dimensions() > shape.size() || made.to_string().empty()) {
            std::abort();
        }
    } catch (const error&) {
        ++seen.refused;
    }
    runtime::reaper::wait_until_empty();
    if (deleted != 1) {
        std::abort();
    }
}

}  // namespace weir::fuzz
