// SPDX-License-Identifier: Apache-2.0
/// Pictures of the grid level: who waits for whom, what moves. Which values are combined into a carry comes from the
/// oracle; when, from a small model of each algorithm's protocol with the durations below.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <polyscan/reference.hpp>

#include "recorded.hpp"
#include "svg.hpp"

namespace polyscan::docs {

// Units of time, about in the proportions of a GPU. Durations differ from tile to tile, as they do in fact.
inline constexpr std::array<int, 9> scan_time{8, 9, 8, 10, 8, 8, 9, 8, 10};
inline constexpr int reduce_time = 6;
inline constexpr int store_time = 5;
inline constexpr int publish_time = 1;
inline constexpr int travel_time = 1; // from a publication to its reader
inline constexpr int read_time = 1;   // one descriptor

// The first four are those of the example on the page of algorithms.
inline constexpr std::array<int, 9> aggregates{7, 7, 6, 11, 5, 9, 4, 8, 3};

/// The carry of every tile as the oracle combines it; that of tile 0 is absent. Under a left fold carry k must be
/// combine(carry k - 1, aggregate k - 1): the pictures of waiting say so, hence it is checked here.
template <class Policy>
std::vector<std::optional<int>> recorded_carries(Policy how, int tiles, bool left_fold) {
    recording calls;
    const auto values = calls.elements<8192>(tiles);
    const auto carries = reference::detail::carries(how, values, record_calls{&calls}, std::optional<recorded<8192>>{});
    std::vector<std::optional<int>> sums;
    for (int k = 0; k < tiles; ++k) {
        const auto& carry = carries[static_cast<std::size_t>(k)];
        sums.push_back(std::nullopt);
        if (!carry) continue;
        const node& n = calls.at(carry->index);
        if (n.first != 0 || n.last != k - 1) throw std::logic_error("a carry must be the fold of all earlier tiles");
        if (left_fold && k > 1 && (n.earlier != carries[static_cast<std::size_t>(k - 1)]->index || n.later != k - 1))
            throw std::logic_error("this grid algorithm is drawn as a left fold, and is none");
        int sum = 0;
        for (int i = 0; i < k; ++i) sum += aggregates[static_cast<std::size_t>(i)];
        sums.back() = sum;
    }
    return sums;
}

/// Time to the right, a row for each block.
class timeline {
public:
    timeline(const std::string& title, std::vector<std::string> rows) : rows_(std::move(rows)) {
        out_.text({12, 20}, title, anchor::start, 14, true);
        for (std::size_t i = 0; i < rows_.size(); ++i)
            out_.text({left - 10, y(static_cast<int>(i)) + 4}, rows_[i], anchor::end, 12);
    }

    void span(int row, int start, int end, fill inside, const std::string& label) {
        if (end <= start) return;
        out_.box({x(start), y(row) - half}, x(end) - x(start), 2 * half, inside);
        if (!label.empty()) out_.text({(x(start) + x(end)) / 2, y(row) + 4}, label, anchor::middle, 10);
        end_ = std::max(end_, end);
    }

    void message(int from_row, int sent, int to_row, int received, const std::string& label,
                 const char* colour = "#0b5fa5") {
        const int down = from_row < to_row ? 1 : from_row > to_row ? -1 : 0;
        const point from{x(sent), y(from_row) + down * half}, to{x(received), y(to_row) - down * half};
        out_.line(from, to, colour, arrow::yes);
        if (!label.empty()) {
            const point middle{(from.x + to.x) / 2 + 5, (from.y + to.y) / 2 + 4};
            out_.text(middle, label, anchor::start, 11, true);
        }
    }

    std::string finish(const std::string& title, const std::vector<std::string>& notes) {
        const int bottom = y(static_cast<int>(rows_.size()) - 1) + half + 22;
        out_.line({left, bottom}, {x(end_) + 10, bottom}, "#222", arrow::yes);
        out_.text({x(end_) + 14, bottom + 4}, "time", anchor::start, 11);
        int line = bottom + 24;
        int at = left;
        const auto key = [&](fill inside, const std::string& words) {
            out_.box({at, line - 10}, 16, 12, inside);
            out_.text({at + 22, line}, words, anchor::start, 11);
            at += 40 + static_cast<int>(words.size()) * 7;
        };
        key(fill::white, "load, block scan");
        key(fill::hatched, "waits");
        key(fill::dark, "publishes");
        key(fill::light, "combines the carry, stores");
        for (const std::string& note : notes) out_.text({left, line += 18}, note, anchor::start, 11);
        return out_.document(title);
    }

private:
    static constexpr int left = 84;
    static constexpr int unit = 13;
    static constexpr int half = 12;

