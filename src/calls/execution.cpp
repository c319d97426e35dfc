#include "calls/execution.hpp"

#include <string>

#include "runtime/devices/device_state.hpp"
#include "weir/detail/passkey.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

bool is_of_kind(device one, device_kind kind) noexcept {
    return one.kind() == kind || (kind == device_kind::cuda && one.state(detail::key).stands_for_cuda());
}

device first_of(device_kind kind) {
    if (kind == device_kind::sim) {
        return sim(0);
    }
    if (kind == device_kind::cuda) {
        return cuda();  // throws if there is none
    }
    if (kind == device_kind::registered) {
        throw argument_error(
            "execution on a registered device: pass the device, since its kind says not which one is meant");
    }
    return kind == device_kind::cpu_inline ? cpu_inline() : cpu();
}

/// The device to compute on, for an operand on `home` and a stream, if there is one, of the device `of_stream`.
device resolve(const execution_target& wanted, device home, device of_stream) {
    if (const device* const named = std::get_if<device>(&wanted)) {
        return *named;
    }
    const device_kind* const kind = std::get_if<device_kind>(&wanted);
    if (kind == nullptr || is_of_kind(home, *kind)) {
        return home;
    }
    return is_of_kind(of_stream, *kind) ? of_stream : first_of(*kind);
}

}  // namespace

bool share_memory(device a, device b) noexcept {
    return &a.state(detail::key).memory_space() == &b.state(detail::key).memory_space();
}

device device_of(const array& operand, device of_stream) noexcept {
    return operand.size() > 0 ? operand.device() : of_stream;
}

device computing_device(const execution_target& wanted, device home) { return resolve(wanted, home, home); }

device computing_device(const execution_target& wanted, const array& operand) {
    const device home = device_of(operand, cpu());
    return resolve(wanted, home, home);
}

device computing_device(const char* call, const execution_target& wanted, const array& operand,
                        const stream_ref& stream) {
    const device of_stream = stream.device();
    const device found = resolve(wanted, device_of(operand, of_stream), of_stream);
    if (found == of_stream) {
        return found;
    }
    if (std::holds_alternative<std::monostate>(wanted)) {
        if (share_memory(found, of_stream)) {
            return of_stream;
        }
        throw argument_error(std::string(call) + ": the stream \"" + std::string(stream.name()) + "\" is one of " +
                             of_stream.name() + ", but the operand lies on " + found.name() + "; pass a stream of " +
                             found.name() + ", or " + of_stream.name() +
                             " as execution, to have the operand copied there and the result copied back");
    }
    throw argument_error(std::string(call) + ": the stream \"" + std::string(stream.name()) + "\" is one of " +
                         of_stream.name() + ", but execution is on " + found.name() + "; pass a stream of " +
                         found.name() + ", or none");
}

}  // namespace weir::calls
