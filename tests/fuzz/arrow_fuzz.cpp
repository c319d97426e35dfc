// Fuzzes the import of Arrow structures: build/fuzz-arrow with libFuzzer's options. Built with -DWEIR_FUZZ=ON and Clang.
#include <cstddef>
#include <cstdint>

#include "fuzz/arrow_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static weir::fuzz::outcomes seen;
    weir::fuzz::arrow_input({data, size}, seen);
    return 0;
}
