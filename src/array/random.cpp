#include "weir/random.hpp"

#include <random>
#include <string>

#include "array/cuda/enqueue.hpp"
#include "array/cuda/source.hpp"
#include "array/operation.hpp"
#include "array/philox.hpp"
#include "backend/capability/kernels.hpp"
#include "weir/detail/submission.hpp"
#include "weir/error.hpp"
#include "weir/on.hpp"

namespace weir {

namespace {

std::uint64_t any_seed() {
    std::random_device source;
    return std::uint64_t{source()} << 32U | source();
}

void fill_random(double* to, std::size_t count, std::uint64_t seed) noexcept {
    for (std::size_t i = 0; i < count; i += 2) {
        const auto words = random_numbers::block_of(seed, i / 2);
        to[i] = random_numbers::real(words[0], words[1]);
        if (i + 1 < count) {
            to[i + 1] = random_numbers::real(words[2], words[3]);
        }
    }
}

void fill_random(float* to, std::size_t count, std::uint64_t seed) noexcept {
    for (std::size_t i = 0; i < count; i += 4) {
        const auto words = random_numbers::block_of(seed, i / 4);
        for (std::size_t k = 0; k < 4 && i + k < count; ++k) {
            to[i + k] = random_numbers::real(words[k]);
        }
    }
}

template <class T>
void enqueue(const on& where, const array& to, std::uint64_t seed) {
    const runtime::access_request accesses[] = {operation::writes(to)};
    if (const array_kernels::kernels* const device = array_kernels::kernels_of(where.stream().device())) {
        const walk::operand all[] = {operation::operand_of(to)};
        array_kernels::launches work(*device);
        work.add(array_kernels::function::random, {dtype_of<T>, dtype_of<T>, nullptr}, {},
                 walk::plan(to.shape().extents(), all), {seed, 0});
        array_kernels::enqueue(where, accesses, std::move(work));
        return;
    }
    operation::enqueue(where, accesses,
                       [first = reinterpret_cast<T*>(to.device_data()), count = static_cast<std::size_t>(to.size()),
                        seed] { fill_random(first, count, seed); });
}

}  // namespace

array random(const shape& extents, std::optional<std::uint64_t> seed, dtype type, const stream_ref& on,
             source_location where) {
    if (type != dtype::float32 && type != dtype::float64) {
        throw argument_type_error("random numbers of " + std::string(name_of(type)) +
                                  ": take float32 or float64, and convert with astype");
    }
    array made = empty(extents, type, on, where);
    const std::uint64_t key = seed ? *seed : any_seed();
    if (type == dtype::float32) {
        enqueue<float>({on, where}, made, key);
    } else {
        enqueue<double>({on, where}, made, key);
    }
    return made;
}

}  // namespace weir
