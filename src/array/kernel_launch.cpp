// What a launch of a kernel checks, and how it enters the driver's queue.
#include <string>
#include <vector>

#include "array/kernel_code.hpp"
#include "backend/cuda/launch.hpp"
#include "runtime/stream_state.hpp"
#include "weir/detail/footprint.hpp"
#include "weir/detail/launch_shape.hpp"
#include "weir/detail/submission.hpp"
#include "weir/device.hpp"
#include "weir/dtype.hpp"
#include "weir/error.hpp"
#include "weir/stream.hpp"

namespace weir::detail {

namespace {

[[noreturn]] void refuse_stream(const kernel& what, const stream_ref& on) {
    const std::string own = what.device().name();
    const std::string other = on.device().name();
    const std::string start = "the kernel " + what.name() + " is for " + own + ", and the stream \"" +
                              std::string(on.name()) + "\" is one of " + other + ": ";
    if (on.device().kind() == device_kind::cuda) {
        throw argument_error(start + "launch it on a stream of " + own + ", or make it for " + other + ", too");
    }
    throw argument_error(start + "launch it on a stream of " + own +
                         ", or use parallel_for or host_task, which take code for " + other);
}

std::string number_of(std::size_t position) { return "argument " + std::to_string(position + 1); }

std::string text_of(const kernel_argument& argument) {
    const std::string type(argument.has_type ? name_of(argument.type) : std::string_view("a structure"));
    if (argument.is_array) {
        return argument.has_type ? "an array of " + type : "an array";
    }
    return argument.has_type ? type : type + " of " + std::to_string(argument.bytes) + " bytes";
}

[[noreturn]] void refuse_count(const kernel& what, std::size_t given, std::size_t has) {
    throw argument_error("the kernel " + what.to_string() + " has " + std::to_string(has) + " parameters, and got " +
                         std::to_string(given) + " arguments");
}

[[noreturn]] void refuse_bytes(const kernel& what, std::size_t position, const kernel_argument& given,
                               std::size_t has) {
    throw argument_error(number_of(position) + " of the kernel " + what.to_string() + " is " + text_of(given) +
                         ", which has " + std::to_string(given.bytes) + " bytes, and the parameter has " +
                         std::to_string(has) + ": pass what the kernel declares, float(x) for float");
}

[[gnu::cold]] void expect_bytes(const kernel& what, std::span<const kernel_argument> arguments) {
    const auto& bytes = what.code().parameter_bytes();
    if (!bytes) {
        return;
    }
    if (bytes->size() != arguments.size()) [[unlikely]] {
        refuse_count(what, arguments.size(), bytes->size());
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i].bytes != (*bytes)[i]) [[unlikely]] {
            refuse_bytes(what, i, arguments[i], (*bytes)[i]);
        }
    }
}

bool is_on_device_of(const kernel& what, const stream_ref& on) noexcept {
    return &what.code().on().state() == &on.state().device();
}

kernels::parameter_use use_of(const runtime::access_request& access) {
    if (access.mode == order::access_mode::read) {
        return kernels::parameter_use::in;
    }
    return access.overwrites ? kernels::parameter_use::out : kernels::parameter_use::inout;
}

void expect_parameters(const kernel& what, std::span<const kernel_argument> arguments,
                       std::span<const runtime::access_request> accesses) {
    const std::vector<kernels::parameter>& parameters = what.parameters()->all;
    if (parameters.size() != arguments.size()) {
        refuse_count(what, arguments.size(), parameters.size());
    }
    constexpr std::array<const char*, 4> uses = {"", "in", "out", "inout"};
    std::size_t array = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const kernel_argument& argument = arguments[i];
        const kernels::parameter& parameter = parameters[i];
        const auto start = [&] {
            return number_of(i) + " of the kernel " + what.name() + " is \"" + kernels::to_string(parameter) +
                   "\", and got ";
        };
        const bool wants_array = parameter.use != kernels::parameter_use::value;
        const bool wrong_type =
            parameter.type && (wants_array ? argument.has_type && argument.type != *parameter.type
                                           : !argument.has_type || argument.type != *parameter.type);
        if (wants_array != argument.is_array || wrong_type) {
            throw argument_type_error(start() + text_of(argument));
        }
        if (!argument.is_array) {
            continue;
        }
        const kernels::parameter_use use = use_of(accesses[array++]);
        if (use != parameter.use) {
            throw argument_error(start() + "an array as " + uses[static_cast<std::size_t>(use)] +
                                 ": pass it as weir::" + uses[static_cast<std::size_t>(parameter.use)] +
                                 "(...), or mend the signature");
        }
    }
}

}  // namespace

std::vector<declared_parameter> declared_parameters(const kernel& of) {
    if (of.parameters() == nullptr) {
        throw state_error("the parameters of the kernel " + of.name() +
                          " are not declared: see kernel::with_signature");
    }
    std::vector<declared_parameter> all;
    for (const kernels::parameter& one : of.parameters()->all) {
        const bool is_read = one.use == kernels::parameter_use::value || one.use == kernels::parameter_use::in;
        all.push_back({one.use != kernels::parameter_use::value, one.type,
                       is_read ? order::access_mode::read : order::access_mode::write,
                       one.use == kernels::parameter_use::out, kernels::to_string(one)});
    }
    return all;
}

namespace {

/// Whether the kernel says how many bytes its parameters have, and the arguments have as many.
bool has_right_sizes(const kernel& what, const kernel_arguments& arguments) noexcept {
    return arguments.sizes != 0 && arguments.sizes == what.code().parameter_sizes();
}

/// What `checked_launch` does where a glance does not tell that all is right.
[[gnu::noinline]] launch_shape checked_at_length(const kernel& what, const stream_ref& on, const launch_config& config,
                                                 const kernel_arguments& arguments,
                                                 std::span<const runtime::access_request> accesses) {
    expect_stream(what, on);
    if (what.parameters() != nullptr) {
        expect_parameters(what, arguments.all, accesses);
    } else if (!has_right_sizes(what, arguments)) {
        expect_bytes(what, arguments.all);
    }
    return what.code().shape_of(config);
}

}  // namespace

[[gnu::hot]] launch_shape checked_launch(const kernel& what, const stream_ref& on, const launch_config& config,
                                         const kernel_arguments& arguments,
                                         std::span<const runtime::access_request> accesses) {
    if (!is_on_device_of(what, on) || what.parameters() != nullptr || !has_right_sizes(what, arguments) ||
        !what.code().takes_row(config)) {
        return checked_at_length(what, on, config, arguments, accesses);
    }
    return kernel_code::numbers_of(config);
}

[[gnu::hot]] void expect_stream(const kernel& what, const stream_ref& on) {
    if (!is_on_device_of(what, on)) [[unlikely]] {
        refuse_stream(what, on);
    }
}

[[gnu::hot]] launch_shape checked_shape(const kernel& what, const launch_config& config) {
    return what.code().shape_of(config);
}

[[gnu::hot]] void put_launch(const kernel_code& code, launch_shape& shape, void* const* arguments, queue_handle into) {
    backend::cuda::launch(code.in(), code.function(), shape, arguments, into);
}

}  // namespace weir::detail
