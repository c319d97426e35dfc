#include "array/elements/kernel.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "array/cuda/source.hpp"
#include "array/elements/host_compiler.hpp"
#include "weir/error.hpp"

namespace weir::elements {

namespace {

/// Kernels that were compiled for a device, by their source. They are never unloaded, so that enqueued work need not
/// keep them.
class loaded_kernels {
public:
    static loaded_kernels& instance() {
        static auto* const one = new loaded_kernels;
        return *one;
    }

    backend::capability::function_handle find(const array_kernels::kernels& in, const std::string& source) {
        const std::pair wanted(&in, source);
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = all_.find(wanted); found != all_.end()) {
                return found->second.function;
            }
        }
        const std::string name = array_kernels::kernel_name;
        const backend::capability::compiled_program made =
            in.compile({source, name, array_kernels::compiler_options()});
        loaded_one one{in.load(made.image, "an element-wise kernel"), nullptr};
        one.function = one.code->find(made.symbol);
        if (one.function == nullptr) {
            throw device_error("a compiled element-wise kernel has no function " + made.symbol);
        }
        const std::lock_guard lock(mutex_);
        return all_.try_emplace(wanted, std::move(one)).first->second.function;
    }

private:
    struct loaded_one {
        std::unique_ptr<backend::capability::loaded_code> code;
        backend::capability::function_handle function;
    };
    detail::mutex mutex_;  ///< guards all_; a leaf in the lock order. Not held while a compiler runs
    std::map<std::pair<const array_kernels::kernels*, std::string>, loaded_one> all_;
};

/// The compiler's output about the first error: its line, and the lines that are indented below it. NVRTC names types there.
std::string_view first_error_in(const std::string& log) {
    const std::size_t at = log.find("error: ");
    if (at == std::string::npos) {
        return log;
    }
    std::size_t end = log.find('\n', at);
    while (end < log.size() && end + 1 < log.size() && (log[end + 1] == ' ' || log[end + 1] == '\t')) {
        end = log.find('\n', end + 1);
    }
    return std::string_view(log).substr(at, end - at);
}

/// Where `name` is in `text` as a whole word, or as the beginning of one that ends with `ending`; npos if nowhere.
std::size_t find_word(std::string_view text, const std::string& name, std::string_view ending) {
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const std::string word = name + std::string(ending);
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !is_part(text[at - 1])) && (!ending.empty() || end == text.size() || !is_part(text[end]))) {
            return at;
        }
    }
    return std::string::npos;
}

}  // namespace

const char* kept_label(const std::string& text) {
    static auto* const all = new std::set<std::string>;
    static auto* const lock = new detail::mutex;  // guards `all`; a leaf in the lock order
    const std::lock_guard held(*lock);
    return all->insert(text).first->c_str();
}

backend::capability::function_handle loaded_from(const array_kernels::kernels& in, const std::string& source) {
    return loaded_kernels::instance().find(in, source);
}

std::string compiler_log(const argument_error& of) {
    const std::string message = of.what();
    const std::string_view before = "does not compile: ";
    const std::size_t log = message.find(before);
    return log == std::string::npos ? message : message.substr(log + before.size());
}

std::string without_context(const std::string& log) {
    std::string kept;
    for (std::size_t start = 0; start < log.size();) {
        const std::size_t end = std::min(log.find('\n', start), log.size());
        const std::string line = log.substr(start, end - start);
        if (line.find(": In function") == std::string::npos && line.find(": At global scope") == std::string::npos) {
            kept += line + "\n";
        }
        start = end + 1;
    }
    return kept;
}

const element_parameter* read_output(const element_signature& of, const std::string& whole_log,
                                     const std::string& code) {
    const std::string_view log = first_error_in(whole_log);
    const auto first_in = [&](std::string_view text, std::string_view ending) {
        const element_parameter* found = nullptr;
        std::size_t first = std::string::npos;
        for (const element_parameter& one : of.outputs) {
            if (const std::size_t at = find_word(text, one.name, ending); at < first) {
                first = at;
                found = &one;
            }
        }
        return found;
    };
    const element_parameter* const named = first_in(log, write_only_ending);
    if (named != nullptr || log.find("selected deleted operator") == std::string_view::npos) {
        return named;
    }
    return first_in(code, {});
}

}  // namespace weir::elements

