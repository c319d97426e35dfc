#include "reader.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace weir_verify {

namespace {

using nlohmann::json;

/// What is wrong with a line; the reader adds the line number.
struct flaw {
    std::string why;
};

const json& field(const json& of, const char* name) {
    const auto found = of.find(name);
    if (found == of.end()) {
        throw flaw{std::string("the field \"") + name + "\" is missing"};
    }
    return *found;
}

std::uint64_t number(const json& of, const char* name) {
    const json& value = field(of, name);
    if (!value.is_number_unsigned()) {
        throw flaw{std::string("\"") + name + "\" is no number from 0"};
    }
    return value.get<std::uint64_t>();
}

std::int64_t time(const json& of, const char* name) {
    const json& value = field(of, name);
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
        throw flaw{std::string("\"") + name + "\" is no time"};
    }
    return value.get<std::int64_t>();
}

bool truth(const json& of, const char* name) {
    const json& value = field(of, name);
    if (!value.is_boolean()) {
        throw flaw{std::string("\"") + name + "\" is neither true nor false"};
    }
    return value.get<bool>();
}

const std::string& words(const json& of, const char* name) {
    const json& value = field(of, name);
    if (!value.is_string()) {
        throw flaw{std::string("\"") + name + "\" is no text"};
    }
    return value.get_ref<const std::string&>();
}

/// The index of a text in a list of allowed ones.
std::size_t one_of(const json& of, const char* name, std::initializer_list<const char*> allowed) {
    const std::string& given = words(of, name);
    std::size_t index = 0;
    for (const char* one : allowed) {
        if (given == one) {
            return index;
        }
        ++index;
    }
    throw flaw{std::string("\"") + name + "\" is \"" + given + "\", which this version does not know"};
}

std::pair<std::uint64_t, std::uint64_t> pair_of(const json& value, const char* meaning) {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned()) {
        throw flaw{std::string(meaning) + " are two numbers"};
    }
    return {value[0].get<std::uint64_t>(), value[1].get<std::uint64_t>()};
}

moment to_moment(const json& value) {
    const auto [stream, epoch] = pair_of(value, "a moment's stream and epoch");
    return {stream, epoch};
}

template <class Item, class Make>
std::vector<Item> list(const json& of, const char* name, Make&& make) {
    const json& value = field(of, name);
    if (!value.is_array()) {
        throw flaw{std::string("\"") + name + "\" is no list"};
    }
    std::vector<Item> items;
    items.reserve(value.size());
    for (const json& one : value) {
        items.push_back(make(one));
    }
    return items;
}

const json& object(const json& one) {
    if (!one.is_object()) {
        throw flaw{"expected an object"};
    }
    return one;
}

region to_region(const json& of) {
    region one{number(of, "begin"), number(of, "end"), 0, {}};
    if (of.contains("levels")) {
        one.levels = list<level>(of, "levels", [](const json& value) {
            const auto [stride, count] = pair_of(value, "a level's stride and count");
            return level{stride, count};
        });
        one.run = number(of, "run");
    }
    if (const std::string wrong = flaw_of(one); !wrong.empty()) {
        throw flaw{wrong};
    }
    return one;
}

access to_access(const json& of) {
    access one;
    one.resource = number(of, "resource");
    one.bytes = number(of, "bytes");
    one.where = to_region(of);
    one.writes = one_of(of, "mode", {"read", "write"}) == 1;
    one.manual = one_of(of, "ordering", {"automatic", "manual"}) == 1;
    return one;
}

bool is_for_reuse(const json& of) {
    return one_of(of, "reason",
                  {"read_after_write", "write_after_read", "write_after_write", "dependency", "entry", "exit",
                   "reuse"}) == 6;
}

elision to_elision(const json& of) {
    return {to_moment(field(of, "target")),
            static_cast<witness_kind>(one_of(of, "because", {"same_stream", "known", "other_wait", "complete"})),
            to_moment(field(of, "witness")), is_for_reuse(of)};
}

issued_wait to_wait(const json& of) {
    static_cast<void>(truth(of, "for_check"));
    return {to_moment(field(of, "target")), is_for_reuse(of)};
}

/// Turns a line's object into a record.
class translator {
public:
    translator(const json& from, text_store& texts) : from_(&from), texts_(&texts) {}

