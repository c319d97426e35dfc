#include "trace/log_writer.hpp"

#include <ostream>
#include <string>

#include "observe/observer.hpp"
#include "order/box.hpp"
#include "trace/json_writer.hpp"
#include "trace/names.hpp"
#include "weir/detail/site.hpp"
#include "weir/source_location.hpp"

namespace weir::trace {

namespace {

/// Appends the fields of one record, `type` first.
class fields {
public:
    explicit fields(json_writer& to) noexcept : to_(&to) {}

    void operator()(const stream_made& one) const {
        to_->field("type", "stream").field("stream", one.stream).field("name", one.name).field("device", one.device);
        to_->field("new", one.is_new);
        at("former", one.former);
        if (one.queue != 0) {
            to_->field("queue", one.queue);
        }
        if (*one.order != '\0') {
            to_->field("order", one.order);
        }
    }

    void operator()(const operation& one) const {
        to_->field("type", "operation");
        at("at", one.at);
        to_->field("label", one.from.label == nullptr ? "" : one.from.label);
        place(one.from.where);
        to_->field("kind", name_of(one.kind));
        to_->key("accesses").open('[');
        for (const auto& access : one.accesses) {
            to_->open('{');
            accessed(access);
            to_->close('}');
        }
        to_->close(']').key("after").open('[');
        for (const moment& after : one.after) {
            pair(after);
        }
        to_->close(']').key("waits").open('[');
        for (const issued_wait& wait : one.waits) {
            to_->open('{');
            at("target", wait.target);
            to_->field("reason", name_of(wait.why)).field("for_check", wait.for_check).close('}');
        }
        to_->close(']').key("elisions").open('[');
        for (const elided_wait& elided : one.elisions) {
            to_->open('{');
            at("target", elided.target);
            to_->field("reason", name_of(elided.why)).field("because", name_of(elided.kind));
            at("witness", elided.witness);
            to_->close('}');
        }
        to_->close(']');
    }

    void operator()(const event_recorded& one) const {
        to_->field("type", "event").field("event", one.event);
        at("at", one.at);
        place(one.from);
    }

    void operator()(const stream_wait& one) const {
        to_->field("type", "stream_wait");
        at("at", one.at);
        at("target", one.target);
        to_->field("event", one.event).field("issued", one.how == observe::wait_made::issued);
        if (one.how == observe::wait_made::by_device) {
            to_->field("by_device", true);
        }
        place(one.from);
    }

    void operator()(const host_wait& one) const {
        to_->field("type", "host_wait");
        at("target", one.target);
        place(one.from);
    }

    void operator()(const host_access& one) const {
        to_->field("type", "host_access");
        accessed(one.access);
        place(one.from);
    }

    void operator()(const allocation& one) const {
        to_->field("type", "allocation").field("resource", one.resource).field("bytes", one.bytes);
        to_->field("device", one.device).field("address", one.address).field("stream", one.stream);
        place(one.from);
    }

    void operator()(const drop& one) const { to_->field("type", "drop").field("resource", one.resource); }

    void operator()(const failure& one) const {
        to_->field("type", "failure");
        at("at", one.at);
    }

    void operator()(const execution& one) const {
        to_->field("type", "execution");
        at("at", one.at);
        to_->field("start", one.start.count()).field("end", one.end.count());
        if (one.by != clock_kind::steady) {
            to_->field("clock", name_of(one.by));
        }
    }

private:
    void pair(const moment& one) const { to_->open('[').value(one.stream).value(one.at).close(']'); }
    void at(std::string_view name, const moment& one) const {
        to_->key(name);
        pair(one);
    }
    void place(const source_location& where) const {
        to_->field("file", where.file).field("line", where.line).field("function", where.function);
    }
    void box(const order::box& shape) const {
        to_->key("levels").open('[');
        for (const order::dimension& one : shape.dimensions()) {
            to_->open('[').value(one.stride).value(one.count).close(']');
        }
        to_->close(']').field("run", shape.run());
    }
    void accessed(const observe::observed_access& one) const {
        to_->field("resource", one.resource).field("bytes", one.bytes);
        to_->field("begin", one.where.begin).field("end", one.where.end);
        if (one.where.shape) {
            box(*one.where.shape);
        }
        to_->field("mode", name_of(one.mode)).field("ordering", name_of(one.ordering));
        if (one.token != nullptr) {
            to_->field("token", one.token);
        }
    }

    json_writer* to_;
};

}  // namespace

void write_log(std::ostream& to, const log& from) {
    std::string line;
    json_writer header(line);
    header.open('{').field("format", "weirlog").field("version", log_version).field("revision", log_revision);
    header.field("clock", "steady").close('}');
    to << line << '\n';
    for (const record& one : from.records) {
        line.clear();
        json_writer writer(line);
        writer.open('{').field("t", one.when.count());
        std::visit(fields(writer), one.what);
        writer.close('}');
        line += '\n';
        to << line;
    }
    line.clear();
    json_writer end(line);
    end.open('{').field("type", "end").field("records", from.records.size()).field("lost", from.lost).close('}');
    to << line << '\n';
}

}  // namespace weir::trace
