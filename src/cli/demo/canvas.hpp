#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weir::demo {

/// Red, green, blue, each from 0 to 255.
struct colour {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
};

/// The colour at the fraction `share` of the way from `a` to `b`.
[[nodiscard]] colour mix(colour a, colour b, double share) noexcept;

/// A picture to draw on. (0, 0) is its upper left corner; what lies outside is not drawn.
class canvas {
public:
    canvas(int width, int height, colour background);

    [[nodiscard]] int width() const noexcept { return width_; }

    void dot(int x, int y, colour c) noexcept;
    void box(int x, int y, int width, int height, colour c) noexcept;
    /// One line of ASCII text, its upper left corner at (x, y), 12 * size pixels high with its descenders.
    void text(int x, int y, const std::string& words, colour c, int size = 1);
    /// The width of `text`, in pixels.
    [[nodiscard]] static int text_width(const std::string& words, int size = 1);

    /// Throws error if the file cannot be written.
    void write_png(const std::filesystem::path& file) const;

private:
    int width_;
    int height_;
    std::vector<colour> dots_;
};

}  // namespace weir::demo
