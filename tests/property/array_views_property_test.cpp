// Random views of one buffer, compared with a list of the elements that each of them shows: where elements are, which views share
// bytes, and the results of copies between overlapping views.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "weir/weir.hpp"

namespace weir {
namespace {

constexpr std::int64_t buffer_elements = 120;

/// The elements that a view shows, one by one: shares no code with the library.
struct listed {
    std::vector<std::int64_t> extents;
    std::vector<std::int64_t> elements;  ///< the position of each in the buffer, in C order

    [[nodiscard]] std::int64_t at(std::vector<std::int64_t> index) const {
        std::int64_t flat = 0;
        for (std::size_t axis = 0; axis < extents.size(); ++axis) {
            flat = flat * extents[axis] + index[axis];
        }
        return elements[static_cast<std::size_t>(flat)];
    }
};

/// Calls `visit(index)` for all indices in C order.
template <class Visit>
void for_each_index(const std::vector<std::int64_t>& extents, Visit&& visit) {
    if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
        return;
    }
    std::vector<std::int64_t> index(extents.size(), 0);
    for (;;) {
        visit(index);
        std::size_t axis = extents.size();
        while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) {
            index[--axis] = 0;
        }
        if (axis == 0) {
            return;
        }
    }
}

class random_views {
public:
    explicit random_views(std::uint32_t seed) : random_(seed) {}

    std::int64_t from_to(std::int64_t least, std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
    }

    struct both {
        array view;
        listed list;
    };

    both make(const buffer& memory, dtype type) {
        both made = start(memory, type);
        for (std::int64_t steps = from_to(0, 5); steps > 0; --steps) {
            change(made);
        }
        return made;
    }

    /// One step from a view to a view of it.
    void change(both& b) {
        switch (from_to(0, 4)) {
            case 0:
                return cut(b);
            case 1:
                return turn(b);
            case 2:
                return pick(b);
            case 3:
                return widen(b);
            default:
                return reshape(b);
        }
    }

private:
    both start(const buffer& memory, dtype type) {
        both made;
        std::int64_t room = buffer_elements;
        for (std::int64_t left = from_to(0, 4); left > 0; --left) {
            made.list.extents.push_back(from_to(1, std::min<std::int64_t>(room, 7)));
            room /= made.list.extents.back();
        }
        std::int64_t count = 1;
        for (const std::int64_t extent : made.list.extents) {
            count *= extent;
        }
        const std::int64_t first = from_to(0, buffer_elements - count);
        for (std::int64_t i = 0; i < count; ++i) {
            made.list.elements.push_back(first + i);
        }
        made.view = array(memory, type, shape(std::span<const std::int64_t>(made.list.extents)),
                          static_cast<std::size_t>(first) * size_of(type));
        return made;
    }

    /// The elements of `of` whose old index is `old(new index)`, under new extents.
    template <class Old>
    static listed select(const listed& of, std::vector<std::int64_t> extents, Old&& old) {
        listed made{std::move(extents), {}};
        for_each_index(made.extents, [&](const auto& index) { made.elements.push_back(of.at(old(index))); });
        return made;
    }

    void cut(both& b) {
        if (b.list.extents.empty()) {
            return;
        }
        const auto axis = static_cast<std::size_t>(from_to(0, static_cast<std::int64_t>(b.list.extents.size()) - 1));
        const std::int64_t extent = b.list.extents[axis];
        slice part;
        const auto bound = [&]() -> std::optional<std::int64_t> {
            return from_to(0, 3) == 0 ? std::nullopt : std::optional(from_to(-extent - 2, extent + 2));
        };
        part = {bound(), bound(), from_to(0, 1) == 0 ? from_to(1, 3) : -from_to(1, 3)};
        // The indices that a slice selects: those that counting from one bound to the other reaches within the extent.
        std::vector<std::int64_t> chosen;
        const auto absolute = [&](std::int64_t index) { return index < 0 ? index + extent : index; };
        if (part.step > 0) {
            const std::int64_t start = part.start ? std::max<std::int64_t>(absolute(*part.start), 0) : 0;
            const std::int64_t stop = part.stop ? absolute(*part.stop) : extent;
            for (std::int64_t i = start; i < stop && i < extent; i += part.step) {
                chosen.push_back(i);
            }
        } else {
            const std::int64_t start = part.start ? std::min(absolute(*part.start), extent - 1) : extent - 1;
            const std::int64_t stop = part.stop ? absolute(*part.stop) : -1;
            for (std::int64_t i = start; i > stop && i >= 0; i += part.step) {
                chosen.push_back(i);
            }
        }
        std::vector<index_term> index(axis, slice{});
        index.emplace_back(part);
        b.view = b.view.at(index);
        std::vector<std::int64_t> extents = b.list.extents;
        extents[axis] = static_cast<std::int64_t>(chosen.size());
        b.list = select(b.list, extents, [&](std::vector<std::int64_t> at) {
            at[axis] = chosen[static_cast<std::size_t>(at[axis])];
            return at;
        });
    }

