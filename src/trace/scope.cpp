#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "observe/observers.hpp"
#include "trace/collector.hpp"
#include "trace/log_writer.hpp"
#include "trace/perfetto_writer.hpp"
#include "trace/summary.hpp"
#include "trace/timeline_writer.hpp"
#include "weir/error.hpp"
#include "weir/trace.hpp"

namespace weir {

namespace {

using writer = void (*)(std::ostream&, const trace::log&);

writer writer_of(const std::filesystem::path& file) {
    const std::string ending = file.extension().string();
    if (ending == ".weirlog") {
        return trace::write_log;
    }
    if (ending == ".html") {
        return trace::write_timeline;
    }
    if (ending == ".json") {
        return trace::write_perfetto;
    }
    throw argument_error("cannot trace to \"" + file.string() +
                         "\": call it .weirlog (evidence log), .html (timeline) or .json (Perfetto)");
}

std::string reason() {
    const int code = errno;
    return code == 0 ? "unknown error" : std::strerror(code);
}

void create(const std::filesystem::path& file) {
    errno = 0;
    if (!std::ofstream(file, std::ios::binary | std::ios::trunc)) {
        throw argument_error("cannot trace to \"" + file.string() + "\": " + reason() +
                             ". Name a file in a folder that exists and that you may write to");
    }
}

/// Returns what went wrong; empty if nothing did.
std::string write(const std::filesystem::path& file, const trace::log& from) {
    errno = 0;
    std::ofstream to(file, std::ios::binary | std::ios::trunc);
    writer_of(file)(to, from);
    to.close();
    return to ? std::string() : "cannot write the trace \"" + file.string() + "\" in full: " + reason();
}

}  // namespace

trace_scope::trace_scope() { start({}); }

trace_scope::trace_scope(std::filesystem::path file) { start({std::move(file)}); }

trace_scope::trace_scope(std::initializer_list<std::filesystem::path> files) { start(files); }

trace_scope::trace_scope(std::vector<std::filesystem::path> files) { start(std::move(files)); }

void trace_scope::start(std::vector<std::filesystem::path> files) {
    for (const std::filesystem::path& file : files) {
        static_cast<void>(writer_of(file));
    }
    for (const std::filesystem::path& file : files) {
        create(file);
    }
    files_ = std::move(files);
    collector_ = std::make_unique<trace::collector>();
    observe::observers::add(*collector_);
    collector_->knows_all_streams();
}

trace_scope::~trace_scope() {
    try {
        close();
    } catch (const std::exception& failed) {
        std::cerr << "weir trace: " << failed.what() << '\n';
    }
}

void trace_scope::close() {
    if (!is_open_) {
        return;
    }
    is_open_ = false;
    observe::observers::remove(*collector_);
    std::string wrong;
    for (const std::filesystem::path& file : files_) {
        // The observer receives nothing any more, so no other thread waits for the lock.
        const std::string failure = collector_->read([&](const trace::log& kept) { return write(file, kept); });
        wrong += (wrong.empty() || failure.empty() ? "" : "; ") + failure;
    }
    if (!wrong.empty()) {
        throw file_error(wrong);
    }
}

trace_summary trace_scope::summary() const { return collector_->read(trace::summarise); }

}  // namespace weir
