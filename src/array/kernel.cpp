#include "weir/kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "array/kernel_code.hpp"
#include "array/kernel_names.hpp"
#include "backend/capability/capabilities.hpp"
#include "backend/capability/kernels.hpp"
#include "runtime/devices/device_state.hpp"
#include "runtime/host/fork.hpp"
#include "weir/error.hpp"

namespace weir {

namespace {

using backend::capability::compiled_program;
using backend::capability::function_handle;
using backend::capability::loaded_code;

/// The capability that runs kernels on a device. Throws argument_error.
const backend::capability::kernels& kernels_for(const device& on, const std::string& name) {
    runtime::fork_guard::expect_usable();
    if (on.state(detail::key).stands_for_cuda()) {
        throw argument_error(
            "the kernel " + name + " cannot be made for " + on.name() +
            ", which is simulated (WEIR_SIMULATE, testing::simulate_cuda): CUDA C++, PTX and cubins need "
            "a GPU; operations on arrays, parallel_for and host_task run on simulated devices as well");
    }
    const backend::capability::kernels* const found = on.state(detail::key).driver().can().kernels;
    if (found == nullptr) {
        throw argument_error("the kernel " + name + " cannot be made for " + on.name() +
                             ": CUDA C++, PTX and cubins run on CUDA devices alone, and never on simulated ones; "
                             "parallel_for and host_task take code for the others");
    }
    on.state(detail::key).expect_usable();
    return *found;
}

std::string what_is(const std::string& name) { return "the kernel " + name; }

void expect_name(const std::string& name) {
    if (name.empty() || name.find('\0') != std::string::npos) {
        throw argument_error("say which kernel is meant: its name is empty, or has a zero byte");
    }
}

/// Reads a number from the bytes of a file for a machine with the byte order of this one.
template <class Number>
std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at) {
    Number value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
    return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

/// The size of the code according to its own headers: the driver reads that far, whatever memory is there. 0 if it is neither of the
/// two formats with lengths: an ELF file, with its table of sections at the end, and a fat binary.
std::uint64_t stated_size(std::span<const std::byte> code) {
    constexpr std::uint64_t elf_magic = 0x464c457f;
    constexpr std::uint64_t fat_magic = 0xba55ed50;
    constexpr std::size_t elf_header = 64;
    constexpr std::size_t fat_header = 16;
    const std::uint64_t magic = code.size() >= sizeof(std::uint32_t) ? number_at<std::uint32_t>(code, 0) : 0;
    if (magic == elf_magic && code.size() >= elf_header) {
        return saturated_sum(number_at<std::uint64_t>(code, 40),
                             number_at<std::uint16_t>(code, 58) * number_at<std::uint16_t>(code, 60));
    }
    if (magic == fat_magic && code.size() >= fat_header) {
        return saturated_sum(number_at<std::uint64_t>(code, 8), number_at<std::uint16_t>(code, 6));
    }
    return magic == elf_magic || magic == fat_magic ? elf_header : 0;
}

void expect_sizes(const kernel& of, const std::vector<kernels::parameter>& declared,
                  const std::vector<std::size_t>& bytes) {
    for (std::size_t i = 0; i < declared.size(); ++i) {
        if (declared[i].use == kernels::parameter_use::structure) {
            continue;  // has the kernel's size
        }
        const std::size_t its = is_array(declared[i]) ? sizeof(void*) : size_of(*declared[i].type);
        if (its != bytes[i]) {
            throw argument_error("parameter " + std::to_string(i + 1) + " of the signature is \"" +
                                 kernels::to_string(declared[i]) + "\", which has " + std::to_string(its) +
                                 " bytes, and that of the kernel " + of.name() + " has " + std::to_string(bytes[i]) +
                                 ": declare what the kernel declares");
        }
    }
}

}  // namespace

kernel::kernel(std::shared_ptr<const detail::kernel_code> code) noexcept : code_(std::move(code)) {}

kernel kernel::from_source(const std::string& source, const std::string& name, const std::vector<std::string>& options,
                           weir::device on) {
    const backend::capability::kernels& in = kernels_for(on, name);
    const auto names = [&] { return kernels::names_after(source, "__global__"); };
    const compiled_program program = [&] {
        try {
            return in.compile({source, name, options});
        } catch (const argument_error& wrong) {
            // An expression that names no kernel fails in code that the compiler generated.
            const std::vector<std::string> has = names();
            const std::string plain = name.substr(0, name.find('<'));
            const bool is_there = std::any_of(has.begin(), has.end(), [&](const std::string& one) {
                return plain == one || plain.ends_with("::" + one);
            });
            if (name.empty() || is_there || has.empty()) {
                throw;
            }
            throw argument_error("the source has no kernel " + name + kernels::list_of(has) + "\n" + wrong.what());
        }
    }();
    std::unique_ptr<loaded_code> code = in.load(program.image, what_is(name));
    const function_handle function = code->find(program.symbol);
    if (function == nullptr) {
        throw argument_error("the source has no kernel " + name + kernels::list_of(names()) +
                             "; where a part of a source is extern \"C\", the kernel has to be, too");
    }
    return kernel(detail::make_kernel_code(on, in, name, std::move(code), function));
}

kernel kernel::from_ptx(const std::string& text, const std::string& name, weir::device on) {
    const backend::capability::kernels& in = kernels_for(on, name);
    expect_name(name);
    std::unique_ptr<loaded_code> code = in.load(text, what_is(name));
    const function_handle function = code->find(name);
    if (function == nullptr) {
        throw argument_error("the PTX has no kernel " + name + kernels::list_of(kernels::names_after(text, ".entry")));
    }
    return kernel(detail::make_kernel_code(on, in, name, std::move(code), function));
}

kernel kernel::from_cubin(std::span<const std::byte> bytes, const std::string& name, weir::device on) {
    const backend::capability::kernels& in = kernels_for(on, name);
    expect_name(name);
    if (bytes.empty()) {
        throw argument_error("the code of the kernel " + name + " is empty");
    }
    if (const std::uint64_t size = stated_size(bytes); size > bytes.size()) {
        throw argument_error("the code of the kernel " + name + " is cut off: it says that it has " +
                             std::to_string(size) + " bytes or more, and there are " + std::to_string(bytes.size()));
    }
    const std::string image(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::unique_ptr<loaded_code> code = in.load(image, what_is(name));
    const function_handle function = code->find(name);
    if (function == nullptr) {
        throw argument_error("the code has no kernel " + name +
                             ": the name is that of the symbol, which is mangled unless the kernel is extern \"C\" "
                             "(cuobjdump --dump-elf-symbols lists them)");
    }
    return kernel(detail::make_kernel_code(on, in, name, std::move(code), function));
}

kernel kernel::from_function(void* handle, weir::device on) {
    const backend::capability::kernels& in = kernels_for(on, "of a function");
    if (handle == nullptr) {
        throw argument_error("a kernel of a function needs a CUfunction, and got null");
    }
    auto* const function = static_cast<function_handle>(handle);
    in.load_function(function);
    const std::string name = in.name_of(function);
    return kernel(detail::make_kernel_code(on, in, name.empty() ? "of a function" : name, nullptr, function));
}

kernel kernel::with_signature(std::string_view text) const {
    kernel declared = *this;
    detail::kernel_parameters parameters{kernels::parse_signature(text)};
    if (const auto& bytes = code_->parameter_bytes(); bytes && bytes->size() != parameters.all.size()) {
        throw argument_error("the signature \"" + std::string(text) + "\" has " +
                             std::to_string(parameters.all.size()) + " parameters, and the kernel " + name() + " has " +
                             std::to_string(bytes->size()));
    } else if (bytes) {
        expect_sizes(*this, parameters.all, *bytes);
    }
    parameters.has_structures =
        std::any_of(parameters.all.begin(), parameters.all.end(),
                    [](const kernels::parameter& one) { return one.use == kernels::parameter_use::structure; });
    declared.parameters_ = std::make_shared<const detail::kernel_parameters>(std::move(parameters));
    return declared;
}

const std::string& kernel::name() const noexcept { return code_->name(); }

device kernel::device() const noexcept { return code_->on(); }

int kernel::max_threads_per_block() const noexcept { return code_->max_threads(); }

std::size_t kernel::max_cooperative_blocks(const dimensions& block, std::size_t shared_bytes) const {
    return code_->most_cooperative_blocks(block, shared_bytes);
}

void* kernel::handle() const noexcept { return code_->function(); }

std::string kernel::to_string() const {
    std::string text = "<weir.kernel " + name();
    if (parameters_) {
        text += "(";
        for (const kernels::parameter& each : parameters_->all) {
            text += (text.ends_with("(") ? "" : ", ") + kernels::to_string(each);
        }
        text += ")";
    }
    return text + " on " + device().name() + ">";
}

}  // namespace weir