namespace weir::detail {

namespace {

/// The first line of the body that a compiler's log names: "body:2:5: error: ...", "body(2): error: ..." or, from NVRTC for
/// templates, "... at line 2 of body". 0: none.
std::size_t line_in(const std::string& log) {
    const std::string file = elements::body_file;
    if (const std::size_t at = log.find(" of " + file); at != std::string::npos) {
        const std::size_t start = log.find_last_not_of("0123456789", at - 1) + 1;
        if (start < at) {
            return std::stoul(log.substr(start, at - start));
        }
    }
    for (std::size_t at = log.find(file); at != std::string::npos; at = log.find(file, at + 1)) {
        std::size_t next = at + file.size();
        const bool is_start = at == 0 || std::isalnum(static_cast<unsigned char>(log[at - 1])) == 0;
        if (!is_start || next >= log.size() || (log[next] != ':' && log[next] != '(')) {
            continue;
        }
        std::size_t line = 0;
        for (++next; next < log.size() && std::isdigit(static_cast<unsigned char>(log[next])) != 0; ++next) {
            line = line * 10 + static_cast<std::size_t>(log[next] - '0');
        }
        if (line > 0) {
            return line;
        }
    }
    return 0;
}

/// The line `number` of a text, without spaces around it.
std::string line_of(const std::string& text, std::size_t number) {
    std::size_t start = 0;
    for (std::size_t line = 1; line < number && start != std::string::npos; ++line) {
        start = text.find('\n', start);
        start = start == std::string::npos ? start : start + 1;
    }
    if (start == std::string::npos) {
        return {};
    }
    std::string found = text.substr(start, text.find('\n', start) - start);
    found.erase(0, found.find_first_not_of(" \t"));
    return found;
}

/// The compiler's message about the first error.
std::string first_message(const std::string& log) {
    const std::string word = "error: ";
    const std::size_t at = log.find(word);
    return at == std::string::npos ? std::string()
                                   : log.substr(at + word.size(), log.find('\n', at) - at - word.size());
}

[[noreturn]] void refuse_body(const element_kernel& what, const std::string& compiler, const std::string& log) {
    const elements::element_text& text = what.text();
    const std::size_t line = line_in(log);
    const std::string code = line_of(text.body, line);
    std::string message = "the body of the element-wise kernel " + what.to_string();
    if (const elements::element_parameter* const output = elements::read_output(text.signature, log, code)) {
        message += line > 0
                       ? " reads the output " + output->name + " in line " + std::to_string(line) + ", \"" + code + "\""
                       : " reads the output " + output->name;
        throw argument_error(message + ", and it is declared to be written only: declare it \"inout " +
                             elements::to_string(*output) + "\", or read a variable of the body");
    }
    message += " does not compile";
    if (line > 0) {
        message += ": line " + std::to_string(line) + ", \"" + code + "\": " + first_message(log);
    }
    throw argument_error(message + "\n" + compiler + " says:\n" + elements::without_context(log));
}

}  // namespace

element_kernel::element_kernel(std::string_view inputs, std::string_view outputs, std::string_view body,
                               std::string_view name)
    : text_(elements::element_signature(inputs, outputs), body),
      name_(name.empty() ? "elementwise" : name),
      title_("the element-wise kernel " + to_string() + ": "),
      label_(elements::kept_label(name_)) {
    if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
        throw argument_error("the body of the element-wise kernel " + to_string() +
                             " is empty: assign the outputs, as in \"y = a * x + 1\"");
    }
    if (body.find('\0') != std::string_view::npos || name.find('\0') != std::string_view::npos) {
        throw argument_error("the body or the name of an element-wise kernel has a character 0 in it: leave it out");
    }
}

std::string element_kernel::to_string() const { return name_ + "(" + text_.signature.to_string() + ")"; }

elements::host_loop element_kernel::on_host(const elements::element_types& types) const {
    const std::string wanted = types.fingerprint();
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = host_.find(wanted); found != host_.end()) {
            return found->second;
        }
    }
    try {
        const elements::host_loop made = elements::load_loop(elements::host_source(text_, types));
        const std::lock_guard lock(mutex_);
        return host_.try_emplace(wanted, made).first->second;
    } catch (const elements::compile_failure& why) {
        refuse_body(*this, "The compiler " + why.compiler, why.log);
    }
}

backend::capability::function_handle element_kernel::on_device(const array_kernels::kernels& in,
                                                               const elements::element_types& types,
                                                               const elements::cuda_form& form) const {
    const device_key wanted(&in, types.fingerprint() + form.fingerprint());
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = device_.find(wanted); found != device_.end()) {
            return found->second;
        }
    }
    try {
        const backend::capability::function_handle made =
            elements::loaded_from(in, elements::cuda_source(text_, types, form));
        const std::lock_guard lock(mutex_);
        return device_.try_emplace(wanted, made).first->second;
    } catch (const argument_error& why) {
        refuse_body(*this, "NVRTC", elements::compiler_log(why));
    }
}

}  // namespace weir::detail
