#include "finding.hpp"

#include <utility>

namespace weir_verify {

namespace {

const char* word_for(severity of) {
    switch (of) {
        case severity::violation:
            return "violation";
        case severity::note:
            return "note";
        case severity::information:
            break;
    }
    return "information";
}

std::string describe(const party& one, const std::string& log) {
    std::string said = one.label == nullptr || one.label->empty() ? std::string() : "\"" + *one.label + "\" ";
    if (one.from.file != nullptr && !one.from.file->empty()) {
        said += "at " + *one.from.file + ":" + std::to_string(one.from.line) + " ";
    }
    if (one.at.stream != 0) {
        said += "on stream " + std::to_string(one.at.stream);
        if (one.stream != nullptr && !one.stream->empty()) {
            said += " \"" + *one.stream + "\"";
        }
        said += ", epoch " + std::to_string(one.at.epoch) + " ";
    }
    return said + "(" + log + ":" + std::to_string(one.line) + ")";
}

}  // namespace

void findings::add(finding one) {
    ++counts_[static_cast<std::size_t>(one.weight)];
    const auto spot_of = [](const party& p) { return spot{p.from.file, p.from.line}; };
    const auto [known, is_new] =
        index_.try_emplace({one.kind, spot_of(one.here), one.other ? spot_of(*one.other) : spot{}}, all_.size());
    if (is_new) {
        all_.push_back(std::move(one));
    } else {
        ++all_[known->second].times;
    }
}

std::string to_string(const finding& one, const std::string& log) {
    std::string said = std::string(word_for(one.weight)) + ": " + one.kind + ": " + one.what;
    if (one.times > 1) {
        said += " (" + std::to_string(one.times) + " times, first here)";
    }
    said += "\n    here:    " + describe(one.here, log);
    if (one.other) {
        said += "\n    earlier: " + describe(*one.other, log);
    }
    if (!one.missing.empty()) {
        said += "\n    missing: " + one.missing;
    }
    return said + "\n";
}

}  // namespace weir_verify