    static int x(int time) { return left + time * unit; }
    static int y(int row) { return 52 + row * 58; }

    svg out_;
    std::vector<std::string> rows_;
    int end_ = 0;
};

inline std::string number(int value) { return std::to_string(value); }

inline std::vector<std::string> blocks(int count, const std::string& first = "") {
    std::vector<std::string> names;
    if (!first.empty()) names.push_back(first);
    for (int i = 0; i < count; ++i) names.push_back("block " + number(i));
    return names;
}

inline std::string single_block_timeline() {
    const std::string title = "single_block: one block, its running total";
    const int tiles = 4;
    const auto carry = recorded_carries(policies::kogge_stone, tiles, true);
    timeline picture(title, blocks(1));
    int now = 0;
    for (int k = 0; k < tiles; ++k) {
        const auto i = static_cast<std::size_t>(k);
        picture.span(0, now, now + scan_time[i], fill::white, "scan " + number(k));
        now += scan_time[i];
        picture.span(0, now, now + store_time, fill::light, carry[i] ? "carry " + number(*carry[i]) : "no carry");
        now += store_time;
    }
    return picture.finish(title, {"The last output of a tile is the carry of the next. No other block takes part."});
}

// Whose turn it is: tickets go up in the order in which blocks become free.
inline int next_free(const std::vector<int>& free) {
    return static_cast<int>(std::min_element(free.begin(), free.end()) - free.begin());
}

inline std::string domino_timeline() {
    const std::string title = "domino: every block waits for its left neighbour's carry";
    const int tiles = 9, workers = 4;
    const auto carry = recorded_carries(policies::domino, tiles, true);
    timeline picture(title, blocks(workers));
    std::vector<int> free(workers, 0);
    int sent = 0, sender = 0;
    for (int k = 0; k < tiles; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const int w = next_free(free);
        int now = free[static_cast<std::size_t>(w)];
        picture.span(w, now, now + scan_time[i], fill::white, "scan " + number(k));
        now += scan_time[i];
        if (k > 0) {
            const int received = std::max(now, sent + travel_time);
            picture.span(w, now, received, fill::hatched, "");
            picture.message(sender, sent, w, received, number(*carry[i]));
            now = received;
        }
        picture.span(w, now, now + publish_time, fill::dark, "");
        now += publish_time;
        sent = now;
        sender = w;
        picture.span(w, now, now + store_time, fill::light, "store " + number(k));
        free[static_cast<std::size_t>(w)] = now + store_time;
    }
    return picture.finish(title, {"Arrows are hand-overs, with the carry. They form one chain: each starts only when "
                                  "the one before has arrived."});
}

inline std::string look_back_timeline() {
    const std::string title = "look_back: aggregates first, then back to the nearest carry";
    const int tiles = 9, workers = 4;
    const auto carry = recorded_carries(policies::look_back, tiles, true);
    timeline picture(title, blocks(workers));
    std::vector<int> free(workers, 0), aggregate_at, carry_at, row;
    for (int k = 0; k < tiles; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const int w = next_free(free);
        int now = free[static_cast<std::size_t>(w)];
        picture.span(w, now, now + scan_time[i], fill::white, "scan " + number(k));
        now += scan_time[i];
        picture.span(w, now, now + publish_time, fill::dark, "");
        now += publish_time;
        aggregate_at.push_back(now);
        row.push_back(w);
        int nearest = -1;
        if (k > 0) {
            const int start = now;
            for (int back = k - 1; nearest < 0; --back) {
                const auto b = static_cast<std::size_t>(back);
                now = std::max(now, aggregate_at[b] + travel_time) + read_time;
                if (carry_at[b] + travel_time <= now) {
                    nearest = back;
                    picture.message(row[b], carry_at[b], w, now, "");
                } else {
                    picture.message(row[b], aggregate_at[b], w, now, "", "#b35900");
                }
            }
            picture.span(w, start, now, fill::hatched, "");
            picture.span(w, now, now + publish_time, fill::dark, "");
            now += publish_time;
        }
        // Tile 0 publishes its carry at once.
        carry_at.push_back(now);
        picture.span(w, now, now + store_time, fill::light, carry[i] ? "carry " + number(*carry[i]) : "no carry");
        free[static_cast<std::size_t>(w)] = now + store_time;
    }
    return picture.finish(
        title, {"Orange: an aggregate is read, and the walk goes on; blue: a published carry, the walk ends there.",
                "The fold then goes from left to right. No block waits for its neighbour's carry."});
}

inline std::string prefix_server_timeline() {
    const std::string title = "prefix_server: aggregates ahead of time, one server hands out the carries";
    const int tiles = 9, workers = 3;
    const auto carry = recorded_carries(policies::prefix_server, tiles, true);
    timeline picture(title, blocks(workers, "server"));
    std::vector<int> free(workers, 0), held(workers, -1), served;
    int next = 0, done = 0;
    while (done < tiles) {
        int w = next_free(free);
        int& now = free[static_cast<std::size_t>(w)];
        int& mine = held[static_cast<std::size_t>(w)];
        int drawn = -1;
        if (next < tiles) {
            drawn = next++;
            picture.span(w + 1, now, now + reduce_time, fill::white, "reduce " + number(drawn));
            now += reduce_time;
            picture.span(w + 1, now, now + publish_time, fill::dark, "");
            now += publish_time;
            // The server serves sections in order, each when it has been published.
            const int start = std::max(now + travel_time, served.empty() ? 0 : served.back());
            served.push_back(start + 2 * publish_time);
            picture.span(0, start, served.back(), fill::dark, "");
            picture.message(w + 1, now, 0, start, "", "#b35900");
        }
        if (mine >= 0) {
            const auto i = static_cast<std::size_t>(mine);
            const int received = std::max(now, served[i] + travel_time);
            picture.span(w + 1, now, received, fill::hatched, "");
            picture.message(0, served[i], w + 1, received, "");
            picture.span(w + 1, received, received + scan_time[i], fill::light,
                         "scan " + number(mine) + (carry[i] ? ", +" + number(*carry[i]) : ""));
            now = received + scan_time[i];
            ++done;
        } else if (drawn < 0) {
            now = 1 << 20; // nothing left for this block
        }
        mine = drawn;
    }
    return picture.finish(title, {"Orange: an aggregate goes to the server, its only reader; blue: a carry comes back, "
                                  "usually before it is asked for.",
                                  "A block reduces its next section before it scans the one it holds (light, with the "
                                  "carry that it combines in)."});
}

/// What three_pass reads and writes. The scanned aggregates are those of the oracle's recursion.
inline std::string three_pass_movement() {
    const std::string title = "three_pass: what moves";
    const int tiles = 8, width = 82, left = 100;
    const auto carry = recorded_carries(policies::three_pass, tiles, false);
    svg out;
    out.text({12, 20}, title, anchor::start, 14, true);
    const auto row = [&](int top, int count, fill inside, const std::string& name, const auto& label) {
        out.text({left - 10, top + 17}, name, anchor::end, 11);
        for (int k = 0; k < count; ++k) {
            out.box({left + k * width, top}, width - 8, 26, inside);
            out.text({left + k * width + (width - 8) / 2, top + 17}, label(k), anchor::middle, 11);
        }
    };
    const auto arrows = [&](int from, int to, int count, int shift = 0) {
        for (int k = 0; k < count; ++k) {
            const int x = left + k * width + (width - 8) / 2 + shift;
            out.line({x, from}, {x, to}, "#0b5fa5", arrow::yes);
        }
    };
    const auto note = [&](int y, const std::string& words) {
        out.text({left + tiles * width + 6, y}, words, anchor::start, 12, true);
    };
    const auto tile_name = [](int k) { return "tile " + number(k); };
    row(40, tiles, fill::white, "input", tile_name);
    arrows(66, 96, tiles - 1);
    note(86, "reads n");
    row(96, tiles - 1, fill::light, "pass 1", [](int k) { return "reduce " + number(k); });
    arrows(122, 148, tiles - 1);
    row(148, tiles - 1, fill::white, "aggregates",
        [](int k) { return number(aggregates[static_cast<std::size_t>(k)]); });
    arrows(174, 200, tiles - 1);
    out.text({left - 10, 217}, "pass 2", anchor::end, 11);
    out.box({left, 200}, (tiles - 1) * width - 8, 26, fill::light);
    out.text({left + ((tiles - 1) * width - 8) / 2, 217}, "scan of the aggregates by the same policy, recursively",
             anchor::middle, 11);
    note(217, "n / T values");
    arrows(226, 252, tiles - 1);
    row(252, tiles - 1, fill::white, "scanned", [&](int k) { return number(*carry[static_cast<std::size_t>(k + 1)]); });
    for (int k = 0; k + 1 < tiles; ++k)
        out.line({left + k * width + width / 2, 278}, {left + (k + 1) * width + 10, 356}, "#0b5fa5", arrow::yes);
    row(296, tiles, fill::white, "input again", tile_name);
    arrows(322, 356, tiles, 6);
    note(342, "reads n");
    row(356, tiles, fill::light, "pass 3", [](int k) { return "scan " + number(k); });
    arrows(382, 408, tiles);
    note(400, "writes n");
    row(408, tiles, fill::dark, "output", tile_name);
    out.text({left, 460},
             "3n in all. The last tile needs no reduction: nobody asks for its aggregate. Between the passes everybody "
             "has finished.",
             anchor::start, 11);
    out.text({left, 476},
             "Textbook form: pass 1 writes the local scans, pass 3 reads them again and adds: 4n. One pass (domino, "
             "look_back, "
             "prefix_server): 2n.",
             anchor::start, 11);
    return out.document(title);
}

// In units of u = 2^-23, the distance from 1 to the next float.
inline std::string in_units(float value) {
    const bool above = value >= 1;
    const int halves = static_cast<int>((static_cast<double>(value) - (above ? 1 : 0)) * 16777216.0);
    if (halves == 0) return above ? "1" : "0";
    std::string units = halves == 2       ? "u"
                        : halves % 2 == 0 ? number(halves / 2) + "u"
                        : halves == 1     ? "u/2"
                                          : number(halves) + "u/2";
    return above ? "1+" + units : units;
}

/// The last output of six floats, 1 and five times 2^-24, under the tree of each block algorithm.
inline std::string worked_example() {
    const std::string title =
        "The sum of 1 and five times u/2, in the order of each block algorithm (float, u = 2^-23)";
    svg out;
    out.text({12, 20}, title, anchor::start, 14, true);
    const int panel_width = 350, panel_height = 292;
    int panel = 0;
    const auto draw = [&](const std::string& name, const recording& calls, int root) {
        const int left = 30 + panel % 3 * panel_width, top = 60 + panel / 3 * panel_height;
        ++panel;
        std::vector<float> value;
        std::vector<bool> used(static_cast<std::size_t>(calls.size()), false), rounded;
        used[static_cast<std::size_t>(root)] = true;
        for (int i = calls.size() - 1; i >= 0; --i)
            if (const node& n = calls.at(i); used[static_cast<std::size_t>(i)] && !n.is_element())
                used[static_cast<std::size_t>(n.earlier)] = used[static_cast<std::size_t>(n.later)] = true;
        for (int i = 0; i < calls.size(); ++i) {
            const node& n = calls.at(i);
            if (n.is_element()) {
                value.push_back(i == 0 ? 1.0F : 0x1p-24F);
                rounded.push_back(false);
                continue;
            }
            const float a = value[static_cast<std::size_t>(n.earlier)], b = value[static_cast<std::size_t>(n.later)];
            value.push_back(a + b);
            rounded.push_back(static_cast<double>(value.back()) != static_cast<double>(a) + static_cast<double>(b));
        }
        const auto x = [&](int i) { return left + 20 + calls.at(i).last * 54; };
        const auto y = [&](int i) { return top + 30 + calls.at(i).level * 38; };
        out.text({left, top}, name + ": y5 = " + in_units(value[static_cast<std::size_t>(root)]), anchor::start, 12,
                 true);
        for (int i = 0; i < calls.size(); ++i)
            if (const node& n = calls.at(i); used[static_cast<std::size_t>(i)] && !n.is_element())
                for (const int operand : {n.earlier, n.later})
                    out.line({x(operand), y(operand) + 10}, {x(i), y(i) - 10},
                             operand == n.earlier ? "#0b5fa5" : "#222");
        for (int i = 0; i < calls.size(); ++i)
            if (used[static_cast<std::size_t>(i)]) {
                out.box({x(i) - 23, y(i) - 10}, 46, 20, rounded[static_cast<std::size_t>(i)] ? fill::dark : fill::white,
                        i == root ? 2 : 1);
                out.text({x(i), y(i) + 4}, in_units(value[static_cast<std::size_t>(i)]), anchor::middle, 11);
            }
    };
    {
        recording calls;
        const auto y = reference::sequential(calls.elements(6), record_calls{&calls});
        draw("left fold", calls, y.back().index);
    }
    const auto tile = [&](auto block) {
        recording calls;
        auto values = calls.elements(6);
        reference::detail::local_scan(block, values.data(), 6, shape_for<decltype(block), float>, record_calls{&calls});
        draw(std::string(block.name), calls, values.back().index);
    };
    tile(block::kogge_stone{});
    tile(block::brent_kung{});
    tile(block::coarse{});
    tile(block::warp_shuffle{});
    out.text({30, 60 + 2 * panel_height},
             "Shaded: the exact sum is a tie between two floats, and was rounded to the even one.", anchor::start, 11);
    return out.document(title);
}

} // namespace polyscan::docs