    [[nodiscard]] news to_news() const {
        const std::string& type = words(*from_, "type");
        if (type == "operation") {
            return operation();
        }
        if (type == "execution") {
            const execution_record one{at("at"), time(*from_, "start"), time(*from_, "end")};
            if (from_->contains("clock")) {  // not in revision 0
                static_cast<void>(one_of(*from_, "clock", {"steady", "virtual"}));
            }
            if (one.start > one.end) {
                throw flaw{"\"end\" is before \"start\""};
            }
            return one;
        }
        if (type == "failure") {
            return failure_record{at("at")};
        }
        if (type == "stream") {
            return stream_record{count("stream"),
                                 kept("name"),
                                 kept("device"),
                                 truth(*from_, "new"),
                                 at("former"),
                                 from_->contains("queue") ? count("queue") : 0,
                                 from_->contains("order") ? kept("order") : nullptr};
        }
        if (type == "event") {
            return event_record{count("event"), at("at"), from()};
        }
        if (type == "stream_wait") {
            return stream_wait_record{at("at"),       at("target"),
                                      count("event"), truth(*from_, "issued"),
                                      from(),         from_->contains("by_device") && truth(*from_, "by_device")};
        }
        if (type == "host_wait") {
            return host_wait_record{at("target"), from()};
        }
        if (type == "host_access") {
            return host_access_record{to_access(*from_), from()};
        }
        if (type == "allocation") {
            return allocation();
        }
        if (type == "drop") {
            return drop_record{count("resource")};
        }
        throw flaw{"there are no records of type \"" + type + "\""};
    }

private:
    [[nodiscard]] std::uint64_t count(const char* name) const { return number(*from_, name); }
    [[nodiscard]] moment at(const char* name) const { return to_moment(field(*from_, name)); }
    [[nodiscard]] text kept(const char* name) const { return texts_->keep(words(*from_, name)); }
    [[nodiscard]] place from() const {
        const std::uint64_t line = count("line");
        if (line > UINT32_MAX) {
            throw flaw{"\"line\" is too large"};
        }
        return {kept("file"), kept("function"), static_cast<std::uint32_t>(line)};
    }

    [[nodiscard]] operation_record operation() const {
        operation_record one;
        one.at = at("at");
        one.label = kept("label");
        one.from = from();
        one.is_gate = one_of(*from_, "kind", {"device", "host_task", "copy", "gate", "moment"}) == 3;
        one.accesses = list<access>(*from_, "accesses", [](const json& item) { return to_access(object(item)); });
        one.after = list<moment>(*from_, "after", to_moment);
        one.waits = list<issued_wait>(*from_, "waits", [](const json& item) { return to_wait(object(item)); });
        one.elisions = list<elision>(*from_, "elisions", [](const json& item) { return to_elision(object(item)); });
        if (one.is_gate && !(one.accesses.empty() && one.after.empty())) {
            throw flaw{"a gate does nothing but wait"};
        }
        return one;
    }

    [[nodiscard]] allocation_record allocation() const {
        const allocation_record one{count("resource"), count("bytes"),  kept("device"),
                                    count("address"),  count("stream"), from()};
        if (one.bytes > most_bytes || one.address > UINT64_MAX - one.bytes) {
            throw flaw{"no memory is that large"};
        }
        return one;
    }

    const json* from_;
    text_store* texts_;
};

void expect_header(const json& from) {
    if (words(from, "format") != "weirlog") {
        throw flaw{"this is no evidence log"};
    }
    if (number(from, "version") != log_reader::version) {
        throw flaw{"version " + std::to_string(number(from, "version")) + " of the format is not known, only " +
                   std::to_string(log_reader::version)};
    }
    if (from.contains("revision")) {  // otherwise 0
        static_cast<void>(number(from, "revision"));
    }
    static_cast<void>(one_of(from, "clock", {"steady"}));
}

}  // namespace

bool log_reader::read_line() {
    if (!std::getline(*from_, line_)) {
        if (from_->bad()) {
            throw malformed_log(number_ + 1, "the file cannot be read");
        }
        return false;
    }
    ++number_;
    if (from_->eof()) {
        throw malformed_log(number_, "the line is not ended: the log was cut short");
    }
    return true;
}

std::optional<record> log_reader::next() {
    while (read_line()) {
        try {
            const json parsed = json::parse(line_, nullptr, false);
            if (parsed.is_discarded()) {
                throw flaw{"this is no JSON"};
            }
            object(parsed);
            if (number_ == 1) {
                expect_header(parsed);
                continue;
            }
            if (words(parsed, "type") == "end") {
                lost_ = number(parsed, "lost");
                if (number(parsed, "records") != records_) {
                    throw flaw{"the log has " + std::to_string(records_) + " records and says that it has " +
                               std::to_string(number(parsed, "records"))};
                }
                if (read_line()) {
                    throw flaw{"nothing may follow the end"};
                }
                return std::nullopt;
            }
            const std::int64_t when = time(parsed, "t");
            if (when < time_) {
                throw flaw{"the time goes back"};
            }
            time_ = when;
            ++records_;
            return record{number_, translator(parsed, *texts_).to_news()};
        } catch (const flaw& wrong) {
            throw malformed_log(number_, wrong.why);
        }
    }
    throw malformed_log(number_,
                        "the log ends here without its end record: it was cut short, or the program was killed "
                        "while writing it");
}

}  // namespace weir_verify
