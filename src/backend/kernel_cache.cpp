#include "backend/kernel_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/setting.hpp"

namespace weir::backend {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "weir kernel 1\n";
constexpr const char* ending = ".kernel";
constexpr const char* unfinished_ending = ".part";

/// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text, std::uint64_t state = 0xcbf29ce484222325U) {
    for (const char each : text) {
        state = (state ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    }
    return state;
}

std::string hexadecimal(std::uint64_t value) {
    std::string text(16, '0');
    for (std::size_t digit = 16; digit-- > 0; value >>= 4U) {
        text[digit] = "0123456789abcdef"[value & 15U];
    }
    return text;
}

/// The header of a file, after the magic; the key, the symbol and the image follow.
struct sizes {
    std::uint64_t checksum;  ///< of the key, the symbol and the image
    std::uint64_t key;
    std::uint64_t symbol;
    std::uint64_t image;
};

std::uint64_t checksum(std::string_view key, std::string_view symbol, std::string_view image) {
    return hash(image, hash(symbol, hash(key)));
}

/// Owns an open file.
class descriptor {
public:
    explicit descriptor(int number) noexcept : number_(number) {}
    ~descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;

    [[nodiscard]] bool valid() const noexcept { return number_ >= 0; }
    [[nodiscard]] int get() const noexcept { return number_; }
    /// Whether closing succeeded; it fails if the disk is full, for example.
    [[nodiscard]] bool close() noexcept { return ::close(std::exchange(number_, -1)) == 0; }

private:
    int number_;
};

/// The whole file; empty if it cannot be read, is no regular file or belongs to another user.
std::string contents(const fs::path& file) {
    const descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat about {};
    if (!from.valid() || ::fstat(from.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid()) {
        return {};
    }
    std::string all(static_cast<std::size_t>(about.st_size), '\0');
    for (std::size_t done = 0; done < all.size();) {
        const ssize_t got = ::read(from.get(), all.data() + done, all.size() - done);
        if (got <= 0) {
            return {};
        }
        done += static_cast<std::size_t>(got);
    }
    return all;
}

bool write_all(int to, std::string_view what) {
    while (!what.empty()) {
        const ssize_t written = ::write(to, what.data(), what.size());
        if (written <= 0) {
            return false;
        }
        what.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// Removes `count` bytes from the front of `rest` and returns them; empty if there are fewer.
std::optional<std::string_view> take(std::string_view& rest, std::uint64_t count) {
    if (count > rest.size()) {
        return std::nullopt;
    }
    const std::string_view front = rest.substr(0, count);
    rest.remove_prefix(count);
    return front;
}

std::optional<compiled_program> decode(std::string_view file, std::string_view key) {
    sizes head{};
    const auto start = take(file, magic.size());
    const auto numbers = take(file, sizeof head);
    if (!start || *start != magic || !numbers) {
        return std::nullopt;
    }
    std::memcpy(&head, numbers->data(), sizeof head);
    const auto its_key = take(file, head.key);
    const auto symbol = take(file, head.symbol);
    const auto image = take(file, head.image);
    if (!its_key || !symbol || !image || !file.empty() || *its_key != key ||
        checksum(*its_key, *symbol, *image) != head.checksum) {
        return std::nullopt;
    }
    return compiled_program{std::string(*image), std::string(*symbol)};
}

std::string encode(std::string_view key, const compiled_program& what) {
    const sizes head{checksum(key, what.symbol, what.image), key.size(), what.symbol.size(), what.image.size()};
    std::string file(magic);
    file.append(reinterpret_cast<const char*>(&head), sizeof head);
    file.append(key);
    file.append(what.symbol);
    file.append(what.image);
    return file;
}

}  // namespace

fs::path kernel_cache::file_of(const std::string& key) const {
    return folder_ / (hexadecimal(hash(key)) + hexadecimal(hash(key, 0x9e3779b97f4a7c15U)) + ending);
}

std::optional<compiled_program> kernel_cache::find(const std::string& key) const {
    if (folder_.empty()) {
        return std::nullopt;
    }
    const fs::path file = file_of(key);
    std::optional<compiled_program> found = decode(contents(file), key);
    if (found) {
        ::utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    }
    return found;
}

bool kernel_cache::keep(const std::string& key, const compiled_program& what) const {
    if (folder_.empty()) {
        return true;
    }
    static std::atomic<unsigned> count{0};
    std::error_code failed;
    if (fs::create_directories(folder_, failed)) {
        fs::permissions(folder_, fs::perms::owner_all, failed);
    }
    const fs::path file = file_of(key);
    const fs::path part = file.string() + "." + std::to_string(::getpid()) + "." +
                          std::to_string(count.fetch_add(1, std::memory_order_relaxed)) + unfinished_ending;
    descriptor to(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!to.valid()) {
        return false;
    }
    // A reader sees either the old file or the new one, complete.
    const bool written = write_all(to.get(), encode(key, what));
    if (!to.close() || !written || ::rename(part.c_str(), file.c_str()) != 0) {
        ::unlink(part.c_str());
        return false;
    }
    trim();
    return true;
}

void kernel_cache::trim() const {
    struct entry {
        fs::file_time_type used;
        std::uint64_t bytes;
        fs::path file;
    };
    std::vector<entry> entries;
    std::uint64_t total = 0;
    std::error_code failed;
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    for (fs::directory_iterator each(folder_, failed), end; !failed && each != end; each.increment(failed)) {
        std::error_code gone;  // another process trims, too
        const auto used = each->last_write_time(gone);
        const auto bytes = gone ? 0 : each->file_size(gone);
        if (gone) {
            continue;
        }
        if (each->path().extension() == unfinished_ending && used < long_ago) {
            fs::remove(each->path(), gone);  // its writer died
        } else if (each->path().extension() == ending) {
            entries.push_back({used, bytes, each->path()});
            total += bytes;
        }
    }
    std::sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) { return a.used < b.used; });
    for (const entry& each : entries) {
        if (total <= most_bytes_) {
            return;
        }
        fs::remove(each.file, failed);
        total -= each.bytes;
    }
}

fs::path kernel_cache_folder() {
    const auto environment = [](const char* name) {
        const char* const value = std::getenv(name);
        return fs::path(value != nullptr ? value : "");
    };
    if (const char* const chosen = detail::setting("WEIR_CACHE_DIR").value(); chosen != nullptr) {
        return chosen;
    }
    if (const fs::path caches = environment("XDG_CACHE_HOME"); caches.is_absolute()) {
        return caches / "weir";
    }
    const fs::path home = environment("HOME");
    return home.empty() ? fs::path() : home / ".cache" / "weir";
}

}  // namespace weir::backend
