// The same work with command queues of OpenCL; on a machine without a GPU these are PoCL's, which run on the CPU as Weir's
// streams do.
#include <CL/cl.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "contest.hpp"

namespace weir::bench {

namespace {

void expect(cl_int status, const char* what) {
    if (status != CL_SUCCESS) {
        throw std::runtime_error(std::string("OpenCL: ") + what + " failed with " + std::to_string(status));
    }
}

/// A kernel that does nothing, on the first CPU. Lives as long as the process.
class device {
public:
    static device& instance() {
        static device one;
        return one;
    }
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    ~device() = default;

    [[nodiscard]] const std::string& name() const { return name_; }

    /// An event behind the kernel, which waits for `after`. The caller releases it; null unless `wanted`.
    cl_event enqueue(cl_command_queue queue, const std::vector<cl_event>& after = {}, bool wanted = false) const {
        constexpr std::size_t one = 1;
        cl_event event = nullptr;
        clEnqueueNDRangeKernel(queue, kernel_, 1, nullptr, &one, &one, static_cast<cl_uint>(after.size()),
                               after.empty() ? nullptr : after.data(), wanted ? &event : nullptr);
        return event;
    }

    [[nodiscard]] cl_command_queue make_queue(cl_command_queue_properties properties) const {
        cl_int status = CL_SUCCESS;
        cl_command_queue made = clCreateCommandQueue(context_, device_, properties, &status);
        expect(status, "clCreateCommandQueue");
        return made;
    }

private:
    device() {
        cl_uint count = 0;
        std::array<cl_platform_id, 8> platforms{};
        expect(clGetPlatformIDs(platforms.size(), platforms.data(), &count), "clGetPlatformIDs");
        for (cl_uint i = 0; i < count && device_ == nullptr; ++i) {
            if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device_, nullptr) == CL_SUCCESS) {
                std::array<char, 64> text{};
                clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, text.size() - 1, text.data(), nullptr);
                name_ = std::string(text.data()).starts_with("Portable") ? "PoCL" : text.data();
            } else {
                device_ = nullptr;
            }
        }
        if (device_ == nullptr) {
            throw std::runtime_error("OpenCL: no platform with a CPU");
        }
        cl_int status = CL_SUCCESS;
        context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
        expect(status, "clCreateContext");
        const char* source = "__kernel void nothing(__global double* x) {}";
        cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
        expect(status, "clCreateProgramWithSource");
        expect(clBuildProgram(program, 1, &device_, "", nullptr, nullptr), "clBuildProgram");
        kernel_ = clCreateKernel(program, "nothing", &status);
        expect(status, "clCreateKernel");
        cl_mem memory = clCreateBuffer(context_, CL_MEM_READ_WRITE, 512, nullptr, &status);
        expect(status, "clCreateBuffer");
        expect(clSetKernelArg(kernel_, 0, sizeof memory, &memory), "clSetKernelArg");
    }

    std::string name_;
    cl_device_id device_ = nullptr;
    cl_context context_ = nullptr;
    cl_kernel kernel_ = nullptr;
};

class queue {
public:
    explicit queue(cl_command_queue_properties properties = 0) : handle_(device::instance().make_queue(properties)) {}
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    ~queue() { clReleaseCommandQueue(handle_); }
    [[nodiscard]] cl_command_queue handle() const { return handle_; }
    void finish() const { clFinish(handle_); }
    void flush() const { clFlush(handle_); }

private:
    cl_command_queue handle_;
};

contestant chain() {
    constexpr std::size_t count = 2000;
    const auto on = std::make_shared<queue>();
    return {device::instance().name() + ", in-order queue", count, [on] {
                for (std::size_t i = 0; i < count; ++i) {
                    device::instance().enqueue(on->handle());
                }
                on->finish();
            }};
}

contestant ping_pong() {
    struct rig {
        queue one, other;
    };
    constexpr std::size_t count = 2000;
    const auto with = std::make_shared<rig>();
    return {device::instance().name() + ", two in-order queues, events", count, [with] {
                const device& gpu = device::instance();
                std::vector<cl_event> after;
                for (std::size_t i = 0; i < count; ++i) {
                    const queue& on = i % 2 == 0 ? with->one : with->other;
                    cl_event done = gpu.enqueue(on.handle(), after, true);
                    on.flush();  // the standard asks for it before another queue may wait for the event
                    if (!after.empty()) {
                        clReleaseEvent(after[0]);
                    }
                    after.assign(1, done);
                }
                with->one.finish();
                with->other.finish();
                clReleaseEvent(after[0]);
            }};
}

contestant fork_join() {
    constexpr std::size_t count = 200;
    const auto on = std::make_shared<queue>(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    return {device::instance().name() + ", out-of-order queue, events", count, [on] {
                const device& gpu = device::instance();
                std::vector<cl_event> joined;
                for (std::size_t i = 0; i < count; ++i) {
                    const std::vector<cl_event> forked{gpu.enqueue(on->handle(), joined, true)};
                    std::vector<cl_event> branches;
                    for (int j = 0; j < 8; ++j) {
                        branches.push_back(gpu.enqueue(on->handle(), forked, true));
                    }
                    clReleaseEvent(forked[0]);
                    if (!joined.empty()) {
                        clReleaseEvent(joined[0]);
                    }
                    joined.assign(1, gpu.enqueue(on->handle(), branches, true));
                    for (cl_event one : branches) {
                        clReleaseEvent(one);
                    }
                }
                on->finish();
                clReleaseEvent(joined[0]);
            }};
}

contestant record_wait() {
    struct rig {
        queue one, other;
    };
    constexpr std::size_t count = 2000;
    const auto with = std::make_shared<rig>();
    return {device::instance().name() + ", two in-order queues, events", count, [with] {
                for (std::size_t i = 0; i < count; ++i) {
                    cl_event done = device::instance().enqueue(with->one.handle(), {}, true);
                    with->one.flush();
                    clEnqueueBarrierWithWaitList(with->other.handle(), 1, &done, nullptr);
                    clReleaseEvent(done);
                }
                with->one.finish();
                with->other.finish();
            }};
}

contestant host_wait() {
    constexpr std::size_t count = 200;
    const auto on = std::make_shared<queue>();
    return {device::instance().name() + ", in-order queue, clFinish", count, [on] {
                for (std::size_t i = 0; i < count; ++i) {
                    device::instance().enqueue(on->handle());
                    on->finish();
                }
            }};
}

const peer chain_peer("chain", chain);
const peer ping_pong_peer("ping_pong", ping_pong);
const peer fork_join_peer("fork_join", fork_join);
const peer record_wait_peer("record_wait", record_wait);
const peer host_wait_peer("host_wait", host_wait);

}  // namespace

}  // namespace weir::bench
