// SPDX-License-Identifier: Apache-2.0
/// The worked example at the head of each header of a verb, run, with the outputs that its comments promise.
/// scripts/check-docs.py compares the lines with those of the headers.
#include <vector>

#include <polyscan/openmp.hpp>
#include <polyscan/primitives.hpp>

#include "expect.hpp"

// Lines as they stand in the headers.
// clang-format off
namespace {

using snippet::expect;

// The first `count` elements.
std::vector<int> head(const std::vector<int>& values, polyscan::index_type count) {
    return {values.begin(), values.begin() + count};
}

void scan() {
    std::vector<int> in{3, 1, 4, 1, 5}, out(5);
    polyscan::openmp::backend cpu;
    polyscan::inclusive_scan(cpu, in, out);                        // 3 4 8 9 14
    expect(out, {3, 4, 8, 9, 14}, "inclusive_scan");
    polyscan::exclusive_scan(cpu, in, out, 10);                    // 10 13 14 18 19
    expect(out, {10, 13, 14, 18, 19}, "exclusive_scan");
    polyscan::inclusive_scan(cpu, in, out, polyscan::maximum{});   // 3 3 4 4 5
    expect(out, {3, 3, 4, 4, 5}, "inclusive_scan, maximum");
}

void reduce() {
    std::vector<int> in{3, 1, 4, 1, 5};
    int sum = 0;
    polyscan::openmp::backend cpu;
    polyscan::reduce(cpu, in, &sum);                                      // 14
    expect(sum == 14, "reduce");
    polyscan::reduce(cpu, in, &sum, polyscan::maximum{});                 // 5
    expect(sum == 5, "reduce, maximum");
    polyscan::transform_reduce(cpu, in, &sum, polyscan::plus{}, [](int x) { return x * x; });   // 52
    expect(sum == 52, "transform_reduce");
}

void select() {
    std::vector<int> in{3, 1, 4, 1, 5, 9, 2, 6}, out(8);
    polyscan::index_type count = 0;
    polyscan::openmp::backend cpu;
    const auto even = [](int x) { return x % 2 == 0; };
    polyscan::copy_if(cpu, in, out, &count, even);       // 4 2 6, count 3
    expect(head(out, count), {4, 2, 6}, "copy_if");
    polyscan::remove_if(cpu, in, out, &count, even);     // 3 1 1 5 9, count 5
    expect(head(out, count), {3, 1, 1, 5, 9}, "remove_if");
    polyscan::partition(cpu, in, out, &count, even);     // 4 2 6 3 1 1 5 9, count 3
    expect(out, {4, 2, 6, 3, 1, 1, 5, 9}, "partition");
    expect(count == 3, "partition's count");
    polyscan::copy_if(cpu, in, out, &count, polyscan::flagged(std::vector<char>{1, 0, 0, 0, 0, 1, 0, 0}));   // 3 9
    expect(head(out, count), {3, 9}, "copy_if, flagged");
    polyscan::unique(cpu, std::vector<int>{1, 1, 2, 2, 2, 1}, out, &count);                 // 1 2 1, count 3
    expect(head(out, count), {1, 2, 1}, "unique");
}

void segmented() {
    std::vector<int> in{3, 1, 4, 1, 5, 9, 2, 6}, out(8);
    polyscan::openmp::backend cpu;
    const std::vector<char> heads{1, 0, 0, 1, 0, 1, 0, 0};
    polyscan::inclusive_segmented_scan(cpu, in, polyscan::head_flags(heads), out);        // 3 4 8 1 6 9 11 17
    expect(out, {3, 4, 8, 1, 6, 9, 11, 17}, "inclusive_segmented_scan");
    polyscan::exclusive_segmented_scan(cpu, in, polyscan::head_flags(heads), out, 10);    // 10 13 14 10 11 10 19 21
    expect(out, {10, 13, 14, 10, 11, 10, 19, 21}, "exclusive_segmented_scan");
    out.assign(8, -1);
    const std::vector<int> offsets{2, 4, 4, 7};
    polyscan::inclusive_segmented_scan(cpu, in, polyscan::segment_offsets(offsets), out); // _ _ 4 5 5 14 16 _
    expect(out, {-1, -1, 4, 5, 5, 14, 16, -1}, "inclusive_segmented_scan, offsets");
}

void by_key() {
    std::vector<int> keys{7, 7, 7, 2, 2, 7, 7, 7}, in{3, 1, 4, 1, 5, 9, 2, 6}, out(8), runs(8), sums(8);
    polyscan::index_type count = 0;
    polyscan::openmp::backend cpu;
    polyscan::inclusive_scan_by_key(cpu, keys, in, out);                     // 3 4 8 1 6 9 11 17
    expect(out, {3, 4, 8, 1, 6, 9, 11, 17}, "inclusive_scan_by_key");
    polyscan::exclusive_scan_by_key(cpu, keys, in, out, 10);                 // 10 13 14 10 11 10 19 21
    expect(out, {10, 13, 14, 10, 11, 10, 19, 21}, "exclusive_scan_by_key");
    polyscan::reduce_by_key(cpu, keys, in, runs, sums, &count);              // 7 2 7; 8 6 17; count 3
    expect(head(runs, count), {7, 2, 7}, "reduce_by_key, keys");
    expect(head(sums, count), {8, 6, 17}, "reduce_by_key");
    polyscan::run_length_encode(cpu, keys, runs, sums, &count);              // 7 2 7; 3 2 3; count 3
    expect(head(runs, count), {7, 2, 7}, "run_length_encode, keys");
    expect(head(sums, count), {3, 2, 3}, "run_length_encode");
}

void histogram() {
    std::vector<float> in{0.1f, 0.7f, 0.9f, 2.5f};
    std::vector<int> counts(4);
    polyscan::openmp::backend cpu;
    polyscan::histogram(cpu, in, counts, polyscan::even_bins{0.0f, 1.0f});    // 1 0 1 1, and 2.5 is in no bin
    expect(counts, {1, 0, 1, 1}, "histogram, even_bins");
    std::vector<float> edges{0.0f, 0.5f, 0.8f, 1.0f, 100.0f};
    polyscan::histogram(cpu, in, counts, edges);                              // 1 1 1 1
    expect(counts, {1, 1, 1, 1}, "histogram, edges");
}

void radix_sort() {
    std::vector<int> in{3, -1, 4, 1, -5}, out(5);
    polyscan::openmp::backend cpu;
    polyscan::radix_sort(cpu, in, out);                                       // -5 -1 1 3 4
    expect(out, {-5, -1, 1, 3, 4}, "radix_sort");
    polyscan::radix_sort(cpu, in, out, polyscan::sort_order::descending);     // 4 3 1 -1 -5
    expect(out, {4, 3, 1, -1, -5}, "radix_sort, descending");
    std::vector<unsigned> keys{2, 1, 2, 0}, keys_out(4);
    std::vector<char> values{'a', 'b', 'c', 'd'}, values_out(4);
    polyscan::radix_sort_by_key(cpu, keys, values, keys_out, values_out);     // 0 1 2 2, d b a c
    expect(keys_out, {0, 1, 2, 2}, "radix_sort_by_key, keys");
    expect(values_out, {'d', 'b', 'a', 'c'}, "radix_sort_by_key");
}

} // namespace
// clang-format on

int main() {
    scan();
    reduce();
    select();
    segmented();
    by_key();
    histogram();
    radix_sort();
}
