#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "exchange/arrow_types.hpp"
#include "exchange/exported_columns.hpp"
#include "weir/arrow.hpp"
#include "weir/dlpack.hpp"
#include "weir/error.hpp"
#include "weir/native_event.hpp"
#include "weir/shape.hpp"
#include "weir/sharing.hpp"

namespace weir::exchange {

namespace {

constexpr std::int64_t bits_in_a_byte = 8;

/// A producer whose memory never changes: Weir orders nothing with it.
class arrow_producer final : public package {
public:
    explicit arrow_producer(std::shared_ptr<package> of) : of_(std::move(of)) {}
    [[nodiscard]] std::string_view name() const noexcept override {
        return of_ ? of_->name() : std::string_view("an Arrow producer");
    }
    [[nodiscard]] std::optional<stream> current_stream(device /*of*/) override { return std::nullopt; }

private:
    std::shared_ptr<package> of_;
};

[[noreturn]] void refuse_column(const std::string& why) { throw exchange_error("an Arrow column " + why); }

/// Throws unless the counts are possible for a column of numbers.
void expect_column_of_numbers(const arrow::device_array& column) {
    const arrow::array& what = column.array;
    if (what.length < 0 || what.offset < 0) {
        refuse_column("has the length " + std::to_string(what.length) + " and the offset " +
                      std::to_string(what.offset));
    }
    if (what.null_count < -1 || what.null_count > what.length) {
        refuse_column("of " + std::to_string(what.length) + " elements says that " + std::to_string(what.null_count) +
                      " of them are null");
    }
    if (what.n_buffers != 2 || what.buffers == nullptr) {
        refuse_column("of numbers has " + std::to_string(what.n_buffers) + " buffers, where two are right");
    }
    if (what.n_children != 0 || what.dictionary != nullptr) {
        refuse_column("of numbers has children or a dictionary, and its schema has none");
    }
}

/// Whether bit `at` is set.
bool is_set(const void* bits, std::int64_t at) noexcept {
    const auto byte = std::to_integer<unsigned>(static_cast<const std::byte*>(bits)[at / bits_in_a_byte]);
    return ((byte >> static_cast<unsigned>(at % bits_in_a_byte)) & 1U) != 0;
}

/// Throws exchange_error if an element is null, or might be.
void expect_no_nulls(const arrow::array& what, bool host_reads) {
    std::int64_t nulls = what.null_count;
    const void* const validity = what.buffers[0];
    if (nulls == 0 || what.length == 0 || validity == nullptr) {
        return;
    }
    if (nulls < 0) {
        if (!host_reads) {
            refuse_column(
                "on a device may have nulls: its producer has not counted them, and weir has no nulls; fill "
                "them, or have them counted, first");
        }
        nulls = 0;
        for (std::int64_t i = 0; i < what.length; ++i) {
            nulls += is_set(validity, what.offset + i) ? 0 : 1;
        }
    }
    if (nulls != 0) {
        refuse_column("has " + std::to_string(nulls) +
                      " nulls, and weir has none: fill them first (pyarrow: "
                      "x.fill_null(0))");
    }
}

/// Throws exchange_error unless the column's elements and its validity bitmap fit into the address space. Reads none of them.
/// `item`: the size of an element; none: an element is a bit.
void expect_possible_size(const arrow::array& what, std::optional<std::int64_t> item) {
    constexpr std::int64_t addresses = std::int64_t{1} << 57;  // size of a process's address space
    std::int64_t count = 0;
    if (__builtin_add_overflow(what.offset, what.length, &count)) {
        refuse_column("says that it has more elements than can be counted");
    }
    if (what.length != 0 && what.buffers[1] == nullptr) {
        refuse_column("has " + std::to_string(what.length) + " elements and no memory");
    }
    const std::int64_t bytes_of_bits = count / bits_in_a_byte + (count % bits_in_a_byte == 0 ? 0 : 1);
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count, item.value_or(1), &bytes) || bytes > addresses) {
        refuse_column("says that its elements take more memory than there are addresses");
    }
    const auto fits = [](const void* first, std::int64_t size) {
        std::uintptr_t end = 0;
        return !__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(first), static_cast<std::uintptr_t>(size),
                                       &end);
    };
    if (!fits(what.buffers[1], item ? bytes : bytes_of_bits) || !fits(what.buffers[0], bytes_of_bits)) {
        refuse_column("says that its elements take more memory than there are addresses");
    }
}

