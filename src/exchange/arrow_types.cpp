#include "exchange/arrow_types.hpp"

#include <array>
#include <string>
#include <string_view>

#include "weir/error.hpp"

namespace weir::exchange {

namespace {

struct arrow_type {
    dtype type;
    const char* format;
};

/// Types with the same layout in Arrow and Weir.
constexpr std::array<arrow_type, 11> arrow_types{{{dtype::int8, "c"},
                                                  {dtype::uint8, "C"},
                                                  {dtype::int16, "s"},
                                                  {dtype::uint16, "S"},
                                                  {dtype::int32, "i"},
                                                  {dtype::uint32, "I"},
                                                  {dtype::int64, "l"},
                                                  {dtype::uint64, "L"},
                                                  {dtype::float16, "e"},
                                                  {dtype::float32, "f"},
                                                  {dtype::float64, "g"}}};

/// Describes a schema that is no column of numbers, and what to do.
std::string arrow_refusal(std::string_view format) {
    const auto starts = [&](std::string_view with) { return format.substr(0, with.size()) == with; };
    if (starts("+")) {
        return "is nested (format \"" + std::string(format) + "\"): pass its columns one by one";
    }
    if (starts("u") || starts("U") || starts("vu")) {
        return "has texts, and weir has arrays of numbers";
    }
    if (starts("z") || starts("Z") || starts("w:") || starts("vz")) {
        return "has binary data, and weir has arrays of numbers";
    }
    if (starts("t")) {
        return "has dates or times (format \"" + std::string(format) + "\"): cast it to integers first";
    }
    if (starts("d:")) {
        return "has decimal numbers: cast it to float64 first";
    }
    if (format == "n") {
        return "has nulls alone, and weir has no nulls";
    }
    return "has elements of the format \"" + std::string(format) + "\", which weir does not know";
}

}  // namespace

const char* arrow_format_of(dtype type) {
    for (const arrow_type& one : arrow_types) {
        if (one.type == type) {
            return one.format;
        }
    }
    if (type == dtype::bool_) {
        throw exchange_error(
            "Arrow packs elements of bool, a bit each, and weir has a byte for each: export x.astype(\"uint8\")");
    }
    throw exchange_error("Arrow has no elements of " + name_of(type) + ": use DLPack, or convert them first");
}

dtype arrow_dtype_of(const arrow::schema& type) {
    if (type.release == nullptr) {
        throw exchange_error("an Arrow schema was released: ask the producer for a new one");
    }
    if (type.format == nullptr) {
        throw exchange_error("an Arrow schema has no format");
    }
    if (type.dictionary != nullptr) {
        throw exchange_error("an Arrow column is dictionary-encoded: decode it first (pyarrow: x.dictionary_decode())");
    }
    const std::string_view format(type.format);
    if (format == "b") {
        return dtype::bool_;
    }
    for (const arrow_type& one : arrow_types) {
        if (format == one.format) {
            if (type.n_children != 0) {
                throw exchange_error("an Arrow column of numbers says that it has " + std::to_string(type.n_children) +
                                     " children");
            }
            return one.type;
        }
    }
    throw exchange_error("an Arrow column " + arrow_refusal(format));
}

bool arrow_needs_copy(const arrow::schema& type) noexcept {
    return type.release != nullptr && type.format != nullptr && std::string_view(type.format) == "b";
}

}  // namespace weir::exchange
