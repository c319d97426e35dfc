// Scenario E10 with strides: operands and results in arbitrary layouts, against the definition in higher precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "support/arrays.hpp"
#include "support/dft_axes.hpp"
#include "support/fft_devices.hpp"
#include "weir/check.hpp"
#include "weir/error.hpp"
#include "weir/fft.hpp"
#include "weir/ordering.hpp"
#include "weir/testing.hpp"

namespace weir {
namespace {

using test::as_precise;
using test::as_type;
using test::block;
using test::make_array;
using test::relative_error;
using test::values_of;
using extents = std::vector<std::int64_t>;

template <class T>
using complex_of = std::complex<T>;

shape shape_of(const extents& e) { return shape(std::span<const std::int64_t>(e)); }

extents extents_of(const array& a) { return {a.shape().extents().begin(), a.shape().extents().end()}; }

/// The elements, in C order.
template <class T>
block block_of(const array& a) {
    return {extents_of(a), as_precise(values_of<T>(a))};
}

/// Chooses layouts.
class chooser {
public:
    explicit chooser(unsigned seed) : generator_(seed) {}

    std::int64_t between(std::int64_t least, std::int64_t most) {
        return least + static_cast<std::int64_t>(generator_()) % (most - least + 1);
    }

    /// An array of that shape that is a view of a larger one full of `background`: some of its rows and columns, backwards
    /// or not, its dimensions in another order. The larger one is the second.
    std::pair<array, array> view(const stream& on, const extents& wanted, dtype type, const scalar& background) {
        const std::size_t count = wanted.size();
        std::vector<std::int64_t> order(count);
        for (std::size_t i = 0; i < count; ++i) {
            order[i] = static_cast<std::int64_t>(i);
        }
        std::shuffle(order.begin(), order.end(), generator_);
        extents base(count);
        std::vector<index_term> index;
        for (std::size_t i = 0; i < count; ++i) {
            // Dimension i of the base becomes the one of the view where `order` has i.
            const auto at = std::find(order.begin(), order.end(), static_cast<std::int64_t>(i)) - order.begin();
            const std::int64_t extent = wanted[static_cast<std::size_t>(at)];
            const std::int64_t step = between(1, 3);
            const std::int64_t before = between(0, 2);
            const std::int64_t last = before + step * (extent - 1);
            base[i] = last + 1 + between(0, 2);
            if (between(0, 1) == 0) {
                index.emplace_back(slice{before, last + 1, step});
            } else {
                index.emplace_back(slice{last, before == 0 ? std::optional<std::int64_t>() : before - 1, -step});
            }
        }
        array whole = full(shape_of(base), background, type, on);
        array part = whole.at(index).transpose(order);
        EXPECT_EQ(part.shape(), shape_of(wanted));
        return {part, whole};
    }

    std::vector<std::size_t> axes(std::size_t dimensions) {
        std::vector<std::size_t> all(dimensions);
        for (std::size_t i = 0; i < dimensions; ++i) {
            all[i] = i;
        }
        std::shuffle(all.begin(), all.end(), generator_);
        all.resize(static_cast<std::size_t>(between(1, static_cast<std::int64_t>(dimensions))));
        return all;
    }

    template <class T>
    std::vector<T> numbers(std::size_t count) {
        return as_type<T>(test::random_numbers(count, static_cast<unsigned>(generator_())));
    }

private:
    std::mt19937 generator_;
};

template <class T>
class FftStrided : public ::testing::Test {
protected:
    static constexpr double background = 777;

    template <class U>
    void expect_near(const array& got, const block& right, const extents& n) {
        ASSERT_EQ(got.shape(), shape_of(right.shape));
        const auto length = static_cast<long double>(test::elements_of(n));
        EXPECT_LE(relative_error(block_of<U>(got).numbers, right.numbers),
                  static_cast<long double>(std::numeric_limits<T>::epsilon()) * (2 + std::log2(length)));
    }

