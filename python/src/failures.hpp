// Exceptions of Python that make an operation fail.
#pragma once

#include "bind.hpp"

#include <exception>
#include <memory>
#include <string>

#include "reference.hpp"

namespace weir::python {

/// What a host task raised. Copied, kept and destroyed on any thread, without the GIL.
class python_failure : public std::exception {
public:
    /// What the calling thread has raised, which is cleared; its frames lose their local variables. Needs the GIL.
    [[nodiscard]] static python_failure caught();

    /// "ValueError: no such file".
    [[nodiscard]] const char* what() const noexcept override { return text_->c_str(); }
    /// The exception, with its traceback. Needs the GIL.
    [[nodiscard]] nanobind::handle raised() const noexcept { return raised_->get(); }

private:
    python_failure(std::string text, nanobind::object raised);

    std::shared_ptr<const std::string> text_;
    std::shared_ptr<const reference> raised_;
};

}  // namespace weir::python
