#include "real_nvrtc.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

namespace weir_fake {

namespace {

using program = void*;

/// The functions of the library (NVRTC reference manual, 12.9). Those that are missing are null.
struct real_library {
    int (*create)(program* made, const char* source, const char* name, int headers, const char* const* texts,
                  const char* const* names) = nullptr;
    int (*add_expression)(program of, const char* expression) = nullptr;
    int (*compile)(program what, int count, const char* const* options) = nullptr;
    int (*log_size)(program of, std::size_t* bytes) = nullptr;
    int (*log)(program of, char* text) = nullptr;
    int (*destroy)(program* what) = nullptr;

    explicit real_library(const char* file) {
        void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            return;
        }
        find(library, "nvrtcCreateProgram", create);
        find(library, "nvrtcAddNameExpression", add_expression);
        find(library, "nvrtcCompileProgram", compile);
        find(library, "nvrtcGetProgramLogSize", log_size);
        find(library, "nvrtcGetProgramLog", log);
        find(library, "nvrtcDestroyProgram", destroy);
    }
    [[nodiscard]] bool is_whole() const {
        return create != nullptr && add_expression != nullptr && compile != nullptr && log_size != nullptr &&
               log != nullptr && destroy != nullptr;
    }

private:
    template <class Function>
    static void find(void* library, const char* name, Function*& function) {
        function = reinterpret_cast<Function*>(::dlsym(library, name));
    }
};

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<const char*> made;
    for (const std::string& each : texts) {
        made.push_back(each.c_str());
    }
    return made;
}

}  // namespace

std::string refused_by_real_nvrtc(const real_program& what) {
    static const char* const file = std::getenv("WEIR_REAL_NVRTC");
    if (file == nullptr) {
        return {};
    }
    static const real_library real(file);
    if (!real.is_whole()) {
        return std::string("WEIR_REAL_NVRTC names ") + file + ", which is no NVRTC\n";
    }
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const auto& [name, text] : what.headers) {
        names.push_back(name.c_str());
        texts.push_back(text.c_str());
    }
    program made = nullptr;
    if (real.create(&made, what.source.c_str(), what.name.c_str(), static_cast<int>(names.size()), texts.data(),
                    names.data()) != 0) {
        return "the real NVRTC takes no program\n";
    }
    for (const std::string& each : what.expressions) {
        static_cast<void>(real.add_expression(made, each.c_str()));
    }
    const std::vector<const char*> options = pointers_to(what.options);
    std::string log;
    if (real.compile(made, static_cast<int>(options.size()), options.data()) != 0) {
        std::size_t bytes = 0;
        static_cast<void>(real.log_size(made, &bytes));
        log.resize(bytes);
        static_cast<void>(real.log(made, log.data()));
        log = "the real NVRTC says:\n" + log;
    }
    static_cast<void>(real.destroy(&made));
    return log;
}

}  // namespace weir_fake
