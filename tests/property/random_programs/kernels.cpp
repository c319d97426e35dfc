#include "random_programs/kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace random_programs {

namespace {

/// The arithmetic of arithmetic.hpp. One thread does all of it, so that earlier writes show in later reads. Elements are volatile: a
/// program that is not ordered goes wrong without being undefined.
const std::string source = R"(
typedef unsigned long long bits;
struct work {
    int number;
    int adds;
    int spin;
    int reads[2];
    int writes[2];
};
static __device__ bits mix(bits a, bits b) {
    bits z = a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}
static __device__ double exact(bits mixed) { return (double)(mixed >> 12); }
static __device__ double fresh(int number, int which, int i) { return exact(mix(mix(number, which), i)); }
static __device__ bits bits_of(double value) { return (bits)__double_as_longlong(value); }

extern "C" __global__ void operate(double* read0, double* read1, double* write0, double* write1, work what) {
    volatile double* const reads[2] = {read0, read1};
    volatile double* const writes[2] = {write0, write1};
    for (volatile int i = 0; i < what.spin;) {
        i = i + 1;
    }
    for (int i = 0; i < what.writes[0] || i < what.writes[1]; ++i) {
        for (int which = 0; which < 2; ++which) {
            if (i >= what.writes[which]) {
                continue;
            }
            volatile double* const target = writes[which] + i;
            if (what.adds) {
                *target = *target + (double)(what.number % 1009 + i + 1);
                continue;
            }
            bits mixed = mix(bits_of(fresh(what.number, which, i)), bits_of(*target));
            for (int read = 0; read < 2 && what.reads[read] > 0; ++read) {
                mixed = mix(mixed, bits_of(reads[read][i % what.reads[read]]));
            }
            *target = exact(mixed);
        }
    }
}
extern "C" __global__ void assign(volatile double* to, int count, int number, int fills) {
    for (int i = 0; i < count; ++i) {
        to[i] = fresh(number, 0, fills ? 0 : i);
    }
}
extern "C" __global__ void copy(const volatile double* from, volatile double* to, int count) {
    double taken[1024];
    for (int i = 0; i < count; ++i) {
        taken[i] = from[i];
    }
    for (int i = 0; i < count; ++i) {
        to[i] = taken[i];
    }
}
)";

/// The layout that the source has.
struct work {
    int number;
    int adds;
    int spin;
    int reads[2];
    int writes[2];
};

/// Starting a kernel takes longer than host code does: so it also spins for longer.
constexpr int spin_factor = 20;

int size_of(std::span<const weir::array> all, std::size_t i) {
    return i < all.size() ? static_cast<int>(all[i].size()) : 0;
}

/// The value that the kernel gets for an array that does not exist.
constexpr std::uint64_t no_array = 0;

/// Adds the ranges that are written, then launches.
template <class... A>
weir::completion with_writes(const weir::kernel& what, const weir::on& where, std::span<weir::array> writes,
                             const work& of, A... reads) {
    auto first = weir::inout(writes[0].view<double>());
    if (writes.size() == 1) {
        return weir::launch(where, what, {1, 1}, std::move(reads)..., std::move(first), no_array, of);
    }
    return weir::launch(where, what, {1, 1}, std::move(reads)..., std::move(first),
                        weir::inout(writes[1].view<double>()), of);
}

}  // namespace

kernels::kernels(const weir::device& on)
    : operate_(weir::kernel::from_source(source, "operate", {}, on)),
      assign_(weir::kernel::from_source(source, "assign", {}, on)),
      copy_(weir::kernel::from_source(source, "copy", {}, on)) {}

weir::completion kernels::operate(const step& one, const weir::on& where, std::span<const weir::array> reads,
                                  std::span<weir::array> writes) const {
    const work of{one.number,
                  one.adds ? 1 : 0,
                  spin_factor * one.spin,
                  {size_of(reads, 0), size_of(reads, 1)},
                  {size_of(writes, 0), size_of(writes, 1)}};
    if (reads.empty()) {
        return with_writes(operate_, where, writes, of, no_array, no_array);
    }
    auto first = weir::in(reads[0].view<double>());
    if (reads.size() == 1) {
        return with_writes(operate_, where, writes, of, std::move(first), no_array);
    }
    return with_writes(operate_, where, writes, of, std::move(first), weir::in(reads[1].view<double>()));
}

weir::completion kernels::assign(const step& one, const weir::on& where, weir::array& target) const {
    return weir::launch(where, assign_, {1, 1}, weir::out(target.view<double>()), static_cast<int>(target.size()),
                        one.number, one.kind == step_kind::fill ? 1 : 0);
}

weir::completion kernels::copy(const weir::on& where, weir::array& target, const weir::array& source) const {
    return weir::launch(where, copy_, {1, 1}, weir::in(source.view<double>()), weir::out(target.view<double>()),
                        static_cast<int>(target.size()));
}

}  // namespace random_programs
