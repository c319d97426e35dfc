#include "calls/matmul/route.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "array/loops.hpp"
#include "weir/error.hpp"

namespace weir::calls {

namespace {

std::int64_t element_bytes(dtype type) noexcept { return static_cast<std::int64_t>(size_of(type)); }

/// How many elements lie from one of `count` lines of `length` elements to the next; nothing if BLAS cannot step so.
std::optional<std::int64_t> leading_of(std::int64_t stride, std::int64_t length, std::int64_t count, std::int64_t item,
                                       std::int64_t most) noexcept {
    const std::int64_t least = std::max<std::int64_t>(length, 1);
    if (count <= 1) {
        return least;
    }
    if (stride % item != 0 || stride / item < least || stride / item > most) {
        return std::nullopt;
    }
    return stride / item;
}

matrix_view transposed(matrix_view view) {
    std::swap(view.row_stride, view.column_stride);
    return view;
}

/// A matrix of `rows` times `columns` elements as BLAS writes it; nothing if it cannot.
std::optional<blas_matrix> as_written(const matrix_view& view, std::int64_t rows, std::int64_t columns,
                                      std::int64_t item, std::int64_t most) {
    if (view.row_stride == item || rows <= 1) {
        if (const auto leading = leading_of(view.column_stride, rows, columns, item, most)) {
            return blas_matrix{view.first, *leading, false, view.batch_strides};
        }
    }
    return std::nullopt;
}

/// The same as BLAS reads it.
std::optional<blas_matrix> as_read(const matrix_view& view, std::int64_t rows, std::int64_t columns, std::int64_t item,
                                   std::int64_t most) {
    std::optional<blas_matrix> plain = as_written(view, rows, columns, item, most);
    const bool is_packed_row =
        rows <= 1 && columns > 1 && view.column_stride == item;  // better a column of its transpose
    if (plain && !is_packed_row) {
        return plain;
    }
    if (std::optional<blas_matrix> turned = as_written(transposed(view), columns, rows, item, most)) {
        turned->is_transposed = true;
        return turned;
    }
    return plain;
}

/// Batch axes that are one progression in all matrices are one axis.
void merge_batch(blas_product& p) {
    const std::array<blas_matrix*, 3> all{&p.left, &p.right, &p.target};
    per_dimension extents;
    std::array<per_dimension, 3> strides;
    for (std::size_t axis = 0; axis < p.batch.size(); ++axis) {
        const std::int64_t extent = p.batch[axis];
        if (extent == 1) {
            continue;
        }
        const std::size_t last = extents.size();
        bool continues = last > 0;
        for (std::size_t i = 0; continues && i < all.size(); ++i) {
            continues = strides[i][last - 1] == all[i]->batch_strides[axis] * extent;
        }
        if (continues) {
            extents[last - 1] *= extent;
        } else {
            extents.push_back(extent);
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::int64_t stride = all[i]->batch_strides[axis];
            if (continues) {
                strides[i][last - 1] = stride;
            } else {
                strides[i].push_back(stride);
            }
        }
    }
    p.batch = extents;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->batch_strides = strides[i];
    }
}

/// Where one left matrix meets many right ones that lie side by side, these are one wide matrix.
void widen(blas_product& p, std::int64_t item, std::int64_t most) {
    const std::size_t count = p.batch.size();
    if (count == 0 || p.left.batch_strides[count - 1] != 0 ||
        p.batch[count - 1] > most / std::max<std::int64_t>(p.columns, 1)) {
        return;
    }
    const std::int64_t right = p.right.batch_strides[count - 1];
    const std::int64_t target = p.target.batch_strides[count - 1];
    if (p.columns == 1) {
        const auto right_leading = leading_of(right, p.depth, 2, item, most);
        const auto target_leading = leading_of(target, p.rows, 2, item, most);
        if (p.right.is_transposed || !right_leading || !target_leading) {
            return;
        }
        p.right.leading = *right_leading;
        p.target.leading = *target_leading;
    } else if (right != p.columns * item * (p.right.is_transposed ? 1 : p.right.leading) ||
               target != p.columns * item * p.target.leading) {
        return;
    }
    const std::int64_t columns = p.columns * p.batch[count - 1];
    if (p.right.is_transposed && p.right.leading < columns) {
        if (p.depth > 1) {
            return;  // its rows overlap, as those of BLAS may not
        }
        p.right.leading = columns;
    }
    p.columns = columns;
    const auto drop_last = [&](per_dimension& numbers) {
        numbers = per_dimension(numbers.begin(), numbers.begin() + (count - 1));
    };
    drop_last(p.batch);
    for (blas_matrix* const each : {&p.left, &p.right, &p.target}) {
        drop_last(each->batch_strides);
    }
}

std::span<const std::int64_t> all_of(const per_dimension& numbers) noexcept {
    return {numbers.begin(), numbers.size()};
}

std::size_t elements_of(const weir::shape& extents) noexcept { return static_cast<std::size_t>(extents.elements()); }

}  // namespace

