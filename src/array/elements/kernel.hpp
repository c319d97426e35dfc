#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "array/cuda/launch.hpp"
#include "array/elements/source.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/error.hpp"

namespace weir::elements {

/// Keeps one copy of each different text until the process ends: labels are used long after a kernel is destroyed.
[[nodiscard]] const char* kept_label(const std::string& text);

/// The kernel of a source that has one: compiled and loaded at its first use, and kept until the process ends, so that enqueued work
/// need not keep it. Throws missing_library, device_error, out_of_memory, argument_error (with the compiler's log behind
/// "does not compile: ").
[[nodiscard]] backend::capability::function_handle loaded_from(const array_kernels::kernels& in,
                                                               const std::string& source);

/// The compiler's log in a message of `loaded_from`; all of the message if it has none.
[[nodiscard]] std::string compiler_log(const argument_error& of);

/// The lines of a compiler's log, without those that name functions around the texts of a program, which it does not know.
[[nodiscard]] std::string without_context(const std::string& log);

/// The output that the first error is about, since the body reads it; null if it is about something else. GCC and NVRTC name the type of
/// the output. Clang says of an operator only that it is deleted: then it is the first output in `code`, the line of the body.
[[nodiscard]] const element_parameter* read_output(const element_signature& of, const std::string& log,
                                                   const std::string& code);

}  // namespace weir::elements

namespace weir::detail {

/// An element-wise kernel of a program: its text, and what has been compiled from it so far.
class element_kernel {
public:
    element_kernel(std::string_view inputs, std::string_view outputs, std::string_view body, std::string_view name);

    [[nodiscard]] const elements::element_text& text() const noexcept { return text_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// The name, at an address that stays valid until the process ends.
    [[nodiscard]] const char* label() const noexcept { return label_; }
    /// "axpy(float32 x, float32 a -> float32 y)".
    [[nodiscard]] std::string to_string() const;
    /// "the element-wise kernel axpy(float32 x, float32 a -> float32 y): ", with which messages about a call begin.
    [[nodiscard]] const std::string& title() const noexcept { return title_; }

    /// The host's loop. Slow at the first use, which compiles it. Throws argument_error (the body does not compile),
    /// missing_library, device_error.
    [[nodiscard]] elements::host_loop on_host(const elements::element_types& types) const;
    /// The kernel for a device. Throws as on_host.
    [[nodiscard]] backend::capability::function_handle on_device(const array_kernels::kernels& in,
                                                                 const elements::element_types& types,
                                                                 const elements::cuda_form& form) const;

private:
    using device_key = std::pair<const array_kernels::kernels*, std::string>;

    elements::element_text text_;
    std::string name_;
    std::string title_;
    const char* label_;
    mutable mutex mutex_;  ///< guards what follows; a leaf in the lock order. Not held while a compiler runs
    mutable std::map<std::string, elements::host_loop> host_;
    mutable std::map<device_key, backend::capability::function_handle> device_;
};

}  // namespace weir::detail
