// Shared by the tests of the fake driver: its functions as Weir finds them, and kernels of the fake NVRTC.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/cuda/device/context.hpp"
#include "support/fake_cuda.hpp"

namespace weir::test {

using namespace backend::cuda;

/// The fake NVRTC, by the names of its functions.
struct fake_nvrtc {
    template <class Function>
    static Function* find(const char* name) {
        static void* const library = ::dlopen(std::getenv("WEIR_NVRTC_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
        void* const found = library != nullptr ? ::dlsym(library, name) : nullptr;
        if (found == nullptr) {
            throw std::runtime_error(std::string("no ") + name);
        }
        return reinterpret_cast<Function*>(found);
    }

    using program = void*;
    struct outcome {
        int error = 0;
        std::string log;
        std::string image;                 ///< the cubin, or the PTX if there is none
        std::vector<std::string> lowered;  ///< names of the expressions
    };
    static outcome compile(const std::string& source, std::vector<const char*> options = {"--gpu-architecture=sm_90"},
                           const std::vector<const char*>& expressions = {});
};

inline fake_nvrtc::outcome fake_nvrtc::compile(const std::string& source, std::vector<const char*> options,
                                               const std::vector<const char*>& expressions) {
    using text = const char*;
    program made = nullptr;
    find<int(program*, text, text, int, const text*, const text*)>("nvrtcCreateProgram")(&made, source.c_str(), nullptr,
                                                                                         0, nullptr, nullptr);
    for (const char* each : expressions) {
        find<int(program, text)>("nvrtcAddNameExpression")(made, each);
    }
    outcome result;
    result.error = find<int(program, int, const text*)>("nvrtcCompileProgram")(made, static_cast<int>(options.size()),
                                                                               options.data());
    const auto get = [made](const char* size, const char* what) {
        std::size_t bytes = 0;
        find<int(program, std::size_t*)>(size)(made, &bytes);
        std::string got(bytes, '\0');
        find<int(program, char*)>(what)(made, got.data());
        return got;
    };
    result.log = get("nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    result.image = get("nvrtcGetCUBINSize", "nvrtcGetCUBIN");
    if (result.image.empty()) {
        result.image = get("nvrtcGetPTXSize", "nvrtcGetPTX");
    }
    for (const char* each : expressions) {
        const char* name = nullptr;
        find<int(program, text, text*)>("nvrtcGetLoweredName")(made, each, &name);
        result.lowered.emplace_back(name != nullptr ? name : "");
    }
    find<int(program*)>("nvrtcDestroyProgram")(&made);
    return result;
}

/// A test with device 0 current. It leaves nothing held, failing or broken.
class fake_cuda_test : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(fake_cuda::in_use());
        ASSERT_NE(machine_driver().api, nullptr) << machine_driver().why_not;
        ASSERT_EQ(api.context_set_current(on_device(0).handle()), success);
        fake_cuda::forget_calls();
    }
    void TearDown() override {
        fake_cuda::fail_no_more();
        fake_cuda::open_all();
        fake_cuda::heal_contexts();
        api.context_set_current(on_device(0).handle());
        EXPECT_EQ(api.context_synchronize(), success);
    }

    stream_handle make_stream(unsigned flags = stream_non_blocking) const {
        stream_handle made = nullptr;
        EXPECT_EQ(api.stream_create(&made, flags, 0), success);
        return made;
    }
    event_handle make_event(unsigned flags = event_disable_timing) const {
        event_handle made = nullptr;
        EXPECT_EQ(api.event_create(&made, flags), success);
        return made;
    }
    device_pointer allocate(std::size_t bytes) const {
        device_pointer made = 0;
        EXPECT_EQ(api.memory_alloc(&made, bytes), success);
        return made;
    }
    /// Values that the host and the device can reach.
    template <class Value>
    Value* allocate_pinned(std::size_t count) const {
        void* made = nullptr;
        EXPECT_EQ(api.host_alloc(&made, count * sizeof(Value), host_alloc_portable), success);
        return static_cast<Value*>(made);
    }
    static device_pointer device_address(const void* of) { return reinterpret_cast<device_pointer>(of); }

    module_handle load(const std::string& image) const {
        module_handle made = nullptr;
        EXPECT_EQ(api.module_load(&made, image.data(), 0, nullptr, nullptr), success);
        return made;
    }
    function_handle kernel(module_handle of, const char* name) const {
        function_handle found = nullptr;
        EXPECT_EQ(api.module_function(&found, of, name), success);
        return found;
    }
    template <class... Arguments>
    result launch(function_handle what, unsigned grid, unsigned block, stream_handle on, Arguments... arguments) const {
        void* addresses[] = {&arguments..., nullptr};
        return api.launch(what, grid, 1, 1, block, 1, 1, 0, on, addresses, nullptr);
    }

    /// The context of a device, kept until the process ends.
    static const context& on_device(int number) {
        static const auto* const contexts =
            new std::array<context, 2>{{{*machine_driver().api, 0}, {*machine_driver().api, 1}}};
        return (*contexts)[static_cast<std::size_t>(number)];
    }

    const driver_api& api = *machine_driver().api;
};

}  // namespace weir::test