    void turn(both& b) {
        std::vector<std::int64_t> axes(b.list.extents.size());
        for (std::size_t i = 0; i < axes.size(); ++i) {
            axes[i] = static_cast<std::int64_t>(i);
        }
        std::shuffle(axes.begin(), axes.end(), random_);
        b.view = b.view.transpose(axes);
        std::vector<std::int64_t> extents;
        for (const std::int64_t axis : axes) {
            extents.push_back(b.list.extents[static_cast<std::size_t>(axis)]);
        }
        b.list = select(b.list, extents, [&](const std::vector<std::int64_t>& at) {
            std::vector<std::int64_t> old(at.size());
            for (std::size_t i = 0; i < axes.size(); ++i) {
                old[static_cast<std::size_t>(axes[i])] = at[i];
            }
            return old;
        });
    }

    void pick(both& b) {
        if (b.list.extents.empty() || b.list.extents[0] == 0) {
            return;
        }
        const std::int64_t at = from_to(-b.list.extents[0], b.list.extents[0] - 1);
        b.view = b.view[at];
        const std::int64_t absolute = at < 0 ? at + b.list.extents[0] : at;
        b.list =
            select(b.list, {b.list.extents.begin() + 1, b.list.extents.end()}, [&](std::vector<std::int64_t> rest) {
                rest.insert(rest.begin(), absolute);
                return rest;
            });
    }

    void widen(both& b) {
        b.view = b.view[{ellipsis, new_axis}];
        b.list.extents.push_back(1);
    }

    void reshape(both& b) {
        std::vector<std::int64_t> extents;
        auto rest = static_cast<std::int64_t>(b.list.elements.size());
        while (rest > 1) {
            std::vector<std::int64_t> factors;
            for (std::int64_t f = 1; f <= rest; ++f) {
                if (rest % f == 0) {
                    factors.push_back(f);
                }
            }
            extents.push_back(
                factors[static_cast<std::size_t>(from_to(0, static_cast<std::int64_t>(factors.size()) - 1))]);
            rest /= extents.back();
            if (extents.size() == 5) {
                return;
            }
        }
        if (rest == 0) {
            extents.push_back(0);
        }
        const std::optional<array> same = b.view.try_reshape(shape(std::span<const std::int64_t>(extents)));
        (same ? views_ : copies_) += 1;
        if (same) {
            b.view = *same;
            b.list.extents = extents;
        } else {
            // No strides can describe it: the distances between the elements of some dimension differ.
            EXPECT_FALSE(is_strided({extents, b.list.elements}));
        }
    }

    static bool is_strided(const listed& of) {
        std::vector<std::int64_t> strides;
        for (std::size_t axis = 0; axis < of.extents.size(); ++axis) {
            std::vector<std::int64_t> one(of.extents.size(), 0);
            one[axis] = of.extents[axis] > 1 ? 1 : 0;
            strides.push_back(of.at(one) - of.elements[0]);
        }
        bool all = true;
        for_each_index(of.extents, [&](const auto& index) {
            std::int64_t place = of.elements[0];
            for (std::size_t axis = 0; axis < index.size(); ++axis) {
                place += index[axis] * strides[axis];
            }
            all = all && place == of.at(index);
        });
        return all;
    }

    std::mt19937 random_;

public:
    int views_ = 0;
    int copies_ = 0;
};

int programs() {
    const char* const wanted = std::getenv("WEIR_TEST_PROGRAMS");
    return wanted != nullptr ? std::atoi(wanted) : 20000;
}

constexpr std::uint32_t seed = 20250101;

TEST(Views, ElementsAreWhereTheListSays) {
    random_views random(seed);
    const buffer memory(buffer_elements * 4);
    for (int i = 0; i < programs(); ++i) {
        const auto [view, list] = random.make(memory, dtype::int32);
        ASSERT_EQ(view.shape(), shape(std::span<const std::int64_t>(list.extents)))
            << "seed " << seed << ", view " << i;
        std::size_t next = 0;
        for_each_index(list.extents, [&, &viewed = view, &listed = list](const auto& index) {
            const std::byte* at = viewed.data();
            for (std::size_t axis = 0; axis < index.size(); ++axis) {
                at += index[axis] * viewed.strides()[axis];
            }
            ASSERT_EQ(at - memory.data(), 4 * listed.elements[next]) << "seed " << seed << ", view " << i;
            ++next;
        });
        const bool packed = std::adjacent_find(list.elements.begin(), list.elements.end(),
                                               [](auto a, auto b) { return b != a + 1; }) == list.elements.end();
        ASSERT_EQ(view.is_contiguous(), packed) << "seed " << seed << ", view " << i;
        ASSERT_TRUE(view.has_own_elements());
    }
    EXPECT_GT(random.views_, programs() / 10);
    EXPECT_GT(random.copies_, programs() / 100);
}