matmul_route::matmul_route(const matmul_geometry& what, const call_layout& layout, const matmul_demands& library)
    : what_(what),
      library_(library),
      layout_(layout),
      computed_(library.widens_short ? loops::computed_in(what.type()) : what.type()) {
    for (const std::int64_t extent : {what.m(), what.n(), what.k()}) {
        if (extent > library.most) {
            throw argument_error(std::string(what.call()) + ": a matrix has " + std::to_string(extent) +
                                 " rows or columns, and the library that multiplies takes at most " +
                                 std::to_string(library.most) + "; multiply parts of it");
        }
    }
    a_ = pack(matmul_geometry::a_input, what.a_matrices(layout.inputs[matmul_geometry::a_input].where), what.m(),
              what.k(), what.input_shape(matmul_geometry::a_input).dimensions() > 1);
    b_ = pack(matmul_geometry::b_input, what.b_matrices(layout.inputs[matmul_geometry::b_input].where), what.k(),
              what.n(), what.input_shape(matmul_geometry::b_input).dimensions() > 1);
    if (const auto bias = what.bias_input(); bias && what.input_type(*bias) != computed_) {
        const weir::shape& extents = what.input_shape(*bias);
        bias_ = packed_copy{take(elements_of(extents)), placement::packed(extents, computed_).strides};
    }
    if (!is_direct_target()) {
        target_ = packed_copy{take(elements_of(what.result_shape())),
                              placement::packed(what.result_shape(), computed_).strides};
    }
}

std::size_t matmul_route::take(std::size_t elements) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes_for(computed_, elements) + alignment - 1) / alignment * alignment;
    return offset;
}

bool matmul_route::is_c_in_place() const {
    const auto c = what_.c_input();
    if (!what_.adds_c() || !c) {
        return false;
    }
    const placement& where = layout_.inputs[*c].where;
    return layout_.inputs[*c].overlaps_result && what_.input_type(*c) == what_.type() &&
           what_.input_shape(*c) == what_.result_shape() && where == layout_.result;
}

bool matmul_route::is_direct_target() const {
    const auto overlaps = [&](std::optional<std::size_t> input) {
        return input && layout_.inputs[*input].overlaps_result;
    };
    if (computed_ != what_.type() || overlaps(matmul_geometry::a_input) || overlaps(matmul_geometry::b_input) ||
        overlaps(what_.bias_input()) || (what_.adds_c() && overlaps(what_.c_input()) && !is_c_in_place())) {
        return false;
    }
    const matrix_view result = what_.result_matrices(layout_.result);
    const std::int64_t item = element_bytes(computed_);
    return as_written(transposed(result), what_.n(), what_.m(), item, library_.most).has_value() ||
           as_written(result, what_.m(), what_.n(), item, library_.most).has_value();
}

std::optional<matmul_route::packed_copy> matmul_route::pack(std::size_t input, const matrix_view& view,
                                                            std::int64_t rows, std::int64_t columns,
                                                            bool has_rows_and_columns) {
    if (what_.input_type(input) == computed_ && as_read(view, rows, columns, element_bytes(computed_), library_.most)) {
        return std::nullopt;
    }
    // In the order in which it lies, as far as that can be.
    const weir::shape& extents = what_.input_shape(input);
    packed_copy made{take(elements_of(extents)), placement::packed(extents, computed_).strides};
    if (has_rows_and_columns && std::abs(view.row_stride) < std::abs(view.column_stride)) {
        const std::size_t last = extents.dimensions() - 1;
        made.strides[last - 1] = element_bytes(computed_);
        made.strides[last] = element_bytes(computed_) * std::max<std::int64_t>(rows, 1);
    }
    return made;
}

placement matmul_route::packed_at(std::size_t input, const std::optional<packed_copy>& copy,
                                  std::byte* workspace) const {
    return copy ? placement{copy->strides, workspace + copy->offset} : layout_.inputs[input].where;
}

void matmul_route::add_copy(std::size_t input, const std::optional<packed_copy>& copy, std::byte* workspace,
                            std::vector<converting_copy>& to) const {
    if (!copy) {
        return;
    }
    const placement& from = layout_.inputs[input].where;
    const std::array<walk::operand, 2> both{walk::operand{workspace + copy->offset, all_of(copy->strides)},
                                            walk::operand{from.first, all_of(from.strides)}};
    to.emplace_back(walk::plan(what_.input_shape(input).extents(), both), computed_, what_.input_type(input));
}

