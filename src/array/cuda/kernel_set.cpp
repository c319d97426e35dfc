#include "array/cuda/kernel_set.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "array/loops.hpp"
#include "array/promotion.hpp"
#include "array/reduction_loops.hpp"
#include "weir/arithmetic.hpp"
#include "weir/reduction.hpp"
#include "weir/scalar.hpp"

namespace weir::array_kernels {

namespace {

/// The kernels of one source. Large enough that the definitions which all share cost little, and small enough that
/// several threads have work.
constexpr std::size_t most_in_set = 24;

/// Which forms of an element-wise kernel.
enum class forms : std::uint8_t {
    packed,   ///< the elements of each array lie one after the other
    strided,  ///< any strides, one or two dimensions
};

/// Collects descriptions, each once.
class collection {
public:
    void add(const description& one) {
        if (std::find(all_.begin(), all_.end(), one) == all_.end()) {
            all_.push_back(one);
        }
    }

    void add(description one, forms which) {
        one.packed = which == forms::packed;
        add(one);
        if (which == forms::strided) {
            one.rank = 2;
            add(one);
        }
    }

    void take_to(std::vector<kernel_set>& sets) const {
        for (std::size_t i = 0; i < all_.size(); i += most_in_set) {
            const auto first = all_.begin() + static_cast<std::ptrdiff_t>(i);
            sets.emplace_back(first, first + static_cast<std::ptrdiff_t>(std::min(most_in_set, all_.size() - i)));
        }
    }

private:
    kernel_set all_;
};

description element_wise(function what, dtype out, dtype result) {
    description one;
    one.what = what;
    one.stored[0] = out;
    one.computed[0] = result;
    return one;
}

void add_input(description& to, dtype stored, dtype computed, bool by_value = false) {
    to.stored[to.operands] = by_value ? computed : stored;
    to.computed[to.operands] = computed;
    to.by_value[to.operands] = by_value;
    ++to.operands;
}

/// Between two arrays of the type, and between an array and a number.
void add_binary(collection& to, binary_operation what, dtype type, forms which) {
    const loops::binary_loop loop = loops::find(what, type);
    if (loop.run == nullptr) {
        return;  // the type does not have it
    }
    using numbers = std::array<bool, 2>;
    for (const numbers& by_value : {numbers{false, false}, numbers{false, true}, numbers{true, false}}) {
        description one = element_wise(of(what), loop.result, loops::computed_in(loop.result));
        add_input(one, type, loop.a, by_value[0]);
        add_input(one, type, loop.b, by_value[1]);
        to.add(one, which);
    }
}

/// Between an array of `left` and one of `right`.
void add_mixed(collection& to, binary_operation what, dtype left, dtype right, forms which) {
    const auto is_signed = [](dtype type) { return kind_of(type) == dtype_kind::signed_integer; };
    if (loops::is_comparison(what) &&
        ((left == dtype::uint64 && is_signed(right)) || (is_signed(left) && right == dtype::uint64))) {
        return;  // they have no common type
    }
    const loops::binary_loop loop = loops::find(what, promote_types(left, right));
    if (loop.run != nullptr) {
        description one = element_wise(of(what), loop.result, loops::computed_in(loop.result));
        add_input(one, left, loop.a);
        add_input(one, right, loop.b);
        to.add(one, which);
    }
}

/// Between an array of integers and a real number: x * 0.5, x < 0.5.
void add_beside_real(collection& to, binary_operation what, dtype type, forms which) {
    const loops::binary_loop loop = loops::find(what, promotion::beside(type, scalar(0.5)));
    description one = element_wise(of(what), loop.result, loops::computed_in(loop.result));
    add_input(one, type, loop.a);
    add_input(one, type, loop.b, true);
    to.add(one, which);
    if (!loops::is_comparison(what)) {
        description other = element_wise(of(what), loop.result, loops::computed_in(loop.result));
        add_input(other, type, loop.a, true);
        add_input(other, type, loop.b);
        to.add(other, which);
    }
}

void add_unary(collection& to, unary_operation what, function as, dtype type, forms which) {
    const loops::unary_loop loop = loops::find(what, type);
    if (loop.run != nullptr) {
        description one = element_wise(as, loop.result, loop.in);
        add_input(one, type, loop.in);
        to.add(one, which);
    }
}

void add_select(collection& to, dtype type, forms which) {
    using numbers = std::array<bool, 2>;
    for (const numbers& by_value :
         {numbers{false, false}, numbers{false, true}, numbers{true, false}, numbers{true, true}}) {
        description one = element_wise(function::select, type, type);
        add_input(one, dtype::bool_, dtype::bool_);
        add_input(one, type, type, by_value[0]);
        add_input(one, type, type, by_value[1]);
        to.add(one, which);
    }
}

/// `rank`: the dimensions of the results, and `reduced_rank` those that are reduced, at most. Large arrays take several launches:
/// parts of the results first, and then the parts of those.
void add_reduction(collection& to, reduction what, function as, dtype type, std::uint8_t rank,
                   std::uint8_t reduced_rank) {
    const loops::reducer how = loops::find(what, type);
    description one;
    one.what = as;
    one.operands = 2;
    one.rank = rank;
    one.computed = {how.computed, how.computed};
    for (const bool is_first : {true, false}) {
        one.stored = {how.result, is_first ? type : how.computed};
        one.reduced_rank = is_first ? reduced_rank : std::uint8_t{1};
        one.last = true;
        one.mean = what == reduction::mean;
        to.add(one);
        one.last = false;
        one.mean = false;
        to.add(one);
    }
}

void add_reductions(collection& to, dtype type, std::uint8_t rank, std::uint8_t reduced_rank) {
    add_reduction(to, reduction::sum, function::plus, type, rank, reduced_rank);
    add_reduction(to, reduction::mean, function::plus, type, rank, reduced_rank);
    add_reduction(to, reduction::min, function::lesser, type, rank, reduced_rank);
    add_reduction(to, reduction::max, function::larger, type, rank, reduced_rank);
}

void add_conversion(collection& to, dtype target, dtype source, forms which) {
    if (target != source) {
        description one = element_wise(function::same, target, target);
        add_input(one, source, target);
        to.add(one, which);
    }
}

constexpr std::array operators = {
    binary_operation::add,           binary_operation::subtract,    binary_operation::multiply,
    binary_operation::divide,        binary_operation::equal,       binary_operation::not_equal,
    binary_operation::less,          binary_operation::less_equal,  binary_operation::greater,
    binary_operation::greater_equal, binary_operation::bitwise_and, binary_operation::bitwise_or,
    binary_operation::bitwise_xor};

void add_operations(collection& to, dtype type, forms which) {
    for (const binary_operation what : operators) {
        add_binary(to, what, type, which);
    }
    if (is_integer(type)) {
        for (const binary_operation what :
             {binary_operation::add, binary_operation::subtract, binary_operation::multiply, binary_operation::equal,
              binary_operation::not_equal, binary_operation::less, binary_operation::less_equal,
              binary_operation::greater, binary_operation::greater_equal}) {
            add_beside_real(to, what, type, which);
        }
    }
    add_unary(to, unary_operation::negative, function::negative, type, which);
    add_unary(to, unary_operation::invert, function::invert, type, which);
    add_select(to, type, which);
}

/// What operations on packed arrays of a type need, and reductions along one axis or all.
void add_packed(collection& to, dtype type) {
    add_operations(to, type, forms::packed);
    add_reductions(to, type, 1, 1);
    const bool is_real = kind_of(type) == dtype_kind::real;
    if (is_real || is_integer(type)) {
        for (const dtype computed : {dtype::int64, dtype::float64}) {
            to.add(element_wise(function::counted, type, computed), forms::packed);
        }
    }
    if (type == dtype::float32 || type == dtype::float64) {
        to.add(element_wise(function::random, type, type), forms::packed);
    }
}

/// Copies and fills move elements as bytes of their size, so that these serve all types.
void add_copies(collection& to) {
    for (const dtype type :
         {dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64, dtype::complex64, dtype::complex128}) {
        for (const bool by_value : {false, true}) {
            description one = element_wise(function::same, type, type);
            add_input(one, type, type, by_value);
            to.add(one, forms::packed);
            to.add(one, forms::strided);
        }
    }
}

constexpr std::array usual = {dtype::bool_, dtype::int32, dtype::int64, dtype::float32, dtype::float64};

}  // namespace

std::span<const dtype> usual_types() noexcept { return usual; }

std::vector<kernel_set> usual_sets() {
    std::vector<kernel_set> all;
    collection shared;
    add_copies(shared);
    for (const dtype target : usual) {
        for (const dtype source : usual) {
            add_conversion(shared, target, source, forms::packed);
        }
    }
    shared.take_to(all);
    for (const dtype type : usual) {
        collection one;
        add_packed(one, type);
        one.take_to(all);
    }
    return all;
}

std::vector<kernel_set> sets_for(dtype type) {
    std::vector<kernel_set> all;
    collection packed;
    add_packed(packed, type);
    packed.take_to(all);  // the same sets as in usual_sets, if the type is one of those
    collection rest;
    add_operations(rest, type, forms::strided);
    add_binary(rest, binary_operation::power, type, forms::packed);
    add_binary(rest, binary_operation::power, type, forms::strided);
    for (const auto& [rank, reduced_rank] : {std::pair<std::uint8_t, std::uint8_t>{1, 2}, {2, 1}, {2, 2}}) {
        add_reductions(rest, type, rank, reduced_rank);
    }
    for (const dtype other : usual) {
        for (const forms which : {forms::packed, forms::strided}) {
            add_conversion(rest, type, other, which);
            add_conversion(rest, other, type, which);
        }
    }
    rest.take_to(all);
    return all;
}

std::vector<kernel_set> sets_between(dtype one, dtype other) {
    collection mixed;
    for (const forms which : {forms::packed, forms::strided}) {
        for (const auto& [left, right] : {std::pair(one, other), std::pair(other, one)}) {
            for (const binary_operation what : operators) {
                add_mixed(mixed, what, left, right, which);
            }
            const dtype common = promote_types(left, right);
            description chosen = element_wise(function::select, common, common);
            add_input(chosen, dtype::bool_, dtype::bool_);
            add_input(chosen, left, common);
            add_input(chosen, right, common);
            mixed.add(chosen, which);
        }
    }
    std::vector<kernel_set> all;
    mixed.take_to(all);
    return all;
}

}  // namespace weir::array_kernels
