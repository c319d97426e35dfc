// The fake NVRTC: CUDA C++ for a device made of threads (NVRTC reference manual, 13.0).
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda.hpp"
#include "host_compiler.hpp"
#include "image.hpp"
#include "nvrtc_control.hpp"
#include "real_nvrtc.hpp"
#include "scan.hpp"
#include "shim_abi.hpp"

namespace weir_fake {

struct program {
    std::string source;
    std::string name;
    std::vector<std::pair<std::string, std::string>> headers;  ///< name and text
    std::vector<std::string> expressions;
    std::map<std::string, std::string> lowered;
    bool is_compiled = false;
    bool is_real = false;  ///< for an architecture of a device, not for a virtual one: there is a cubin
    std::string log;
    std::string ptx;
    std::string cubin;
};

namespace {

using nvrtcResult = int;
enum : nvrtcResult {
    nvrtc_success = 0,
    nvrtc_out_of_memory = 1,
    nvrtc_invalid_input = 3,
    nvrtc_invalid_program = 4,
    nvrtc_invalid_option = 5,
    nvrtc_compilation = 6,
    nvrtc_no_name_after_compilation = 8,
    nvrtc_no_lowered_before_compilation = 9,
    nvrtc_name_not_valid = 10,
    nvrtc_internal_error = 11,
};

struct nvrtc_state {
    std::mutex lock;
    std::set<program*> programs;
    unsigned long long compilations = 0;
    int next_error = nvrtc_success;
};
nvrtc_state& state() {
    static auto* const all = new nvrtc_state;
    return *all;
}

bool is_program(program* what) {
    const std::lock_guard held(state().lock);
    return state().programs.count(what) != 0;
}

struct chosen_options {
    std::vector<std::string> host;
    int architecture = 75;  ///< NVRTC's own default
    bool is_real = false;
    std::string unknown;
};

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }

/// The value of an option, after "=" or as the next word.
bool takes(const std::vector<std::string>& words, std::size_t& i, std::initializer_list<const char*> names,
           std::string& value) {
    for (const std::string name : names) {
        if (words[i] == name && i + 1 < words.size()) {
            value = words[++i];
            return true;
        }
        if (starts_with(words[i], name + "=")) {
            value = words[i].substr(name.size() + 1);
            return true;
        }
    }
    return false;
}

chosen_options read_options(const std::vector<std::string>& words) {
    static const std::regex architecture(R"((sm|compute)_(\d+)[af]?)");
    // Options without effect here.
    static const std::regex ignored(
        R"((--?(use_fast_math|device-debug|G|generate-line-info|lineinfo|default-device|device-as-default-execution-space|extra-device-vectorization|disable-warnings|w|no-cache|device-int128|relocatable-device-code=(true|false)|rdc=(true|false)|(ftz|prec-sqrt|prec-div|fmad)=(true|false)|(maxrregcount|dopt|diag-suppress|minimal|restrict|split-compile)(=\S+)?)))");
    chosen_options chosen;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::string value;
        std::smatch parts;
        if (takes(words, i, {"--gpu-architecture", "-arch", "--arch"}, value)) {
            if (!std::regex_match(value, parts, architecture)) {
                chosen.unknown = value;
                return chosen;
            }
            chosen.is_real = parts[1] == "sm";
            chosen.architecture = std::stoi(parts[2]);
        } else if (takes(words, i, {"--std", "-std"}, value)) {
            chosen.host.push_back("-std=" + (value == "c++20" ? value : std::string("c++17")));
        } else if (takes(words, i, {"--define-macro", "-D"}, value) ||
                   (starts_with(words[i], "-D") && !(value = words[i].substr(2)).empty())) {
            chosen.host.push_back("-D" + value);
        } else if (takes(words, i, {"--undefine-macro", "-U"}, value)) {
            chosen.host.push_back("-U" + value);
        } else if (takes(words, i, {"--include-path", "-I"}, value) ||
                   (starts_with(words[i], "-I") && !(value = words[i].substr(2)).empty())) {
            chosen.host.push_back("-I" + value);
        } else if (!std::regex_match(words[i], ignored)) {
            chosen.unknown = words[i];
            return chosen;
        }
    }
    return chosen;
}

