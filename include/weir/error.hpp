// The exceptions of Weir. Layer: base.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "weir/export.hpp"
#include "weir/source_location.hpp"

namespace weir {

/// The base class of all exceptions of Weir (rule X10), and of nothing else: `catch (const weir::error&)` catches them all. Each of them is
/// also a standard exception, named below, so that code which knows nothing of Weir can handle it. Copying an exception never throws. The
/// message says what was given, what is expected and what to call.
class WEIR_EXPORT error {
public:
    virtual ~error();
    /// The message.
    [[nodiscard]] virtual const char* what() const noexcept = 0;

protected:
    error() = default;
    /// @{
    /// For the copies of derived exceptions.
    error(const error&) = default;
    error& operator=(const error&) = default;
    /// @}
};

namespace detail {

/// An error that is also the standard exception `Standard`, which keeps the message: copies share it.
template <class Standard>
class WEIR_EXPORT error_as : public Standard, public error {
public:
    explicit error_as(const std::string& message) : Standard(message) {}
    [[nodiscard]] const char* what() const noexcept override { return Standard::what(); }
};

}  // namespace detail

/// A value that the call cannot take: a bad shape, a stream of another device, an unknown name.
class WEIR_EXPORT argument_error : public detail::error_as<std::invalid_argument> {
public:
    using error_as::error_as;
    ~argument_error() override;
};

/// A type that the call cannot take: an element type, an object that is not a stream.
class WEIR_EXPORT argument_type_error : public detail::error_as<std::invalid_argument> {
public:
    using error_as::error_as;
    ~argument_type_error() override;
};

/// The object is no longer, or not yet, in a state for this call: a closed stream, a released operand.
class WEIR_EXPORT state_error : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~state_error() override;
};

/// No memory is left, after everything that could be given back was given back. The message names the sizes (rule L6). If there is no
/// memory for Weir's own records, a call throws a plain std::bad_alloc.
class WEIR_EXPORT out_of_memory : public std::bad_alloc, public error {
public:
    /// With this message.
    // NOLINTNEXTLINE(bugprone-throw-keyword-missing): constructs a member whose type is an exception
    explicit out_of_memory(const std::string& message) : message_(message) {}
    ~out_of_memory() override;
    /// The message.
    [[nodiscard]] const char* what() const noexcept override { return message_.what(); }

private:
    std::runtime_error message_;  ///< std::bad_alloc keeps no message; copies of this object share it
};

/// An operation failed while it ran; thrown when the program asks for its result or waits for its stream (rule K4).
class WEIR_EXPORT operation_error : public detail::error_as<std::runtime_error> {
public:
    /// The failure of the operation `label`, enqueued at `where`, which threw `reason`.
    operation_error(const std::string& message, std::string label, source_location where,
                    std::exception_ptr reason = {});
    ~operation_error() override;

    /// The operation's label; "operation" if it has none.
    [[nodiscard]] const std::string& label() const noexcept { return *label_; }
    /// The call that enqueued it.
    [[nodiscard]] const source_location& where() const noexcept { return where_; }
    /// What the operation threw; null if that is not known.
    [[nodiscard]] const std::exception_ptr& reason() const noexcept { return reason_; }

private:
    std::shared_ptr<const std::string> label_;
    source_location where_;
    std::exception_ptr reason_;
};

/// The device or its driver failed.
class WEIR_EXPORT device_error : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~device_error() override;
};

/// A library that is opened at run time is missing. The message says which package has it.
class WEIR_EXPORT missing_library : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~missing_library() override;
};

/// Memory cannot be exchanged with another library in the way that was asked for.
class WEIR_EXPORT exchange_error : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~exchange_error() override;
};

/// The exchange would need a copy, and the caller has forbidden that.
class WEIR_EXPORT copy_error : public exchange_error {
public:
    using exchange_error::exchange_error;
    ~copy_error() override;
};

/// A file cannot be written in full. The message names it and the reason.
class WEIR_EXPORT file_error : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~file_error() override;
};

/// A check_scope in mode `raise` has found a race.
class WEIR_EXPORT race_error : public detail::error_as<std::runtime_error> {
public:
    using error_as::error_as;
    ~race_error() override;
};

}  // namespace weir
