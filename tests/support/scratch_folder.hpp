#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace weir::test {

/// An empty folder that no other process has, since tests run in several processes at once. It is removed with this object, with all
/// its contents.
class scratch_folder {
public:
    scratch_folder() : name_((std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string()) {
        if (::mkdtemp(name_.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(), name_);
        }
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    ~scratch_folder() {
        std::error_code failed;
        std::filesystem::remove_all(name_, failed);
    }

    [[nodiscard]] std::filesystem::path path() const { return name_; }
    [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& inside) const { return path() / inside; }

private:
    std::string name_;
};

}  // namespace weir::test
