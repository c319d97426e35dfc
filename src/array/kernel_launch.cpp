// The checks of a kernel launch, and how it enters the driver's queue.
#include <string>
#include <vector>

#include "array/kernel_code.hpp"
#include "array/kernel_messages.hpp"
#include "backend/capability/kernels.hpp"
#include "runtime/streams/stream_state.hpp"
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

std::string text_of(const argument_description& argument) {
    if (argument.is_null) {
        return "nullptr";
    }
    const std::string type(argument.has_type ? name_of(argument.type) : "a structure");
    if (argument.is_array) {
        return argument.has_type ? "an array of " + type : "an array";
    }
    return argument.has_type ? type : type + " of " + std::to_string(argument.bytes) + " bytes";
}

[[noreturn]] void refuse_bytes(const kernel& what, std::size_t position, const argument_description& given,
                               std::size_t has) {
    throw argument_error(number_of(position) + " of the kernel " + what.to_string() + " is " + text_of(given) +
                         ", which has " + std::to_string(given.bytes) + " bytes, and the parameter has " +
                         std::to_string(has) + ": pass what the kernel declares, float(x) for float");
}

void expect_bytes(const kernel& what, std::span<const argument_description> arguments) {
    const auto& bytes = what.code(detail::key).parameter_bytes();
    if (!bytes) {
        return;
    }
    if (bytes->size() != arguments.size()) {
        kernels::refuse_count(what, arguments.size(), bytes->size());
    }
    const std::size_t* has = bytes->data();
    for (const argument_description& one : arguments) {
        if (one.bytes != *has++) {
            refuse_bytes(what, static_cast<std::size_t>(&one - arguments.data()), one, has[-1]);
        }
    }
}

bool is_on_device_of(const kernel& what, const stream_ref& on) noexcept {
    return &what.code(detail::key).on().state(detail::key) == &on.state(detail::key).device();
}

kernels::parameter_use use_of(const runtime::access_request& access) {
    if (access.mode == order::access_mode::read) {
        return kernels::parameter_use::in;
    }
    return access.overwrites ? kernels::parameter_use::out : kernels::parameter_use::inout;
}

void expect_structure(const kernel& what, std::size_t position, const argument_description& argument) {
    const kernels::parameter& parameter = what.parameters(detail::key)->all[position];
    if (argument.is_array || argument.is_null || argument.has_type) {
        kernels::refuse_type(what, position, parameter, text_of(argument));
    }
    const auto& bytes = what.code(detail::key).parameter_bytes();
    if (bytes && (*bytes)[position] != argument.bytes) {
        kernels::refuse_size(what, position, parameter, argument.bytes, (*bytes)[position]);
    }
}

void expect_parameters(const kernel& what, std::span<const argument_description> arguments,
                       std::span<const runtime::access_request> accesses) {
    const std::vector<kernels::parameter>& parameters = what.parameters(detail::key)->all;
    if (parameters.size() != arguments.size()) {
        kernels::refuse_count(what, arguments.size(), parameters.size());
    }
    std::size_t array = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const argument_description& argument = arguments[i];
        const kernels::parameter& parameter = parameters[i];
        if (parameter.use == kernels::parameter_use::structure) {
            expect_structure(what, i, argument);
            continue;
        }
        const bool wants_array = is_array(parameter);
        const bool wrong_type =
            parameter.type && (wants_array ? argument.has_type && argument.type != *parameter.type
                                           : !argument.has_type || argument.type != *parameter.type);
        if (argument.is_null && wants_array) {
            continue;
        }
        if (wants_array != argument.is_array || wrong_type) {
            kernels::refuse_type(what, i, parameter, text_of(argument));
        }
        if (!argument.is_array) {
            continue;
        }
        const kernels::parameter_use use = use_of(accesses[array++]);
        if (use != parameter.use) {
            kernels::refuse_use(what, i, parameter, use);
        }
    }
}

}  // namespace

launch_shape checked_launch(const kernel& what, const stream_ref& on, const launch_config& config,
                            const argument_descriptions& arguments, std::span<const runtime::access_request> accesses) {
    if (!is_on_device_of(what, on)) [[unlikely]] {
        refuse_stream(what, on);
    }
    if (what.parameters(detail::key) != nullptr) {
        expect_parameters(what, arguments.all, accesses);
    } else if (arguments.sizes == 0 || arguments.sizes != what.code(detail::key).parameter_sizes()) {
        expect_bytes(what, arguments.all);
    }
    return what.code(detail::key).shape_of(config);
}

void throw_with_place(const error& refused, const kernel& what, const runtime::site& at) {
    const std::string text = std::string(refused.what()) + "; the launch is \"" +
                             (at.label != nullptr ? at.label : what.name()) + "\" (" + at.where.file + ":" +
                             std::to_string(at.where.line) + ")";
    if (dynamic_cast<const argument_type_error*>(&refused) != nullptr) {
        throw argument_type_error(text);
    }
    if (dynamic_cast<const argument_error*>(&refused) != nullptr) {
        throw argument_error(text);
    }
}

void expect_stream(const kernel& what, const stream_ref& on) {
    if (!is_on_device_of(what, on)) [[unlikely]] {
        refuse_stream(what, on);
    }
}

launch_shape checked_shape(const kernel& what, const launch_config& config) {
    return what.code(detail::key).shape_of(config);
}

void put_launch(const kernel_code& code, launch_shape& shape, void* const* arguments, queue_handle into) {
    code.in().launch(code.function(), shape, arguments, into);
}

}  // namespace weir::detail
