// Runs the compiler that the tests are built with.
#pragma once

#include <string>
#include <vector>

namespace weir_fake {

/// A folder that is removed with all its contents.
class temporary_folder {
public:
    temporary_folder();
    ~temporary_folder();
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    /// Empty if it could not be made.
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

struct compiled {
    bool done = false;
    std::string log;
};

/// Makes a shared object of C++ source. `log` has the compiler's messages.
compiled compile_shared(const std::string& source, const std::string& object, const std::vector<std::string>& options);

bool write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

}  // namespace weir_fake
