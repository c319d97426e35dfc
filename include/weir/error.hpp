// What Weir throws. Layer: base.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// Base of everything that Weir throws (rule X10). The message says what was given, what is wanted and what to call.
class WEIR_EXPORT error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
    ~error() override;
};

/// A value that the call cannot take: a bad shape, a stream of another device, an unknown name.
class WEIR_EXPORT argument_error : public error {
public:
    using error::error;
    ~argument_error() override;
};

/// A type that the call cannot take: an element type, an object that is no stream.
class WEIR_EXPORT argument_type_error : public error {
public:
    using error::error;
    ~argument_type_error() override;
};

/// The object is no longer, or not yet, in a state for this call: a closed stream, a released operand.
class WEIR_EXPORT state_error : public error {
public:
    using error::error;
    ~state_error() override;
};

/// No memory is left, after everything that could be given back was given back. Names the sizes (rule L6).
class WEIR_EXPORT out_of_memory : public error {
public:
    using error::error;
    ~out_of_memory() override;
};

/// An operation failed while it ran; found when its result, or its stream, was asked for (rule K4).
class WEIR_EXPORT operation_error : public error {
public:
    /// The failure of the operation `label`, enqueued at `where`, which threw `reason`.
    operation_error(const std::string& message, std::string label, source_location where,
                    std::exception_ptr reason = {});
    ~operation_error() override;

    /// The operation's label; "operation" if it was given none.
    [[nodiscard]] const std::string& label() const noexcept { return label_; }
    /// The call that enqueued it.
    [[nodiscard]] const source_location& where() const noexcept { return where_; }
    /// What the operation threw; null if nobody knows.
    [[nodiscard]] const std::exception_ptr& reason() const noexcept { return reason_; }

private:
    std::string label_;
    source_location where_;
    std::exception_ptr reason_;
};

/// The device or its driver failed.
class WEIR_EXPORT device_error : public error {
public:
    using error::error;
    ~device_error() override;
};

/// A library that is opened at run time is not there. The message says which package has it.
class WEIR_EXPORT missing_library : public error {
public:
    using error::error;
    ~missing_library() override;
};

/// `check` in its mode `raise` found a race.
class WEIR_EXPORT race_error : public error {
public:
    using error::error;
    ~race_error() override;
};

}  // namespace weir
