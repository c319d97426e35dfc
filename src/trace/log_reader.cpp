#include "trace/log_reader.hpp"

#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "observe/observer.hpp"
#include "order/box.hpp"
#include "trace/log_writer.hpp"
#include "trace/names.hpp"
#include "weir/access.hpp"
#include "weir/detail/site.hpp"
#include "weir/error.hpp"
#include "weir/ordering.hpp"

namespace weir::trace {

namespace {

using nlohmann::json;

/// What is wrong with a line; the caller adds the line's number.
struct malformed {
    std::string why;
};

/// The fields of one JSON object, with errors that name the field.
class object {
public:
    object(const json& of, log& kept) : of_(&of), kept_(&kept) {
        if (!of.is_object()) {
            throw malformed{"expected an object"};
        }
    }

    [[nodiscard]] const json& field(const char* name) const {
        const auto found = of_->find(name);
        if (found == of_->end()) {
            throw malformed{std::string("the field \"") + name + "\" is missing"};
        }
        return *found;
    }
    [[nodiscard]] std::uint64_t number(const char* name) const {
        const json& value = field(name);
        if (!value.is_number_unsigned()) {
            throw malformed{std::string("\"") + name + "\" is no number from 0"};
        }
        return value.get<std::uint64_t>();
    }
    /// 0 if the field is missing.
    [[nodiscard]] std::uint64_t number_or_none(const char* name) const {
        return of_->contains(name) ? number(name) : 0;
    }
    [[nodiscard]] std::chrono::nanoseconds time(const char* name) const {
        const json& value = field(name);
        if (!value.is_number_integer()) {
            throw malformed{std::string("\"") + name + "\" is no whole number"};
        }
        return std::chrono::nanoseconds(value.get<std::int64_t>());
    }
    [[nodiscard]] bool truth(const char* name) const {
        const json& value = field(name);
        if (!value.is_boolean()) {
            throw malformed{std::string("\"") + name + "\" is neither true nor false"};
        }
        return value.get<bool>();
    }
    [[nodiscard]] bool truth_or(const char* name, bool missing) const {
        return of_->contains(name) ? truth(name) : missing;
    }
    [[nodiscard]] const std::string& text(const char* name) const {
        const json& value = field(name);
        if (!value.is_string()) {
            throw malformed{std::string("\"") + name + "\" is no text"};
        }
        return value.get_ref<const std::string&>();
    }
    [[nodiscard]] const char* kept_text(const char* name) const { return kept_->keep(text(name)); }
    [[nodiscard]] const char* kept_text_or_none(const char* name) const {
        return of_->contains(name) ? kept_text(name) : "";
    }
    template <class Enum>
    [[nodiscard]] Enum name(const char* field_name) const {
        const std::string& given = text(field_name);
        const auto value = value_of<Enum>(given);
        if (!value) {
            throw malformed{std::string("\"") + field_name + "\" is \"" + given +
                            "\", which this version does not know"};
        }
        return *value;
    }
    /// `missing` if the field is missing, as in logs of earlier revisions.
    template <class Enum>
    [[nodiscard]] Enum name_or(const char* field_name, Enum missing) const {
        return of_->contains(field_name) ? name<Enum>(field_name) : missing;
    }
    [[nodiscard]] moment at(const char* name) const { return to_moment(field(name)); }
    template <class Item, class Make>
    [[nodiscard]] std::vector<Item> list(const char* name, Make&& make) const {
        const json& value = field(name);
        if (!value.is_array()) {
            throw malformed{std::string("\"") + name + "\" is no list"};
        }
        std::vector<Item> items;
        items.reserve(value.size());
        for (const json& one : value) {
            items.push_back(make(one));
        }
        return items;
    }
    [[nodiscard]] source_location place() const {
        const std::uint64_t line = number("line");
        if (line > UINT32_MAX) {
            throw malformed{"\"line\" is too large"};
        }
        return {kept_text("file"), kept_text("function"), static_cast<std::uint32_t>(line)};
    }
    [[nodiscard]] observe::observed_access access() const {
        return {number("resource"),
                number("bytes"),
                where(),
                name<order::access_mode>("mode"),
                name<ordering_mode>("ordering"),
                false,
                observe::certainty::definite,
                of_->contains("token") ? kept_text("token") : nullptr};
    }

    [[nodiscard]] order::footprint where() const {
        order::footprint range{number("begin"), number("end")};
        if (of_->contains("levels")) {
            range.shape = detail::shared_owner<order::box>(
                std::make_unique<order::box>(list<order::dimension>("levels", to_dimension), number("run")));
        }
        return range;
    }
    static order::dimension to_dimension(const json& pair) {
        const moment numbers = to_moment(pair);  // written in the same form
        if (numbers.stream == 0 || numbers.at < 2) {
            throw malformed{"a level is [stride, count], a stride of at least 1 and a count of at least 2"};
        }
        return {numbers.stream, numbers.at};
    }