    /// Some transform of some operand into some result, both in arbitrary layouts.
    void try_one(unsigned seed, const test::fft_place& where) {
        using complex = complex_of<T>;
        chooser choose(seed);
        const stream on(where.home);
        extents e(static_cast<std::size_t>(choose.between(1, 4)));
        std::generate(e.begin(), e.end(), [&] { return choose.between(1, 6); });
        const std::vector<std::size_t> axes = choose.axes(e.size());
        fft::options how;
        how.axes.assign(axes.begin(), axes.end());
        how.norm = fft_norm::ortho;
        how.execution = where.execution;
        extents n;
        for (const std::size_t axis : axes) {
            n.push_back(std::max<std::int64_t>(1, e[axis] + choose.between(-2, 3) * choose.between(0, 1)));
        }
        how.s = n;

        // 0: of complex numbers, 1: of real ones, 2: to half a spectrum, 3: from half a spectrum
        const std::int64_t which = choose.between(0, 3);
        const bool real_operand = which == 1 || which == 2;
        auto [a, whole_a] = choose.view(on, e, real_operand ? dtype_of<T> : dtype_of<complex>, background);
        const auto count = static_cast<std::size_t>(a.size());
        if (real_operand) {
            copy(on, a, make_array(on, a.shape(), choose.numbers<T>(count)));
        } else {
            copy(on, a, make_array(on, a.shape(), choose.numbers<complex>(count)));
        }
        const block x = real_operand ? block_of<T>(a) : block_of<complex>(a);

        block right = which <= 1   ? test::direct_fftn(x, axes, n, -1)
                      : which == 2 ? test::direct_rfftn(x, axes, n)
                                   : test::direct_irfftn(x, axes, n);
        right = scaled(right, 1 / std::sqrt(static_cast<long double>(test::elements_of(n))));
        auto [out, whole] = choose.view(on, right.shape, which == 3 ? dtype_of<T> : dtype_of<complex>, background);
        const stream computing(std::holds_alternative<device>(where.execution) ? std::get<device>(where.execution)
                                                                               : where.home);
        if (which <= 1) {
            fft::fftn(computing, a, out, how);
        } else if (which == 2) {
            fft::rfftn(computing, a, out, how);
        } else {
            fft::irfftn(computing, a, out, how);
        }
        if (which == 3) {
            expect_near<T>(out, right, n);
        } else {
            expect_near<complex>(out, right, n);
        }
        EXPECT_EQ((real_operand ? block_of<T>(a) : block_of<complex>(a)).numbers, x.numbers)
            << "the operand must stay as it is";
        for (auto [part, all] : {std::pair(a, whole_a), std::pair(out, whole)}) {
            fill(on, part, background);
            const auto left = is_complex(all.dtype()) ? block_of<complex>(all) : block_of<T>(all);
            EXPECT_EQ(left.numbers,
                      std::vector<test::precise>(left.numbers.size(), static_cast<long double>(background)))
                << "what lies between the elements must stay as it is";
        }
    }
};

using precisions = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FftStrided, precisions);

TYPED_TEST(FftStrided, E10OperandsAndResultsThatLieAnyhow) {
    for (const test::fft_place& where : test::fft_places()) {
        for (unsigned seed = 1; seed <= 100; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed) + " on " + where.home.name() +
                         (where.execution.index() == 0 ? "" : ", computed elsewhere"));
            this->try_one(seed, where);
            if (this->HasFailure()) {
                return;
            }
        }
    }
}

TYPED_TEST(FftStrided, AnOperandWhoseElementsStandForMany) {
    using complex = complex_of<TypeParam>;
    const stream on(test::fft_devices().front());
    array row = make_array(on, {1, 4}, std::vector<complex>{1, 2, 3, 4});
    array many = row.broadcast_to({3, 4});
    this->template expect_near<complex>(fft::fftn(on, many),
                                        test::direct_fftn(block_of<complex>(many), {0, 1}, {3, 4}, -1), {3, 4});
    array out = zeros({1, 4}, dtype_of<complex>, on);
    EXPECT_THROW(fft::fft(on, many, out.broadcast_to({3, 4})), argument_error);
}

TYPED_TEST(FftStrided, InPlaceInAColumn) {
    using complex = complex_of<TypeParam>;
    const stream on(test::fft_devices().front());
    array all = full({5, 3}, this->background, dtype_of<complex>, on);
    array column = all[{slice{}, 1}];
    copy(on, column, make_array(on, {5}, std::vector<complex>{1, 2, 3, 4, 5}));
    const block x = block_of<complex>(column);
    fft::fft(on, column, column);
    this->template expect_near<complex>(column, test::direct_fftn(x, {0}, {5}, -1), {5});
    fill(on, column, this->background);
    EXPECT_EQ(values_of<complex>(all), std::vector<complex>(15, complex(this->background)));
}

/// Rows of 2 (n/2 + 1) real numbers, of which the signal is the first n; the spectrum lies over all of them.
template <class T>
struct padded_rows {
    array signal;
    array spectrum;

    padded_rows(const stream& on, extents e) {
        const std::int64_t n = e.back();
        e.back() = n / 2 + 1;
        const auto bytes = static_cast<std::size_t>(test::elements_of(e)) * sizeof(complex_of<T>);
        const buffer memory(bytes, on);
        spectrum = array(memory, dtype_of<complex_of<T>>, shape_of(e));
        e.back() = 2 * (n / 2 + 1);
        signal = array(memory, dtype_of<T>, shape_of(e))[{ellipsis, slice{0, n}}];
    }
};