/// The source, and behind it the table of its kernels.
std::string with_kernel_table(const program& what, const scanned_source& scanned) {
    std::string text = "#line 1 \"" + what.name + "\"\n" + scanned.text + "\n#line 1 \"name expression\"\n";
    text +=
        "extern \"C\" { extern __attribute__((visibility(\"default\"))) const weir_shim::kernel weir_fake_kernels[]; "
        "}\n";
    text += "const weir_shim::kernel weir_fake_kernels[] = {\n";
    std::vector<std::string> all = scanned.kernels;
    all.insert(all.end(), what.expressions.begin(), what.expressions.end());
    for (const std::string& each : all) {
        std::string function = each;
        function.erase(0, function.find_first_not_of("& \t"));
        text += "weir_shim::describe<(&" + function + ")>(\"" + each + "\"),\n";
    }
    return text + "{nullptr, nullptr, nullptr, 0, nullptr, nullptr}};\n";
}

/// Messages as NVRTC writes them: "name(line): error: text".
std::string as_nvrtc(const std::string& log) {
    static const std::regex place(R"((^|\n)([^\n:]+):(\d+)(?::\d+)?: (fatal )?(error|warning|note):)");
    return std::regex_replace(log, place, "$1$2($3): $5:");
}

/// Reads the names of the kernels' symbols from the library.
bool find_lowered_names(program& what, const std::string& object) {
    void* const library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        what.log += std::string(::dlerror()) + "\n";
        return false;
    }
    const auto* each = static_cast<const weir_shim::kernel*>(::dlsym(library, "weir_fake_kernels"));
    for (; each != nullptr && each->address != nullptr; ++each) {
        Dl_info found{};
        if (::dladdr(each->address, &found) != 0 && found.dli_saddr == each->address) {
            what.lowered[each->expression] = found.dli_sname;
        }
    }
    ::dlclose(library);
    return true;
}

std::string image_of(const std::string& object, int architecture, bool is_ptx) {
    image_header header{};
    std::memcpy(header.magic, image_magic, sizeof image_magic);
    header.bytes = object.size();
    header.architecture = architecture;
    header.is_ptx = is_ptx ? 1 : 0;
    std::string image(sizeof header, '\0');
    std::memcpy(image.data(), &header, sizeof header);
    return image + object;
}

nvrtcResult compile(program& what, const std::vector<std::string>& words) {
    const chosen_options chosen = read_options(words);
    if (!chosen.unknown.empty()) {
        what.log = "nvrtc: error: unrecognized option " + chosen.unknown + " found\n";
        return nvrtc_invalid_option;
    }
    const temporary_folder folder;
    const std::string source = folder.path() + "/source.cpp";
    const std::string object = folder.path() + "/kernels.so";
    if (folder.path().empty() || !write_file(source, with_kernel_table(what, scan(what.source)))) {
        what.log = "no temporary file could be written\n";
        return nvrtc_internal_error;
    }
    for (const auto& [name, text] : what.headers) {
        if (!write_file(folder.path() + "/" + name, scan(text).text)) {
            what.log = "the header " + name + " could not be written\n";
            return nvrtc_internal_error;
        }
    }
    auto options = chosen.host;
    options.push_back("-I" + folder.path());
    const compiled result = compile_shared(source, object, options);
    what.log = as_nvrtc(result.log);
    if (!result.done || !find_lowered_names(what, object)) {
        return nvrtc_compilation;
    }
    if (std::string log = refused_by_real_nvrtc({what.source, what.name, what.headers, what.expressions, words});
        !log.empty()) {
        what.log = std::move(log);
        return nvrtc_compilation;
    }
    const std::string bytes = read_file(object);
    what.ptx = image_of(bytes, chosen.architecture, true);
    what.cubin = chosen.is_real ? image_of(bytes, chosen.architecture, false) : std::string();
    what.is_compiled = true;
    return nvrtc_success;
}

nvrtcResult give(program* from, std::string program::*text, char* to, std::size_t* bytes, bool terminated) {
    if (!is_program(from)) {
        return nvrtc_invalid_program;
    }
    const std::string& what = from->*text;
    const std::size_t size = what.size() + (terminated ? 1 : 0);
    if (bytes != nullptr) {
        *bytes = size;
    }
    if (to != nullptr) {
        std::memcpy(to, what.c_str(), size);
    }
    return nvrtc_success;
}

}  // namespace

}  // namespace weir_fake

