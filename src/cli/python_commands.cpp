#include "cli/python_commands.hpp"

#include <unistd.h>

#include <stdexcept>

namespace weir::cli {

namespace {

/// `module` has a function main(arguments). `word`: the command's.
[[noreturn]] void become(const std::string& word, const std::string& module,
                         const std::vector<std::string>& arguments) {
    const std::string program = "import sys\ntry:\n    from " + module +
                                " import main\nexcept ImportError as error:\n    print(\"weir " + word +
                                ":\", error, \"(\" + sys.executable + \"): install the Python package of Weir there, "
                                "weir-streams\",\n          file=sys.stderr)\n    raise SystemExit(2)\n"
                                "raise SystemExit(main(sys.argv[1:]))\n";
    std::vector<std::string> kept{"python3", "-c", program};
    kept.insert(kept.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(kept.size() + 1);
    for (std::string& one : kept) {
        argv.push_back(one.data());
    }
    argv.push_back(nullptr);
    execvp("python3", argv.data());
    throw std::runtime_error("there is no python3 in PATH, in which `weir " + word + "` is written");
}

}  // namespace

void become_conformance_suite(const std::vector<std::string>& arguments) {
    become("conformance", "weir_conformance.__main__", arguments);
}

void become_check(const std::vector<std::string>& arguments) { become("check", "weir._check_command", arguments); }

}  // namespace weir::cli