bool matmul_route::is_bias_of_rows(const per_dimension& strides, bool is_product_turned) const {
    const bool has_rows = what_.input_shape(matmul_geometry::a_input).dimensions() > 1;
    const bool has_columns = what_.input_shape(matmul_geometry::b_input).dimensions() > 1;
    const std::size_t batch = what_.batch().size();
    const bool has_axis = is_product_turned ? has_columns : has_rows;
    const std::size_t axis = batch + (is_product_turned && has_rows ? 1 : 0);
    for (std::size_t i = 0; i < strides.size(); ++i) {
        const std::int64_t wanted = has_axis && i == axis ? element_bytes(computed_) : 0;
        if (what_.result_shape()[i] > 1 && strides[i] != wanted) {
            return false;
        }
    }
    return true;
}

blas_product matmul_route::pose(const matrix_view& a, const matrix_view& b, const matrix_view& target) const {
    const std::int64_t item = element_bytes(computed_);
    const auto expected = [&](const matrix_view& view, std::int64_t rows, std::int64_t columns) {
        return as_read(view, rows, columns, item, library_.most).value();  // what could not be read was packed
    };
    blas_product p;
    p.type = computed_;
    p.alpha = what_.alpha();
    p.depth = what_.k();
    p.batch = what_.batch();
    // In C order the transpose is what BLAS can write.
    if (const auto turned = as_written(transposed(target), what_.n(), what_.m(), item, library_.most)) {
        p.rows = what_.n();
        p.columns = what_.m();
        p.left = expected(transposed(b), p.rows, p.depth);
        p.right = expected(transposed(a), p.depth, p.columns);
        p.target = *turned;
        p.is_product_turned = true;
    } else {
        p.rows = what_.m();
        p.columns = what_.n();
        p.left = expected(a, p.rows, p.depth);
        p.right = expected(b, p.depth, p.columns);
        p.target = as_written(target, p.rows, p.columns, item, library_.most).value();
    }
    merge_batch(p);
    widen(p, item, library_.most);
    return p;
}

matmul_steps matmul_route::steps(std::byte* workspace) const {
    const placement target = target_ ? placement{target_->strides, workspace + target_->offset} : layout_.result;
    const auto bias = what_.bias_input();
    const auto elements = [&] {
        std::array<walk::operand, 2> operands{walk::operand{target.first, all_of(target.strides)}, walk::operand{}};
        per_dimension strides;
        if (bias) {
            const placement where = packed_at(*bias, bias_, workspace);
            strides = what_.broadcast_strides(*bias, where);
            operands[1] = {where.first, all_of(strides)};
        }
        return walk::plan(what_.result_shape().extents(), std::span(operands).first(bias ? 2 : 1));
    };
    matmul_steps steps{{}, {}, what_.epilog(), elements(), {}, {}};
    if (bias) {
        add_copy(*bias, bias_, workspace, steps.copies);
    }
    steps.product =
        pose(what_.a_matrices(packed_at(matmul_geometry::a_input, a_, workspace)),
             what_.b_matrices(packed_at(matmul_geometry::b_input, b_, workspace)), what_.result_matrices(target));
    if (what_.alpha() != 0.0) {
        add_copy(matmul_geometry::a_input, a_, workspace, steps.copies);
        add_copy(matmul_geometry::b_input, b_, workspace, steps.copies);
    } else {
        steps.product.depth = 0;  // BLAS does not read a and b then: NaN there does not reach the result
    }
    if (bias) {
        const placement where = packed_at(*bias, bias_, workspace);
        if (is_bias_of_rows(what_.broadcast_strides(*bias, where), steps.product.is_product_turned)) {
            steps.bias_of_rows = where.first;
        }
    }
    if (what_.adds_c()) {
        steps.product.beta = what_.beta();
        if (target_ || !is_c_in_place()) {
            const std::size_t c = *what_.c_input();
            const per_dimension strides = what_.broadcast_strides(c, layout_.inputs[c].where);
            const std::array<walk::operand, 2> both{walk::operand{target.first, all_of(target.strides)},
                                                    walk::operand{layout_.inputs[c].where.first, all_of(strides)}};
            steps.copies.emplace_back(walk::plan(what_.result_shape().extents(), both), computed_, what_.input_type(c));
        }
    }
    if (target_) {
        const std::array<walk::operand, 2> both{walk::operand{layout_.result.first, all_of(layout_.result.strides)},
                                                walk::operand{target.first, all_of(target.strides)}};
        steps.scatter.emplace(walk::plan(what_.result_shape().extents(), both), what_.type(), computed_);
    }
    return steps;
}

}  // namespace weir::calls
