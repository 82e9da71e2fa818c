// SPDX-License-Identifier: Apache-2.0
/// Scans of affine maps: a polynomial by Horner's rule, and a recursive filter over a measured signal with gaps.
///
/// The signal: weekly means of carbon dioxide at Mauna Loa, 1958 to 2001, in parts per million (C. D. Keeling and
/// T. P. Whorf, Carbon Dioxide Information Analysis Center, 2004; public domain). 59 weeks are missing.
#include <cmath>
#include <fstream>

#include "../example.hpp"

namespace {

using example::index_type;
using map = polyscan::affine<double>;

// [polynomial]
// Horner's rule is y -> z y + c for one coefficient after the other, the highest first. Composed, they are one map.
template <class T>
struct horner_step {
    T z;
    POLYSCAN_FUNCTION polyscan::affine<T> operator()(T coefficient) const { return {z, coefficient}; }
};

template <class T>
T polynomial(example::backend& where, const std::vector<T>& highest_first, T z) {
    example::array<T> coefficients(where, highest_first);
    example::array<polyscan::affine<T>> all_steps(where, 1);
    polyscan::transform_reduce<polyscan::affine<T>>(where, coefficients.view(), all_steps.data(),
                                                    polyscan::compose_affine{}, horner_step<T>{z});
    return all_steps.value().offset; // applied to y = 0
}
// [polynomial]

// [filter]
// A low-pass filter: y_i = a y_{i-1} + (1 - a) x_i. Step i is the map y -> a y + (1 - a) x_i; its prefix compositions,
// applied to the initial y, are all y_i at once.
struct filter_step {
    double a;
    POLYSCAN_FUNCTION map operator()(double x) const { return {a, (1 - a) * x}; }
};

void low_pass(example::backend& where, example::array<double>& x, double* y, double a, double initial) {
    polyscan::inclusive_scan<map>(
        where, x.view(), polyscan::to_function([=] POLYSCAN_FUNCTION(index_type i, const map& so_far) {
            y[i] = std::fma(so_far.scale, initial, so_far.offset);
        }),
        polyscan::compose_affine{}, polyscan::default_policy{}, polyscan::with_transform{filter_step{a}});
}
// [filter]

// [gaps]
using reading = polyscan::write<double>;

// Weeks without a reading repeat the last one: of all writes so far, the last wins.
void fill_gaps(example::backend& where, example::array<reading>& readings, double* filled) {
    polyscan::inclusive_scan(
        where, readings.view(),
        polyscan::to_function([=] POLYSCAN_FUNCTION(index_type i, const reading& last) { filled[i] = last.value; }),
        polyscan::last_write_wins{});
}
// [gaps]

std::vector<reading> read_signal(const std::string& path) {
    std::ifstream file(path);
    example::require(file.is_open(), path.c_str());
    std::vector<reading> readings;
    std::string line;
    std::getline(file, line); // the heading
    while (std::getline(file, line)) {
        const std::string value = line.substr(line.find(',') + 1);
        readings.push_back({value.empty() ? 0 : std::stod(value), !value.empty()});
    }
    return readings;
}

} // namespace

int main(int argc, char* argv[]) {
    const std::string path = argc > 1 ? argv[1] : "examples/recurrence/co2_weekly.csv";
    return example::run(argc, argv, [&](example::backend& where) {
        // Modulo 2^64 every step is exact, so the result must be Horner's to the bit.
        std::vector<std::uint64_t> coefficients(100000);
        example::random next(5);
        for (std::uint64_t& c : coefficients) c = next();
        const std::uint64_t z = 0x123456789abcdef1;
        std::uint64_t horner = 0;
        for (const std::uint64_t c : coefficients) horner = z * horner + c;
        example::require(polynomial(where, coefficients, z) == horner, "a polynomial modulo 2^64");
        // 1 / (1 - z) = 1 + z + z^2 + ...
        const double geometric = polynomial(where, std::vector<double>(2000, 1.0), 0.5);
        example::require(std::abs(geometric - 2) < 1e-15, "a geometric series");

        const std::vector<reading> readings = read_signal(path);
        const auto n = static_cast<index_type>(readings.size());
        example::array<reading> signal(where, readings);
        example::array<double> filled(where, n), smooth(where, n);
        fill_gaps(where, signal, filled.data());
        const std::vector<double> x = filled.to_host();
        const double a = std::exp(-1.0 / 52), initial = x[0]; // forgets within a year, so the seasons vanish
        low_pass(where, filled, smooth.data(), a, initial);

        const std::vector<double> y = smooth.to_host();
        double last = 0, expected = initial;
        for (std::size_t i = 0; i < y.size(); ++i) {
            if (readings[i].present) last = readings[i].value;
            example::require(x[i] == last, "gaps are filled from the left");
            expected = a * expected + (1 - a) * x[i];
            example::require(std::abs(y[i] - expected) < 1e-10 * expected, "the filter is the recurrence");
        }
        std::printf("%zu weeks: %.1f ppm after a year, %.1f ppm at the end\n", y.size(), y[51], y.back());
    });
}