TYPED_TEST(FftStrided, RealTransformsInPlaceInPaddedRows) {
    using complex = complex_of<TypeParam>;
    for (const device& where : test::fft_devices()) {
        const stream on(where);
        for (const extents& e : {extents{3, 8}, extents{4, 5}, extents{2, 3, 6}, extents{2, 3, 7}}) {
            padded_rows<TypeParam> rows(on, e);
            const block x = {e, as_precise(as_type<TypeParam>(test::random_block(e, 5).numbers))};
            array values = make_array(on, shape_of(e), as_type<TypeParam>(x.numbers));
            std::vector<std::size_t> axes(e.size());
            for (std::size_t i = 0; i < axes.size(); ++i) {
                axes[i] = i;
            }
            const std::size_t last = e.size() - 1;

            copy(on, rows.signal, values);
            fft::rfftn(on, rows.signal, rows.spectrum);
            this->template expect_near<complex>(rows.spectrum, test::direct_rfftn(x, axes, e), e);
            fft::irfftn(on, rows.spectrum, rows.signal, {.s = e});
            this->template expect_near<TypeParam>(rows.signal, x, extents{test::elements_of(e) * test::elements_of(e)});

            copy(on, rows.signal, values);
            fft::rfft(on, rows.signal, rows.spectrum);
            this->template expect_near<complex>(rows.spectrum, test::direct_rfftn(x, {last}, {e.back()}), e);
        }
    }
}

TYPED_TEST(FftStrided, RealTransformsOverAnOperandThatIsNotPaddedAreRefused) {
    using complex = complex_of<TypeParam>;
    const stream on(test::fft_devices().front());
    const buffer memory(1024, on);
    array signal(memory, dtype_of<TypeParam>, {2, 8});
    EXPECT_THROW(fft::rfft(on, signal, array(memory, dtype_of<complex>, {2, 5})), argument_error);
    padded_rows<TypeParam> rows(on, {2, 8});
    EXPECT_THROW(fft::rfft(on, rows.signal, rows.spectrum, {.axis = 0}), argument_error);
    EXPECT_THROW(fft::rfft(on, rows.signal[{slice{}, slice{1, 8}}], rows.spectrum[{slice{}, slice{0, 4}}]),
                 argument_error);
}

TYPED_TEST(FftStrided, PlansTakeOperandsOfAnyLayout) {
    using complex = complex_of<TypeParam>;
    const stream on(test::fft_devices().front());
    array a = make_array(on, {2, 3}, std::vector<complex>{1, 2, 3, 4, 5, 6});
    fft_plan f(a);
    f.plan(on);
    array other = make_array(on, {3, 2}, std::vector<complex>{6, 5, 4, 3, 2, 1}).t();
    f.reset_operand(other);
    this->template expect_near<complex>(f.execute(on, fft_direction::forward),
                                        test::direct_fftn(block_of<complex>(other), {0, 1}, {2, 3}, -1), {2, 3});
    array out = zeros({3, 2}, dtype_of<complex>, on).t();
    f.execute(on, fft_direction::forward, out);
    this->template expect_near<complex>(out, test::direct_fftn(block_of<complex>(other), {0, 1}, {2, 3}, -1), {2, 3});
}

TEST(FftStridedOrder, ColumnsDoNotOrderEachOther) {
    const stream s1;
    const stream s2;
    array all = full({8, 2}, 1, dtype::complex128, s1);
    s1.synchronize();
    array left = all[{slice{}, 0}];
    array right = all[{slice{}, 1}];
    testing::gate held;
    held.hold(s1);
    fft::fft(s1, left, left);
    fft::fft(s2, right, right);
    s2.synchronize();  // would block if it were ordered after the other column
    EXPECT_EQ(values_of<std::complex<double>>(right)[0], 8.0);
    EXPECT_FALSE(left.ready());
    const stream s3;
    fft::ifft(s3, left, left);
    EXPECT_FALSE(s3.done()) << "the same column is ordered";
    held.open();
    EXPECT_EQ(values_of<std::complex<double>>(left), std::vector<std::complex<double>>(8, 1.0));
}

TEST(FftStridedOrder, ComputedElsewhereUnderManualOrdering) {
    // The call itself orders what it packs on the way, also under manual ordering.
    const ordering_scope manual(ordering_mode::manual);
    const stream here;
    const stream there(sim(0));
    const use current(here);
    array a = full({4, 4}, 0, dtype::complex128, here);
    array out = zeros({4, 4}, dtype::complex128, here);
    here.synchronize();
    testing::gate held;
    held.hold(here);
    fill(here, a, 1);
    there.wait(here.record());
    held.open();
    fft::options how;
    how.execution = sim(0);
    const check_scope check;
    fft::fftn(there, a.t(), out.t(), how);
    EXPECT_TRUE(check.report().empty()) << check.report().to_string();
    EXPECT_EQ(values_of<std::complex<double>>(out)[0], 16.0);
}

TEST(FftElementTypes, OthersAreRefusedWithWhatToCall) {
    const stream on;
    for (const dtype type : {dtype::float16, dtype::bfloat16, dtype::int32, dtype::uint8, dtype::bool_}) {
        try {
            static_cast<void>(fft::fft(on, zeros({4}, type, on)));
            ADD_FAILURE() << name_of(type);
        } catch (const argument_type_error& thrown) {
            EXPECT_EQ(std::string(thrown.what()), "fft takes float32, float64, complex64 and complex128, these are " +
                                                      std::string(name_of(type)) + "; convert them with astype");
        }
    }
    EXPECT_NO_THROW(static_cast<void>(fft::fft(on, astype(on, full({4}, 1, dtype::float16, on), dtype::float32))));
}

}  // namespace
}  // namespace weir
