#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "array/cuda/launch.hpp"
#include "array/elements/reduction_source.hpp"
#include "array/elements/reduction_step.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/detail/mutex.hpp"
#include "weir/reduction_kernel.hpp"
#include "weir/scalar.hpp"

namespace weir::detail {

/// A reduction of a program: its texts, and what has been compiled from them so far.
class reduction_program {
public:
    reduction_program(std::string_view inputs, std::string_view outputs, const reduction_texts& texts);

    [[nodiscard]] const elements::reduction_text& text() const noexcept { return text_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// The name, at an address that stays valid until the process ends.
    [[nodiscard]] const char* label() const noexcept { return label_; }
    /// "the reduction norm(T x -> T y): ", with which messages about a call begin.
    [[nodiscard]] const std::string& title() const noexcept { return title_; }
    /// "norm(T x -> T y)".
    [[nodiscard]] std::string to_string() const;

    /// The host's program. Slow at the first use, which compiles it. Throws argument_error (a text does not compile), missing_library,
    /// device_error.
    [[nodiscard]] elements::host_reduction on_host(const elements::element_types& types,
                                                   const elements::value_types& value) const;
    /// The kernel for a device. Throws as on_host.
    [[nodiscard]] backend::capability::function_handle on_device(const array_kernels::kernels& in,
                                                                 const elements::element_types& types,
                                                                 const elements::value_types& value,
                                                                 const elements::reduction_form& form) const;

private:
    void read_value(std::string_view type);
    /// Checks that the identity, if it is a number, is a value of this type. Throws argument_error.
    void expect_identity(const elements::value_types& value) const;

    using device_key = std::pair<const array_kernels::kernels*, std::string>;

    elements::reduction_text text_;
    std::optional<scalar> identity_;  ///< where it was given as a number
    std::string name_;
    std::string title_;
    const char* label_;
    mutable mutex mutex_;  ///< guards what follows; a leaf in the lock order. Not held while a compiler runs
    mutable std::map<std::string, elements::host_reduction> host_;
    mutable std::map<device_key, backend::capability::function_handle> device_;
};

}  // namespace weir::detail
