// Containers of the standard library in Weir's memory, and Weir's arrays in a resource of the standard library.
#include <iostream>
#include <memory_resource>
#include <vector>
#include <weir/weir.hpp>

int main() {
    weir::memory::pmr_resource pool;  // Weir's pool for the standard library
    std::pmr::vector<double> samples(1000, 1.0, &pool);

    // The standard library's allocator for Weir's arrays of the CPU.
    const weir::memory::use scope(weir::memory::from_pmr(*std::pmr::new_delete_resource()));
    const weir::array x = weir::full(1000, 2.0, weir::dtype::float64);

    std::cout << samples.back() + x.read<double>()[999] << "\n";  // 3
    weir::cpu().synchronize();
}
