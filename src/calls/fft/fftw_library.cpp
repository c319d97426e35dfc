#include "calls/fft/fftw_library.hpp"

#include <type_traits>

#include "calls/shared_library.hpp"
#include "weir/detail/fork_section.hpp"

namespace weir::calls {

namespace {

template <class T>
fftw_functions<T> open() {
    constexpr bool single = std::is_same_v<T, float>;
    const shared_library library(single
                                     ? shared_library::name{"libfftw3f.so.3", "WEIR_FFTW_LIBRARY_F", "libfftw3-single3"}
                                     : shared_library::name{"libfftw3.so.3", "WEIR_FFTW_LIBRARY", "libfftw3-double3"});
    const std::string prefix = single ? "fftwf_" : "fftw_";
    fftw_functions<T> f;
    library.find((prefix + "plan_guru64_dft").c_str(), f.plan_dft);
    library.find((prefix + "plan_guru64_dft_r2c").c_str(), f.plan_dft_r2c);
    library.find((prefix + "plan_guru64_dft_c2r").c_str(), f.plan_dft_c2r);
    library.find((prefix + "execute_dft").c_str(), f.execute_dft);
    library.find((prefix + "execute_dft_r2c").c_str(), f.execute_dft_r2c);
    library.find((prefix + "execute_dft_c2r").c_str(), f.execute_dft_c2r);
    library.find((prefix + "destroy_plan").c_str(), f.destroy_plan);
    f.file = library.file();
    if (const void* text = library.try_find((prefix + "version").c_str())) {
        f.version = static_cast<const char*>(text);
    }
    return f;
}

}  // namespace

template <class T>
const fftw_functions<T>& fftw() {
    // Without it a child of a fork could wait for a thread that opens the library and that the child does not have.
    const detail::fork_section whole;
    // If opening throws, the next call tries again.
    static const fftw_functions<T> functions = open<T>();
    return functions;
}

template const fftw_functions<float>& fftw<float>();
template const fftw_functions<double>& fftw<double>();

}  // namespace weir::calls
