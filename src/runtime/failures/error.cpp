#include "weir/error.hpp"

#include <utility>

namespace weir {

// The destructors are defined here so that each class has its type information in this library alone.
error::~error() = default;
argument_error::~argument_error() = default;
argument_type_error::~argument_type_error() = default;
state_error::~state_error() = default;
out_of_memory::~out_of_memory() = default;
operation_error::~operation_error() = default;
device_error::~device_error() = default;
missing_library::~missing_library() = default;
file_error::~file_error() = default;
race_error::~race_error() = default;
exchange_error::~exchange_error() = default;
copy_error::~copy_error() = default;

operation_error::operation_error(const std::string& message, std::string label, source_location where,
                                 std::exception_ptr reason)
    : error_as(message),
      label_(std::make_shared<const std::string>(std::move(label))),
      where_(where),
      reason_(std::move(reason)) {}

}  // namespace weir
