// Work on parallel streams between a fork and a join: docs/how-ordering-works.md. Exits with 0 if everything ran in order.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>
#include <weir/weir.hpp>

int main(int argc, char** argv) {
    const weir::device device = weir::device::from_name(argc > 1 ? argv[1] : "cpu");  // "cpu", "cpu:inline", "sim:0"
    constexpr std::int64_t n = 1000;
    const weir::stream s(device);
    const weir::use current(s);
    std::vector<weir::array> parts;
    for (int i = 0; i < 3; ++i) {
        parts.push_back(weir::zeros(n, weir::dtype::float64, s));
    }

    {
        weir::parallel blocks(parts.size(), s);  // three streams, after what s was given before
        for (std::size_t i = 0; i < parts.size(); ++i) {
            fill(blocks[i], parts[i], static_cast<double>(i + 1));
        }
    }  // s goes on after all three; the host has not waited
    const weir::array sum = parts[0] + parts[1] + parts[2];

    std::cout << "sum " << sum.read<double>()[0] << '\n';
    return sum.read<double>()[n - 1] == 6 ? 0 : 1;
}
