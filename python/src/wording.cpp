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
                              {"reshape(on, x, shape) copies", "x.reshape(shape) copies"},
                              {"after broadcast_to", "after broadcasting"},
                              {"<weir.array ", "<weir.Array "},
                              {"<weir.stream ", "<weir.Stream "},
                              {"<weir.event ", "<weir.Event "},
                              {"<weir.device ", "<weir.Device "},
                              {"<weir.kernel ", "<weir.Kernel "},
                              {"fft_plan: ", "FFT: "},
                              {"fft_plan(", "FFT("},
                              {"weir::copy(stream, to, from)", "weir.copy(to, from)"},
                              {"weir::stream(device)", "weir.Stream(device)"}};
    for (const word& one : words) {
        for (std::size_t at = text.find(one.cpp); at != std::string::npos; at = text.find(one.cpp, at)) {
            text.replace(at, one.cpp.size(), one.python);
            at += one.python.size();
        }
    }
    return text;
}

}  // namespace weir::python
