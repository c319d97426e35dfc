#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "runtime/diagnostics/debug_log.hpp"
#include "weir/memory_resource.hpp"

namespace weir::memory {

namespace {

/// `text` as a string of JSON.
std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            out += code.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

void to_standard_error(std::string_view line) {
    // One call for each line, so that lines of several threads do not mix.
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

class logging_resource final : public memory_resource {
public:
    logging_resource(std::function<void(std::string_view)> sink, resource_ptr upstream)
        : sink_(std::move(sink)), upstream_(std::move(upstream)) {}

private:
    buffer make(std::size_t bytes, std::size_t alignment, const stream_ref& on, const source_location& where) override {
        const std::string place = ",\"bytes\":" + std::to_string(bytes) +
                                  ",\"device\":" + in_quotes(on.device().name()) +
                                  ",\"stream\":" + in_quotes(on.name()) + ",\"file\":" + in_quotes(where.file) +
                                  ",\"line\":" + std::to_string(where.line) + "}";
        try {
            buffer made = allocate_from(upstream_, bytes, alignment, on, where);
            write("{\"event\":\"allocate\",\"id\":" + std::to_string(made.unique_id()) + place);
            return made;
        } catch (...) {
            write("{\"event\":\"fail\"" + place);
            throw;
        }
    }
    void dropped(std::uint64_t id, std::size_t bytes) noexcept override {
        std::array<char, 96> line{};  // large enough for the line; a drop must not allocate
        std::snprintf(line.data(), line.size(), R"({"event":"drop","id":%llu,"bytes":%llu})",
                      static_cast<unsigned long long>(id), static_cast<unsigned long long>(bytes));
        write(line.data());
    }
    void write(std::string_view line) const noexcept {
        try {
            sink_(line);
        } catch (...) {
            runtime::debug_log("the sink of weir::memory::logging threw");
        }
    }

    const std::function<void(std::string_view)> sink_;
    const resource_ptr upstream_;
};

}  // namespace

resource_ptr logging(std::function<void(std::string_view)> sink, resource_ptr upstream) {
    return std::make_shared<logging_resource>(sink ? std::move(sink) : to_standard_error, std::move(upstream));
}

}  // namespace weir::memory
