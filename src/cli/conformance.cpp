#include "cli/conformance.hpp"

#include <unistd.h>

#include <stdexcept>

namespace weir::cli {

namespace {

constexpr const char* program = R"(import sys
try:
    from weir_conformance.__main__ import main
except ImportError as error:
    print("weir conformance:", error, "(" + sys.executable + "): install the Python package of Weir there, weir-streams",
          file=sys.stderr)
    raise SystemExit(2)
raise SystemExit(main(sys.argv[1:]))
)";

}  // namespace

void become_conformance_suite(const std::vector<std::string>& arguments) {
    std::vector<std::string> kept{"python3", "-c", program};
    kept.insert(kept.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(kept.size() + 1);
    for (std::string& one : kept) {
        argv.push_back(one.data());
    }
    argv.push_back(nullptr);
    execvp("python3", argv.data());
    throw std::runtime_error("there is no python3 in PATH, which the conformance suite is written in");
}

}  // namespace weir::cli
