// SPDX-License-Identifier: Apache-2.0
/// Just enough SVG for the diagrams: integer coordinates, so that every compiler writes the same bytes.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace polyscan::docs {

struct point {
    int x;
    int y;
};

enum class fill { none, white, light, dark, hatched };
enum class anchor { start, middle, end };
enum class arrow { no, yes };

class svg {
public:
    void box(point corner, int width, int height, fill inside, int line_width = 1) {
        body_ << "<rect x='" << corner.x << "' y='" << corner.y << "' width='" << width << "' height='" << height
              << "' rx='3' fill='" << paint(inside) << "' stroke='#222' stroke-width='" << line_width << "'/>\n";
        grow({corner.x + width, corner.y + height});
    }

    void line(point from, point to, std::string_view colour = "#222", arrow head = arrow::no,
              std::string_view dashes = "") {
        body_ << "<line x1='" << from.x << "' y1='" << from.y << "' x2='" << to.x << "' y2='" << to.y << "' stroke='"
              << colour << "'";
        if (!dashes.empty()) body_ << " stroke-dasharray='" << dashes << "'";
        if (head == arrow::yes) body_ << " marker-end='url(#head)'";
        body_ << "/>\n";
        grow(from);
        grow(to);
    }

    void text(point at, std::string_view words, anchor where = anchor::middle, int size = 12, bool bold = false) {
        static constexpr const char* names[] = {"start", "middle", "end"};
        body_ << "<text x='" << at.x << "' y='" << at.y << "' text-anchor='" << names[static_cast<int>(where)]
              << "' font-size='" << size << "'" << (bold ? " font-weight='bold'" : "") << ">" << escaped(words)
              << "</text>\n";
        // Glyphs are at most as wide as 0.62 of their height in the fonts that are asked for.
        const int width = static_cast<int>(words.size()) * size * 62 / 100;
        grow({at.x + (where == anchor::start ? width : where == anchor::middle ? width / 2 : 0), at.y + size / 3});
    }

    std::string document(std::string_view title) const {
        std::ostringstream out;
        const int width = extent_.x + 12, height = extent_.y + 10;
        out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << width << "' height='" << height << "' viewBox='0 0 "
            << width << ' ' << height << "' font-family='DejaVu Sans, Verdana, sans-serif' role='img'>\n<title>"
            << escaped(title)
            << "</title>\n<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
               "orient='auto'><path d='M0,0 L8,4 L0,8 z'/></marker><pattern id='hatch' width='5' height='5' "
               "patternUnits='userSpaceOnUse' patternTransform='rotate(45)'><rect width='5' height='5' fill='#fff'/>"
               "<line y2='5' stroke='#777'/></pattern></defs>\n<rect width='"
            << width << "' height='" << height << "' fill='#fff'/>\n"
            << body_.str() << "</svg>\n";
        return out.str();
    }

private:
    static std::string escaped(std::string_view words) {
        std::string text;
        for (const char c : words) {
            if (c == '<')
                text += "&lt;";
            else if (c == '&')
                text += "&amp;";
            else
                text += c;
        }
        return text;
    }

    static const char* paint(fill inside) {
        static constexpr const char* paints[] = {"none", "#fff", "#e4e8ee", "#b9c4d4", "url(#hatch)"};
        return paints[static_cast<int>(inside)];
    }

    void grow(point to) {
        extent_.x = std::max(extent_.x, to.x);
        extent_.y = std::max(extent_.y, to.y);
    }

    std::ostringstream body_;
    point extent_{0, 0};
};

} // namespace polyscan::docs