    static moment to_moment(const json& pair) {
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_number_unsigned()) {
            throw malformed{"a moment is [stream, epoch]"};
        }
        return {pair[0].get<std::uint64_t>(), pair[1].get<std::uint64_t>()};
    }

private:
    const json* of_;
    log* kept_;
};

operation to_operation(const object& from, log& kept) {
    const char* const label = from.kept_text("label");
    operation one;
    one.at = from.at("at");
    one.from = {*label == '\0' ? nullptr : label, from.place()};
    one.kind = from.name<runtime::work_kind>("kind");
    one.accesses =
        from.list<observe::observed_access>("accesses", [&](const json& item) { return object(item, kept).access(); });
    one.after = from.list<moment>("after", object::to_moment);
    one.waits = from.list<issued_wait>("waits", [&](const json& item) {
        const object wait(item, kept);
        return issued_wait{wait.at("target"), wait.name<order::reason>("reason"), wait.truth("for_check")};
    });
    one.elisions = from.list<elided_wait>("elisions", [&](const json& item) {
        const object elided(item, kept);
        return elided_wait{elided.at("target"), elided.name<order::reason>("reason"),
                           elided.name<order::witness_kind>("because"), elided.at("witness")};
    });
    return one;
}

news to_news(const std::string& type, const object& from, log& kept) {
    if (type == "operation") {
        return to_operation(from, kept);
    }
    if (type == "execution") {
        return execution{from.at("at"), from.time("start"), from.time("end"),
                         from.name_or<clock_kind>("clock", clock_kind::steady)};
    }
    if (type == "failure") {
        return failure{from.at("at")};
    }
    if (type == "stream") {
        return stream_made{
            from.number("stream"),        from.kept_text("name"), from.kept_text("device"),       from.truth("new"),
            from.number_or_none("queue"), from.at("former"),      from.kept_text_or_none("order")};
    }
    if (type == "event") {
        return event_recorded{from.number("event"), from.at("at"), from.place()};
    }
    if (type == "stream_wait") {
        const observe::wait_made asked =
            from.truth("issued") ? observe::wait_made::issued : observe::wait_made::implied;
        return stream_wait{from.at("at"), from.at("target"), from.number("event"),
                           from.truth_or("by_device", false) ? observe::wait_made::by_device : asked, from.place()};
    }
    if (type == "host_wait") {
        return host_wait{from.at("target"), from.place()};
    }
    if (type == "host_access") {
        return host_access{from.access(), from.place()};
    }
    if (type == "allocation") {
        return allocation{from.number("resource"), from.number("bytes"),  from.kept_text("device"),
                          from.number("address"),  from.number("stream"), from.place()};
    }
    if (type == "drop") {
        return drop{from.number("resource")};
    }
    throw malformed{"there are no records of type \"" + type + "\""};
}

/// Reads one line into `into`. Returns whether it was the last one.
bool read_line(const std::string& line, bool is_header, log& into) {
    const json parsed = json::parse(line, nullptr, false);
    if (parsed.is_discarded()) {
        throw malformed{"this is no JSON"};
    }
    const object from(parsed, into);
    if (is_header) {
        if (from.text("format") != "weirlog") {
            throw malformed{"this is no evidence log"};
        }
        if (from.number("version") != log_version) {
            throw malformed{"version " + std::to_string(from.number("version")) + " of the format is not known, only " +
                            std::to_string(log_version) + ": write the log again with this version of Weir"};
        }
        (void)from.number_or_none("revision");
        return false;
    }
    const std::string& type = from.text("type");
    if (type != "end") {
        into.records.push_back({from.time("t"), to_news(type, from, into)});
        return false;
    }
    if (from.number("records") != into.records.size()) {
        throw malformed{"the log has " + std::to_string(into.records.size()) + " records and says that it has " +
                        std::to_string(from.number("records"))};
    }
    into.lost = from.number("lost");
    return true;
}

}  // namespace

log read_log(std::istream& from, std::string_view name) {
    log read;
    std::size_t number = 0;
    const auto fail = [&](const std::string& why) {
        throw argument_error(std::string(name) + ":" + std::to_string(number) + ": " + why);
    };
    bool ended = false;
    for (std::string line; std::getline(from, line);) {
        ++number;
        if (ended) {
            fail("nothing may follow the end");
        }
        try {
            ended = read_line(line, number == 1, read);
        } catch (const malformed& wrong) {
            fail(wrong.why);
        }
    }
    if (!ended) {
        fail("the log ends here without its end record: it was cut short, or the program was killed while writing it");
    }
    return read;
}

}  // namespace weir::trace