using namespace weir_fake;

/// 13.0, or what WEIR_FAKE_NVRTC_VERSION says ("12.1").
WEIR_FAKE_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    const char* const other = std::getenv("WEIR_FAKE_NVRTC_VERSION");
    const bool is_one = other == nullptr || std::sscanf(other, "%d.%d", major, minor) == 2;
    return is_one ? nvrtc_success : nvrtc_internal_error;
}

WEIR_FAKE_EXPORT const char* nvrtcGetErrorString(nvrtcResult error) {
    static constexpr const char* texts[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        "NVRTC_ERROR_INTERNAL_ERROR",
    };
    return error >= 0 && static_cast<std::size_t>(error) < std::size(texts) ? texts[error] : "NVRTC_ERROR unknown";
}

namespace {
constexpr int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
    *count = static_cast<int>(std::size(architectures));
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcGetSupportedArchs(int* all) {
    std::memcpy(all, architectures, sizeof architectures);
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcCreateProgram(program** made, const char* source, const char* name, int headers,
                                                const char* const* texts, const char* const* names) {
    if (made == nullptr || source == nullptr || headers < 0) {
        return nvrtc_invalid_input;
    }
    auto created = std::make_unique<program>();
    created->source = source;
    created->name = name != nullptr ? name : "default_program";
    for (int i = 0; i < headers; ++i) {
        created->headers.emplace_back(names[i], texts[i]);
    }
    const std::lock_guard held(state().lock);
    state().programs.insert(created.get());
    *made = created.release();
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcDestroyProgram(program** what) {
    if (what == nullptr || !is_program(*what)) {
        return nvrtc_invalid_program;
    }
    const std::lock_guard held(state().lock);
    state().programs.erase(*what);
    delete *what;
    *what = nullptr;
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcAddNameExpression(program* of, const char* expression) {
    if (!is_program(of)) {
        return nvrtc_invalid_program;
    }
    if (of->is_compiled) {
        return nvrtc_no_name_after_compilation;
    }
    of->expressions.emplace_back(expression);
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcGetLoweredName(program* of, const char* expression, const char** name) {
    if (!is_program(of)) {
        return nvrtc_invalid_program;
    }
    if (!of->is_compiled) {
        return nvrtc_no_lowered_before_compilation;
    }
    const auto found = of->lowered.find(expression);
    if (found == of->lowered.end()) {
        return nvrtc_name_not_valid;
    }
    *name = found->second.c_str();
    return nvrtc_success;
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcCompileProgram(program* what, int count, const char* const* options) {
    if (!is_program(what)) {
        return nvrtc_invalid_program;
    }
    {
        const std::lock_guard held(state().lock);
        ++state().compilations;
        if (const int error = std::exchange(state().next_error, nvrtc_success); error != nvrtc_success) {
            return error;
        }
    }
    return compile(*what, {options, options + count});
}

WEIR_FAKE_EXPORT nvrtcResult nvrtcGetProgramLogSize(program* of, std::size_t* bytes) {
    return give(of, &program::log, nullptr, bytes, true);
}
WEIR_FAKE_EXPORT nvrtcResult nvrtcGetProgramLog(program* of, char* text) {
    return give(of, &program::log, text, nullptr, true);
}
WEIR_FAKE_EXPORT nvrtcResult nvrtcGetPTXSize(program* of, std::size_t* bytes) {
    return give(of, &program::ptx, nullptr, bytes, true);
}
WEIR_FAKE_EXPORT nvrtcResult nvrtcGetPTX(program* of, char* text) {
    return give(of, &program::ptx, text, nullptr, true);
}
WEIR_FAKE_EXPORT nvrtcResult nvrtcGetCUBINSize(program* of, std::size_t* bytes) {
    return give(of, &program::cubin, nullptr, bytes, false);
}
WEIR_FAKE_EXPORT nvrtcResult nvrtcGetCUBIN(program* of, char* bytes) {
    return give(of, &program::cubin, bytes, nullptr, false);
}

unsigned long long weir_fake_nvrtc_compilations() {
    const std::lock_guard held(state().lock);
    return state().compilations;
}

void weir_fake_nvrtc_fail(int error) {
    const std::lock_guard held(state().lock);
    state().next_error = error;
}
