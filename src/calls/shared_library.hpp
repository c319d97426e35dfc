#pragma once

#include <string>

#include "base/setting.hpp"

namespace weir::calls {

/// A shared library that is opened at run time, and never closed: objects that it made may live until the process ends.
class shared_library {
public:
    /// Which library, and how a user can install it.
    struct name {
        const char* file;          ///< "libfftw3.so.3"
        detail::setting variable;  ///< environment variable that names another file
        const char* package;       ///< the package of Debian and Ubuntu that contains it
    };

    /// Throws missing_library, with what to install.
    explicit shared_library(const name& which);

    /// The file that was opened: its usual name, or the value of the environment variable.
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

    /// Sets `function` to the library's function of that name. Throws missing_library if it has none.
    template <class Function>
    void find(const char* symbol, Function*& function) const {
        function = reinterpret_cast<Function*>(address_of(symbol));
    }

    /// Null if the library has no such symbol.
    [[nodiscard]] void* try_find(const char* symbol) const noexcept;

private:
    [[nodiscard]] void* address_of(const char* symbol) const;

    std::string file_;
    std::string package_;
    void* handle_ = nullptr;
};

/// A call into such a library that computes on the host. The process does not end while one is in progress: the library's own destructors,
/// which run last, would take away what the call uses, or wait for it for ever. A thread whose call comes later stays in it until the process
/// is gone, unless it is the one that ends it.
class library_visit {
public:
    library_visit() noexcept;
    ~library_visit();
    library_visit(const library_visit&) = delete;
    library_visit& operator=(const library_visit&) = delete;
};

}  // namespace weir::calls
