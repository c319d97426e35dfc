#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace weir::trace {

/// Appends JSON to a text. Does not use a document object: logs are large and are written once, in the order in which the fields are
/// documented. The caller must make sure that brackets match and that members of objects have keys.
class json_writer {
public:
    explicit json_writer(std::string& out) noexcept : out_(&out) {}

    json_writer& open(char bracket) {
        separate();
        *out_ += bracket;
        first_ = true;
        return *this;
    }
    json_writer& close(char bracket) {
        *out_ += bracket;
        first_ = false;
        return *this;
    }
    /// `name` must need no escapes.
    json_writer& key(std::string_view name) {
        separate();
        (((*out_ += '"') += name) += "\":");
        first_ = true;
        return *this;
    }
    /// Replaces bytes that are not UTF-8, and escapes '<', so that the text can stand in a page.
    json_writer& value(std::string_view text);
    json_writer& value(const char* text) { return value(std::string_view(text)); }
    json_writer& value(bool truth) { return raw(truth ? "true" : "false"); }
    template <std::integral Integer>
        requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>)
    json_writer& value(Integer number) { return raw(std::to_string(number)); }
    /// Adds a value that is JSON already.
    json_writer& raw(std::string_view json) {
        separate();
        *out_ += json;
        return *this;
    }

    template <class T>
    json_writer& field(std::string_view name, const T& of) {
        return key(name).value(of);
    }

private:
    void separate() {
        if (!first_) {
            *out_ += ',';
        }
        first_ = false;
    }

    std::string* out_;
    bool first_ = true;
};

}  // namespace weir::trace
