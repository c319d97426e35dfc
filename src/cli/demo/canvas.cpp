#include "cli/demo/canvas.hpp"

#include <stb_easy_font.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "weir/error.hpp"

namespace weir::demo {

namespace {

std::uint8_t mix(std::uint8_t a, std::uint8_t b, double share) noexcept {
    return static_cast<std::uint8_t>(std::lround((1 - share) * a + share * b));
}

/// The library takes text through a pointer to non-const char, but does not write through it.
char* unconst(const std::string& words) noexcept { return const_cast<char*>(words.c_str()); }

}  // namespace

colour mix(colour a, colour b, double share) noexcept {
    return {mix(a.red, b.red, share), mix(a.green, b.green, share), mix(a.blue, b.blue, share)};
}

canvas::canvas(int width, int height, colour background)
    : width_(width),
      height_(height),
      dots_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), background) {}

void canvas::dot(int x, int y, colour c) noexcept {
    if (x >= 0 && x < width_ && y >= 0 && y < height_) {
        dots_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)] = c;
    }
}

void canvas::box(int x, int y, int width, int height, colour c) noexcept {
    for (int row = y; row < y + height; ++row) {
        for (int column = x; column < x + width; ++column) {
            dot(column, row, c);
        }
    }
}

void canvas::text(int x, int y, const std::string& words, colour c, int size) {
    // The font consists of rectangles of four corners each.
    struct corner {
        float x, y, z;
        std::uint8_t colour[4];
    };
    std::vector<std::array<corner, 4>> strokes(words.size() * 70 + 1);
    const int count = stb_easy_font_print(0, 0, unconst(words), nullptr, strokes.data(),
                                          static_cast<int>(strokes.size() * sizeof(strokes[0])));
    const auto pixels = [&](float units) { return static_cast<int>(std::lround(units * static_cast<float>(size))); };
    for (int i = 0; i < count; ++i) {
        const corner& first = strokes[static_cast<std::size_t>(i)][0];
        const corner& last = strokes[static_cast<std::size_t>(i)][2];
        box(x + pixels(first.x), y + pixels(first.y), pixels(last.x - first.x), pixels(last.y - first.y), c);
    }
}

int canvas::text_width(const std::string& words, int size) { return size * stb_easy_font_width(unconst(words)); }

void canvas::write_png(const std::filesystem::path& file) const {
    static_assert(sizeof(colour) == 3);
    if (stbi_write_png(file.c_str(), width_, height_, 3, dots_.data(), width_ * 3) == 0) {
        throw file_error("cannot write " + file.string());
    }
}

}  // namespace weir::demo