TEST(O3, FootprintsOfRandomViewsShareBytesExactlyWhereTheViewsDo) {
    random_views random(seed + 1);
    const buffer memory(buffer_elements * 4);
    int shared = 0;
    int apart = 0;
    for (int i = 0; i < programs(); ++i) {
        const auto a = random.make(memory, dtype::int32);
        const auto b = random.make(memory, dtype::int32);
        const std::set<std::int64_t> in_a(a.list.elements.begin(), a.list.elements.end());
        const bool share = std::any_of(b.list.elements.begin(), b.list.elements.end(),
                                       [&](std::int64_t one) { return in_a.count(one) != 0; });
        ASSERT_EQ(order::compare(a.view.footprint(detail::key), b.view.footprint(detail::key)),
                  share ? order::overlap_kind::certain : order::overlap_kind::none)
            << "seed " << seed + 1 << ", pair " << i;
        (share ? shared : apart) += 1;
    }
    EXPECT_GT(shared, programs() / 10);
    EXPECT_GT(apart, programs() / 10);
}

template <class T>
void copies_of(dtype type, std::uint32_t from) {
    random_views random(from);
    const stream s;
    const buffer memory(buffer_elements * sizeof(T), s);
    array all(memory, type, buffer_elements);
    int entangled = 0;
    for (int i = 0; i < programs() / 8; ++i) {
        auto to = random.make(memory, type);
        // A source of the same shape, or of a shape that broadcasts to it, somewhere else in the buffer.
        std::vector<std::int64_t> extents = to.list.extents;
        if (random.from_to(0, 3) == 0 && !extents.empty()) {
            extents.erase(extents.begin());
        }
        for (std::int64_t& extent : extents) {
            extent = random.from_to(0, 5) == 0 ? 1 : extent;
        }
        std::vector<std::int64_t> strides(extents.size());
        std::int64_t stride = random.from_to(1, 2);
        std::int64_t first = random.from_to(0, 20);
        std::int64_t last = first;
        std::vector<std::size_t> order(extents.size());
        for (std::size_t n = 0; n < order.size(); ++n) {
            order[n] = n;
        }
        if (random.from_to(0, 1) == 0) {
            std::reverse(order.begin(), order.end());
        }
        for (const std::size_t axis : order) {
            const bool backwards = random.from_to(0, 2) == 0;
            const std::int64_t reach = stride * std::max<std::int64_t>(extents[axis] - 1, 0);
            strides[axis] = (backwards ? -stride : stride) * static_cast<std::int64_t>(sizeof(T));
            first += backwards ? reach : 0;
            last += reach;
            stride *= std::max<std::int64_t>(extents[axis], 1);
        }
        if (last >= buffer_elements) {
            continue;
        }
        array source(memory, type, shape(std::span<const std::int64_t>(extents)), strides,
                     static_cast<std::size_t>(first) * sizeof(T));
        std::vector<T> expected(buffer_elements);
        {
            const auto host = all.write<T>();
            for (std::size_t n = 0; n < expected.size(); ++n) {
                host[n] = expected[n] = static_cast<T>(static_cast<int>(n));
            }
        }
        std::vector<T> taken;
        for_each_index(to.list.extents, [&](const auto& index) {
            std::int64_t at = first;
            const std::size_t ahead = index.size() - extents.size();
            for (std::size_t axis = 0; axis < extents.size(); ++axis) {
                const std::int64_t here = extents[axis] == 1 ? 0 : index[ahead + axis];
                at += here * strides[axis] / static_cast<std::int64_t>(sizeof(T));
            }
            taken.push_back(expected[static_cast<std::size_t>(at)]);
        });
        for (std::size_t n = 0; n < taken.size(); ++n) {
            expected[static_cast<std::size_t>(to.list.elements[n])] = taken[n];
        }
        entangled += order::overlap(to.view.footprint(detail::key), source.footprint(detail::key)) ? 1 : 0;
        copy(s, to.view, source);
        const auto seen = all.read<T>();
        ASSERT_TRUE(std::equal(seen.begin(), seen.end(), expected.begin())) << "seed " << from << ", copy " << i;
    }
    EXPECT_GT(entangled, programs() / 100);
}

TEST(Copy, BetweenRandomOverlappingViewsGivesWhatATemporaryWouldGive) {
    copies_of<std::int16_t>(dtype::int16, seed + 2);
    copies_of<std::int32_t>(dtype::int32, seed + 3);
    copies_of<double>(dtype::float64, seed + 4);
    copies_of<std::complex<double>>(dtype::complex128, seed + 5);
}

}  // namespace
}  // namespace weir
