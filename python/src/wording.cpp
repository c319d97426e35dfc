#include "wording.hpp"

#include <string_view>

namespace weir::python {

std::string in_words_of_python(std::string text) {
    struct word {
        std::string_view cpp;
        std::string_view python;
    };
    constexpr word words[] = {{"astype(on, x, dtype)", "x.astype(dtype)"},
                              {"to(on, x, device)", "x.to(device)"},
                              {"contiguous(on, x)", "x.copy()"},
                              {"x.reshape({-1})", "x.reshape((-1,))"},
                              {"reshape(on, x, shape) copies", "x.reshape(shape) copies"},
                              {"after broadcast_to", "after broadcasting"},
                              {"<weir.array ", "<weir.Array "},
                              {"<weir.stream ", "<weir.Stream "},
                              {"<weir.event ", "<weir.Event "},
                              {"<weir.device ", "<weir.Device "},
                              {"<weir.kernel ", "<weir.Kernel "},
                              {"fft_plan", "FFT"},
                              {"matmul_plan", "Matmul"},
                              {"direct_solver", "DirectSolver"},
                              // The lengths of a transform: n for one axis and s for several are both n in Python.
                              {"; give their lengths as s", "; give their lengths as n, one for each axis"},
                              {": s has the lengths of ", ": n has the lengths of "},
                              {"can be given as n or s", "can be given as n"},
                              {"with reshape({1})", "with x.reshape(1)"},
                              {"weir::copy(stream, to, from)", "weir.copy(to, from)"},
                              {"weir::copy_from_host, or with weir::copy from an array on cpu", "weir.copy"},
                              {"weir::stream(device)", "weir.Stream(device)"},
                              {"adopt a weir::native_queue instead", "make one with weir.Stream(device)"},
                              {"weir::sim(0)", "weir.Device(\"sim:0\")"},
                              {"device::synchronize", "device.synchronize()"},
                              {"weir::event({.timing = true})", "weir.Event(timing=True)"},
                              {"record({.timing = true})", "record(timing=True)"},
                              {"weir::captures(weir::capture_knowledge::none)", "weir.captures(\"none\")"},
                              {"; memory::pinned() is", "; memory=\"pinned\" is"},
                              {"; memory::managed() is", "; memory=\"managed\" is"},
                              {"call memory::trim", "call weir.memory.trim"},
                              {", testing::simulate_cuda)", ", weir.testing.simulate_cuda)"},
                              {"ask for strided<T, Rank>(), or make", "make"},
                              {"pass strided<T, Rank>() of it, or a copy", "pass a copy"},
                              {"a weir::kernel, compile the program with nvcc (parallel_for with a __host__ __device__ "
                               "lambda), declare work of others with weir::access",
                               "a weir.Kernel"},
                              {"pass a structure that is trivially copyable",
                               "pass a structure of ctypes, a record of NumPy (of a dtype with align=True), or bytes"},
                              {", and got nullptr", ", and got None"},
                              {"see kernel::with_signature", "give weir.Kernel a signature"},
                              {"weir::array", "weir.Array"},
                              {"weir::in(", "weir.In("},
                              {"weir::out(", "weir.Out("},
                              {"weir::inout(", "weir.InOut("},
                              {"call fft::fft", "call weir.fft.fft"},
                              {"a complex_to_complex plan", "a plan of kind=\"c2c\""},
                              {"a complex_to_real plan", "a plan of kind=\"c2r\""},
                              {"a real_to_complex plan", "a plan of kind=\"r2c\""},
                              {"fft_direction::", "direction "},
                              // What is left has the same name in both.
                              {"weir::memory::", "weir.memory."},
                              {"weir::", "weir."}};
    for (const word& one : words) {
        for (std::size_t at = text.find(one.cpp); at != std::string::npos; at = text.find(one.cpp, at)) {
            text.replace(at, one.cpp.size(), one.python);
            at += one.python.size();
        }
    }
    return text;
}

}  // namespace weir::python