/// Copies bits to bytes, since Weir stores a bool in a byte.
weir::array unpacked(const arrow::array& what) {
    weir::array made = empty({what.length}, dtype::bool_, current_stream(cpu()));
    if (what.length != 0) {
        auto to = made.write<bool>();
        for (std::int64_t i = 0; i < what.length; ++i) {
            to[static_cast<std::size_t>(i)] = is_set(what.buffers[1], what.offset + i);
        }
    }
    return made;
}

std::optional<device> device_of_column(const arrow::device_array& column) {
    const auto type = static_cast<dlpack::device_type>(column.device_type);
    if (type == dlpack::device_type::cpu || type == dlpack::device_type::cuda_host) {
        return cpu();  // whatever the device number is: the CPU has none
    }
    if (column.device_id < 0 || column.device_id > std::numeric_limits<std::int32_t>::max()) {
        return std::nullopt;
    }
    return device_of({type, static_cast<std::int32_t>(column.device_id)});
}

}  // namespace

weir::array from_arrow(arrow_array column, const arrow::schema& type, std::shared_ptr<package> from,
                       source_location where) {
    if (!column) {
        throw exchange_error("an Arrow column was released: ask the producer for a new one");
    }
    const dtype elements = arrow_dtype_of(type);
    expect_column_of_numbers(*column);
    const std::optional<device> on = device_of_column(*column);
    if (!on) {
        refuse_column("is on a device of type " + std::to_string(column->device_type) + " with the number " +
                      std::to_string(column->device_id) +
                      ", which weir does not know: copy it to the CPU or to a CUDA device first");
    }
    const bool host_reads = *on == cpu();
    const arrow::array what = column->array;
    void* const* const written = static_cast<void* const*>(column->sync_event);
    if (written != nullptr && on->kind() != device_kind::cuda &&
        static_cast<dlpack::device_type>(column->device_type) != dlpack::device_type::cuda_host) {
        refuse_column("on " + std::string(on->name()) + " names an event, and there are none");
    }
    const auto item = static_cast<std::int64_t>(size_of(elements));
    expect_possible_size(what, elements == dtype::bool_ ? std::nullopt : std::optional(item));
    expect_no_nulls(what, host_reads && written == nullptr);
    if (elements == dtype::bool_) {
        if (!host_reads || written != nullptr) {
            refuse_column(
                "of bool has a bit for each element, and weir a byte: it can be copied on the CPU alone; cast "
                "it to uint8 first");
        }
        return unpacked(what);
    }
    if (what.length == 0) {
        return {weir::detail::key, elements, shape({0}), *on};
    }
    auto* const at = static_cast<std::byte*>(const_cast<void*>(what.buffers[1])) + what.offset * item;
    const auto bytes = static_cast<std::size_t>(what.length * item);
    void* const written_event = written != nullptr ? *written : nullptr;
    const buffer ours = exported_column_memory::found_at(*on, at, bytes);
    const buffer memory = ours ? ours
                               : import_live(at, bytes, *on, std::make_shared<arrow_producer>(std::move(from)),
                                             std::move(column), package_use::reads, import_access::read_only, where);
    if (written_event != nullptr) {
        used_up_to(memory, written_event, on->kind() == device_kind::cuda ? *on : cuda(0), package_use::writes, {},
                   where);
    }
    const auto offset = static_cast<std::size_t>(at - memory.device_data());
    return {memory, elements, shape({what.length}), offset};
}

}  // namespace weir::exchange
