// SPDX-License-Identifier: Apache-2.0
/// Makes and judges the cells of primitives.hpp, for every backend. Each verb has its oracle here: sequential, boring,
/// and sharing nothing with the verbs but their operators. Where rounding shows, the oracle is the policy's tree over
/// the pairs that the verb's page names.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "matrix_impl.hpp"
#include "primitives.hpp"

namespace polyscan::test {
namespace {

using detail::guarded;
using result = std::optional<std::string>; ///< nothing if a cell is good, else what is wrong
using flag_list = std::vector<std::uint8_t>;

std::size_t at(index_type i) { return static_cast<std::size_t>(i); }

template <class Case>
constexpr bool is_exact = exactly_associative<typename Case::operator_type, typename Case::accumulator_type>;

/// The inclusive prefixes in the order of the policy of that name.
template <class T, class Operator>
std::vector<T> tree_of(std::string_view policy, const std::vector<T>& x, const Operator& op,
                       const std::optional<T>& init = std::nullopt) {
    std::vector<T> y;
    [&]<class... P>(type_list<P...>) {
        ((policy == P::name() ? void(y = reference::policy_order(P{}, x, op, init)) : void()), ...);
    }(primitive_policies{});
    return y;
}

/// Which number of elements a cell has beside the room for them.
struct amount {
    index_type room;
    std::optional<index_type> live; ///< what the device is told, sense or not
    index_type size() const { return live ? std::clamp<index_type>(*live, 0, room) : room; }
};

/// The device's copy of a number.
class number {
public:
    number(target& on, std::optional<index_type> value) : memory_(on, 1, 0), given_(value.has_value()) {
        if (given_) memory_.fill({*value});
    }
    const index_type* data() { return given_ ? memory_.data() : nullptr; }

private:
    guarded<index_type> memory_;
    bool given_;
};

std::string where(const target& on, std::string_view policy, std::string_view name, std::string_view verb,
                  const amount& n, const std::string& more) {
    return std::string(on.backend()) + ' ' + std::string(policy) + ' ' + std::string(name) + ' ' + std::string(verb) +
           " n=" + std::to_string(n.room) + (n.live ? " live=" + std::to_string(*n.live) : "") + ' ' + more +
           " workers=" + std::to_string(on.workers());
}

/// Runs the call; nothing if it went well.
template <class Call>
result attempt(target& on, const Call& call) {
    try {
        call();
        on.synchronize();
    } catch (const std::exception& error) {
        return std::string("threw ") + error.what();
    }
    return std::nullopt;
}

/// Elements [0, expected.size()) of `out` are as expected, the others as they were. An element without value must be as
/// it was.
template <class T>
result compare(guarded<T>& out, const char* name, index_type room, const std::vector<std::optional<T>>& expected) {
    out.fetch();
    if (const auto broken = out.guards_broken()) return std::string(name) + ' ' + *broken;
    for (index_type i = 0; i < room; ++i) {
        const bool wanted = at(i) < expected.size() && expected[at(i)].has_value();
        if (!wanted && !out.untouched(i)) return std::string(name) + ": element " + std::to_string(i) + " was written";
        if (!wanted) continue;
        const T found = out.value(i);
        if (!same_bits(found, *expected[at(i)]))
            return std::string(name) + ": element " + std::to_string(i) + " is " + show(found) + ", not " +
                   show(*expected[at(i)]);
    }
    return std::nullopt;
}

template <class T>
result unchanged(guarded<T>& in, const char* name) {
    in.fetch();
    if (const auto broken = in.guards_broken()) return std::string(name) + ' ' + *broken;
    return in.changed() ? result(std::string(name) + " was changed") : std::nullopt;
}

/// The cells of one verb: each size; each run-time count for some sizes; all targets.
template <class Check>
void each_cell(const std::vector<target*>& targets, std::string_view policy, index_type bytes,
               index_type elements_limit, tally& counts, const Check& check) {
    const tile_shape shape = detail::shape_by_name(policy, bytes);
    const auto run = [&](target& on, const amount& n) {
        check(on, n, [&](const result& wrong, std::string_view name, std::string_view verb, const std::string& more) {
            if (wrong)
                counts.fail(where(on, policy, name, verb, n, more) + ": " + *wrong);
            else
                counts.pass();
        });
    };
    // The first target gets every size, the others take turns. Target by target: runtimes make and end threads when
    // their number changes.
    std::vector<std::vector<amount>> amounts(targets.size());
    std::size_t turn = 0;
    const auto next_target = [&]() -> std::vector<amount>& { return amounts[turn++ % amounts.size()]; };
    for (const size_with_reason& size : sizes_for(shape, bytes, elements_limit)) {
        amounts.front().push_back({size.n, std::nullopt});
        if (std::vector<amount>& other = next_target(); &other != &amounts.front())
            other.push_back({size.n, std::nullopt});
    }
    const index_type tile = shape.elements(), room = 3 * tile + 7;
    if (room <= elements_limit)
        for (const index_type live : {index_type{-3}, index_type{0}, index_type{1}, tile, 2 * tile + 1, room, room + 9})
            next_target().push_back({room, live});
    for (std::size_t t = 0; t < targets.size(); ++t)
        for (const amount& n : amounts[t]) run(*targets[t], n);
}

// --- segments --------------------------------------------------------------------------------------------------------

/// Where segments begin. Each pattern comes with what it is for.
struct pattern {
    const char* name;
    flag_list heads; ///< element 0 is a head whatever its flag says
};

std::vector<pattern> patterns(index_type n, index_type tile) {
    std::vector<pattern> all{{"one segment", {}},
                             {"short segments", {}},
                             {"segments over many tiles", {}},
                             {"every element a segment", {}},
                             {"heads at the edges of tiles", {}}};
    for (index_type i = 0; i < n; ++i) {
        const std::uint64_t r = random_bits(77, i);
        all[0].heads.push_back(0);
        all[1].heads.push_back(r % 3 == 0 ? static_cast<std::uint8_t>(1 + r % 255) : std::uint8_t{0});
        all[2].heads.push_back(i % (3 * tile + 11) == 5);
        all[3].heads.push_back(2);
        all[4].heads.push_back(i % tile == 0 || (i / tile % 2 == 1 && (i % tile == 1 || i % tile == tile - 1)));
    }
    return all;
}

/// The same for inputs of hundreds of tiles. Carries are handed out by groups of tiles, of which each has some for a
/// lane: powers of two up to 256 tiles, whatever they are at present.
std::vector<pattern> long_patterns(index_type n, index_type tile, index_type row) {
    std::vector<pattern> all{{"one long segment", {}},
                             {"segments over hundreds of tiles", {}},
                             {"long segments from the edges of tiles", {}},
                             {"long segments from the edges of rows", {}},
                             {"heads at the edges of groups of tiles", {}},
                             {"tiles with heads and without", {}},
                             {"a head in every tile but some", {}}};
    for (pattern& p : all) p.heads.resize(at(n), 0);
    const auto head = [&](std::size_t p, index_type i) {
        if (i >= 0 && i < n) all[p].heads[at(i)] = 1;
    };
    const index_type tiles = ceil_div(n, tile);
    head(1, 97 * tile + tile / 2 + 1);
    head(1, tiles * 3 / 5 * tile + 1);
    for (index_type t = 0, turn = 0; t < tiles; t += 61, ++turn) head(2, t * tile + turn % 3 - 1);
    for (index_type t = 0, turn = 0; t < tiles; t += 37, ++turn) head(3, t * tile + turn * 7 % 64 * row + turn % 2 - 1);
    for (const index_type group : {32, 64, 128, 256})
        for (index_type t = group; t < tiles; t += group) {
            // The last tile of a group, the first of the next, or both.
            const std::uint64_t r = random_bits(78, t);
            if (r % 3 != 0) head(4, t * tile - 1 - static_cast<index_type>(r % 2) * (tile - 1));
            if (r % 3 != 1) head(4, t * tile + static_cast<index_type>(r >> 8 & 1) * (tile - 1));
        }
    for (index_type t = 0; t < tiles; ++t) {
        const std::uint64_t r = random_bits(79, t);
        const auto place = static_cast<index_type>(r >> 20) % tile;
        // Stretches in which every second tile has a head, every 16th, and nearly none.
        const std::uint64_t rare = t / 40 % 3 == 0 ? 2 : t / 40 % 3 == 1 ? 16 : 64;
        if (r % rare == 0) head(5, t * tile + place);
        if ((r >> 10) % 48 != 0) head(6, t * tile + place);
    }
    return all;
}

/// Keys whose runs are the pattern's segments; neighbours differ in one bit only.
std::vector<std::int32_t> keys_of(const flag_list& heads) {
    std::vector<std::int32_t> keys;
    std::int32_t key = 1 << 20;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if (i > 0 && heads[i] != 0) key ^= i % 2 == 0 ? 1 : 1 << 30;
        keys.push_back(key);
    }
    return keys;
}

/// The pattern by offsets: what lies before the first head that is flagged is in no segment, nor is the last segment;
/// and every fifth segment has an empty one before it.
std::vector<index_type> offsets_of(const flag_list& heads) {
    std::vector<index_type> offsets;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if (heads[i] == 0) continue;
        if (offsets.size() % 5 == 4) offsets.push_back(static_cast<index_type>(i));
        offsets.push_back(static_cast<index_type>(i));
    }
    return offsets;
}

/// Inclusive prefixes of every segment, left to right. Where rounding shows, by the policy's tree over pairs.
template <class Case>
std::vector<typename Case::accumulator_type>
segment_prefixes(std::string_view policy, const std::vector<typename Case::accumulator_type>& x, const flag_list& heads,
                 const std::optional<typename Case::accumulator_type>& init) {
    using A = typename Case::accumulator_type;
    const typename Case::operator_type op{};
    std::vector<A> y;
    y.reserve(x.size());
    if constexpr (is_exact<Case>) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (i > 0 && heads[i] == 0)
                y.push_back(combine(op, A(y[i - 1]), x[i]));
            else
                y.push_back(init ? combine(op, *init, x[i]) : x[i]);
        }
    } else {
        std::vector<segmented<A>> pairs;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const bool head = i == 0 || heads[i] != 0;
            pairs.push_back({head && init ? combine(op, *init, x[i]) : x[i], head});
        }
        for (const segmented<A>& prefix : tree_of(policy, pairs, segmented_operator<typename Case::operator_type>{op}))
            y.push_back(prefix.value);
    }
    return y;
}

} // namespace

// --- reduce ----------------------------------------------------------------------------------------------------------

namespace {

template <class Case>
result reduce_cell(target& on, const primitive_function<reduce_arguments<Case>>& run, std::string_view policy,
                   const amount& n, bool with_init) {
    using A = typename Case::accumulator_type;
    using op = typename Case::operator_type;
    const auto input = make_input<Case>(n.room, 5);
    std::vector<A> x = converted<Case>(input);
    x.erase(x.begin() + n.size(), x.end());
    std::optional<A> init, expected;
    if (with_init) init.emplace(make_init<Case>(3));
    if (!x.empty()) {
        // The total of an inclusive scan under the same policy.
        expected.emplace(is_exact<Case> ? reference::sequential(x, op{}, init).back()
                                        : tree_of(policy, x, op{}, init).back());
    } else if (init) {
        expected.emplace(*init);
    } else if constexpr (has_identity<op, A>) {
        expected.emplace(identity_of<A>(op{}));
    }
    guarded<typename Case::in_type> in(on, n.room, with_init ? 0 : 3);
    guarded<A> out(on, 1, 0);
    number live(on, n.live);
    in.fill(input);
    reduce_arguments<Case> arguments;
    arguments.in = in.data();
    arguments.size = n.room;
    arguments.live = live.data();
    if (init) arguments.init.emplace(*init);
    arguments.result = out.data();
    result wrong = attempt(on, [&] { run(on, policy, arguments); });
    if (!wrong) wrong = compare<A>(out, "result", 1, {expected});
    if (!wrong) wrong = unchanged(in, "input");
    return wrong;
}

} // namespace

template <class Case>
void check_reduce(const std::vector<target*>& targets, const primitive_function<reduce_arguments<Case>>& run,
                  std::string_view policy, index_type elements_limit, tally& counts) {
    constexpr index_type bytes = shape_bytes<typename Case::accumulator_type>;
    each_cell(targets, policy, bytes, elements_limit, counts, [&](target& on, const amount& n, auto report) {
        for (const bool with_init : {false, true})
            report(reduce_cell<Case>(on, run, policy, n, with_init), Case::name, "reduce", with_init ? "init" : "");
    });
}

template <class Case>
void check_long_reduce(const std::vector<target*>& targets, const primitive_function<reduce_arguments<Case>>& run,
                       index_type elements, tally& counts) {
    const std::string policy = default_policy::name();
    const index_type tile = detail::shape_by_name(policy, shape_bytes<typename Case::accumulator_type>).elements();
    std::size_t turn = 0;
    // A little more than one, two and more of the groups of tiles that aggregates are folded in.
    for (const index_type tiles : {index_type{129}, index_type{257}, index_type{330}})
        for (const bool with_init : {false, true}) {
            const amount n{std::min(tiles * tile, elements) + (with_init ? 77 : 0), std::nullopt};
            target& on = *targets[turn++ % 2 == 0 ? 0 : turn / 2 % targets.size()];
            if (const result wrong = reduce_cell<Case>(on, run, policy, n, with_init))
                counts.fail(where(on, policy, Case::name, "reduce", n, with_init ? "init" : "") + ": " + *wrong);
            else
                counts.pass();
        }
}

// --- selections ------------------------------------------------------------------------------------------------------

template <class Case>
void check_select(const std::vector<target*>& targets, const primitive_function<select_arguments<Case>>& run,
                  std::string_view policy, index_type elements_limit, tally& counts) {
    using T = typename Case::in_type;
    constexpr std::pair<selection_verb, const char*> verbs[] = {{selection_verb::copy_if, "copy_if"},
                                                                {selection_verb::partition, "partition"},
                                                                {selection_verb::unique, "unique"},
                                                                {selection_verb::copy_flagged, "copy_if flagged"},
                                                                {selection_verb::remove_if, "remove_if"}};
    const std::size_t forms = forms_of_case<Case> == forms::all && policy == default_policy::name() ? 5 : 3;
    constexpr const char* densities[] = {"half", "none", "all"};
    each_cell(targets, policy, sizeof(index_type), elements_limit, counts,
              [&](target& on, const amount& n, auto report) {
                  for (int density = 0; density < 3; ++density) {
                      std::vector<T> input = make_input<Case>(n.room, 6);
                      if (density > 0) // a single value, which is chosen or not
                          for (T& value : input)
                              reinterpret_cast<unsigned char&>(value) = static_cast<unsigned char>(
                                  (reinterpret_cast<unsigned char&>(value) & 0xf0) | 1 | (density == 2 ? 2 : 0));
                      flag_list flags;
                      for (index_type i = 0; i < n.room; ++i)
                          flags.push_back(density == 0 ? static_cast<std::uint8_t>(random_bits(8, i) % 2 * 255)
                                                       : static_cast<std::uint8_t>(density == 2));
                      for (std::size_t form = 0; form < forms; ++form) {
                          const selection_verb verb = verbs[form].first;
                          std::vector<std::optional<T>> expected, rejected;
                          for (index_type i = 0; i < n.size(); ++i) {
                              const T& value = input[at(i)];
                              bool chosen = is_chosen{}(value);
                              if (verb == selection_verb::copy_flagged) chosen = flags[at(i)] != 0;
                              if (verb == selection_verb::remove_if) chosen = !chosen;
                              if (verb == selection_verb::unique)
                                  chosen = i == 0 || !same_residue{}(input[at(i - 1)], value);
                              (chosen ? expected : rejected).push_back(value);
                          }
                          const auto selected = static_cast<index_type>(expected.size());
                          if (verb == selection_verb::partition)
                              expected.insert(expected.end(), rejected.begin(), rejected.end());

                          guarded<T> in(on, n.room, density);
                          guarded<std::uint8_t> marks(on, n.room, 1 - density % 2);
                          guarded<T> out(on, n.room, 1);
                          guarded<index_type> count(on, 1, 0);
                          number live(on, n.live);
                          in.fill(input);
                          marks.fill(flags);
                          // Where nothing asks for the count it may be null.
                          const bool counted_too = verb == selection_verb::partition || density != 1;
                          const select_arguments<Case> arguments{verb,
                                                                 in.data(),
                                                                 marks.data(),
                                                                 n.room,
                                                                 live.data(),
                                                                 out.data(),
                                                                 counted_too ? count.data() : nullptr};
                          result wrong = attempt(on, [&] { run(on, policy, arguments); });
                          if (!wrong)
                              wrong = compare<index_type>(count, "count", 1,
                                                          {counted_too ? std::optional(selected) : std::nullopt});
                          if (!wrong) wrong = compare<T>(out, "output", n.room, expected);
                          if (!wrong) wrong = unchanged(in, "input");
                          if (!wrong) wrong = unchanged(marks, "flags");
                          report(wrong, Case::name, verbs[form].second, densities[density]);
                      }
                  }
              });
}

// --- segmented scans -------------------------------------------------------------------------------------------------

namespace {

struct segmented_form {
    segments_by by;
    scan_kind kind;
    bool with_init;
    const char* name;
};
constexpr segmented_form segmented_forms[] = {
    {segments_by::flags, scan_kind::inclusive, false, "flags inclusive"},   // forms::one
    {segments_by::keys, scan_kind::exclusive, true, "keys exclusive init"}, // forms::few
    {segments_by::offsets, scan_kind::inclusive, false, "offsets inclusive"},
    {segments_by::flags, scan_kind::inclusive, true, "flags inclusive init"},
    {segments_by::keys, scan_kind::inclusive, false, "keys inclusive"},
    {segments_by::flags, scan_kind::exclusive, true, "flags exclusive init"},
    {segments_by::flags, scan_kind::exclusive, false, "flags exclusive"},
    {segments_by::offsets, scan_kind::exclusive, true, "offsets exclusive init"}};

/// Runs and judges one form over one pattern; `p` varies where the memory lies.
template <class Case>
result segmented_cell(target& on, const primitive_function<segmented_arguments<Case>>& run, std::string_view policy,
                      const amount& n, const std::vector<typename Case::in_type>& input, const flag_list& heads,
                      const segmented_form& form, std::size_t p, bool in_place) {
    using A = typename Case::accumulator_type;
    using in_type = typename Case::in_type;
    using out_type = typename Case::out_type;
    const auto keys = keys_of(heads);
    const auto offsets = offsets_of(heads);
    std::optional<A> init;
    if (form.with_init) init.emplace(make_init<Case>(4));
    std::optional<A> at_heads;
    if (init) at_heads.emplace(*init);
    if constexpr (has_identity<typename Case::operator_type, A>)
        if (!init) at_heads.emplace(identity_of<A>(typename Case::operator_type{}));
    // The elements that take part: a tile beyond the live ones could be told from it, if it took part.
    std::vector<A> x = converted<Case>(input);
    x.erase(x.begin() + n.size(), x.end());
    // Where the last offset lies, something else begins.
    const std::vector<A> prefixes = segment_prefixes<Case>(policy, x, heads, init);
    std::vector<std::optional<out_type>> expected;
    for (index_type i = 0; i < n.size(); ++i) {
        const bool head = i == 0 || heads[at(i)] != 0;
        expected.emplace_back();
        if (form.by == segments_by::offsets && (offsets.size() < 2 || i < offsets.front() || i >= offsets.back()))
            continue; // in no segment
        if (form.kind == scan_kind::inclusive)
            expected.back().emplace(static_cast<out_type>(prefixes[at(i)]));
        else
            expected.back().emplace(static_cast<out_type>(head ? *at_heads : prefixes[at(i - 1)]));
    }

    guarded<in_type> in(on, n.room, p % 2 == 0 ? 0 : 3);
    guarded<out_type> out(on, in_place ? 0 : n.room, p % 2 == 0 ? 0 : 1);
    guarded<std::uint8_t> flags_memory(on, n.room, static_cast<index_type>(p));
    guarded<std::int32_t> keys_memory(on, n.room, static_cast<index_type>(p % 3));
    guarded<index_type> offsets_memory(on, static_cast<index_type>(offsets.size()), 0);
    number live(on, n.live);
    in.fill(input);
    flags_memory.fill(heads);
    keys_memory.fill(keys);
    offsets_memory.fill(offsets);
    segmented_arguments<Case> arguments;
    arguments.by = form.by;
    arguments.kind = form.kind;
    arguments.in = in.data();
    arguments.flags = flags_memory.data();
    arguments.keys = keys_memory.data();
    arguments.offsets = offsets_memory.data();
    arguments.offsets_size = static_cast<index_type>(offsets.size());
    arguments.size = n.room;
    arguments.live = live.data();
    if (init) arguments.init.emplace(*init);
    arguments.out = out.data();
    if constexpr (std::is_same_v<in_type, out_type>)
        if (in_place) arguments.out = in.data();

    result wrong = attempt(on, [&] { run(on, policy, arguments); });
    if (!wrong) {
        if constexpr (std::is_same_v<in_type, out_type>)
            wrong = in_place ? compare<out_type>(in, "output", n.room, expected)
                             : compare<out_type>(out, "output", n.room, expected);
        else
            wrong = compare<out_type>(out, "output", n.room, expected);
    }
    if (!wrong && !in_place) wrong = unchanged(in, "input");
    if (!wrong) wrong = unchanged(flags_memory, "flags");
    if (!wrong) wrong = unchanged(keys_memory, "keys");
    if (!wrong) wrong = unchanged(offsets_memory, "offsets");
    return wrong;
}

template <class Case>
std::size_t segmented_form_count(std::string_view policy) {
    constexpr forms those = forms_of_case<Case>;
    if (those == forms::one) return 1;
    return those == forms::all && policy == default_policy::name() ? std::size(segmented_forms) : 2;
}
template <class Case>
bool is_in_place(std::size_t p, std::size_t form) {
    return std::is_same_v<typename Case::in_type, typename Case::out_type> && (p + form) % 3 == 1;
}
std::string pattern_name(const pattern& p, bool in_place) { return p.name + std::string(in_place ? " in place" : ""); }

} // namespace

template <class Case>
void check_segmented(const std::vector<target*>& targets, const primitive_function<segmented_arguments<Case>>& run,
                     std::string_view policy, index_type elements_limit, tally& counts) {
    constexpr index_type bytes = shape_bytes<segmented<typename Case::accumulator_type>>;
    const index_type tile = detail::shape_by_name(policy, bytes).elements();
    std::size_t turn = 0;
    each_cell(targets, policy, bytes, elements_limit, counts, [&](target& on, const amount& n, auto report) {
        const auto input = make_input<Case>(n.room, 9);
        const std::vector<pattern> all = patterns(n.room, tile);
        for (std::size_t p = 0; p < all.size(); ++p)
            for (std::size_t f = 0; f < segmented_form_count<Case>(policy); ++f) {
                const segmented_form& form = segmented_forms[f];
                // Long inputs: forms and patterns take turns.
                if (n.room > 5'000 && turn++ % 3 != 0) continue;
                const bool in_place = is_in_place<Case>(p, f);
                report(segmented_cell<Case>(on, run, policy, n, input, all[p].heads, form, p, in_place), Case::name,
                       form.name, pattern_name(all[p], in_place));
            }
    });
}

namespace {

/// Calls check(target, amount, pattern, its number, turn, report) for each pattern of a long input: by the first
/// target, then by another one.
template <class Check>
void each_long_pattern(const std::vector<target*>& targets, index_type bytes, index_type elements, tally& counts,
                       const Check& check) {
    const std::string policy = default_policy::name();
    const tile_shape shape = detail::shape_by_name(policy, bytes);
    const index_type tiles = std::min<index_type>(330, elements / shape.elements());
    const amount n{tiles * shape.elements() + 77, std::nullopt};
    const std::vector<pattern> all = long_patterns(n.room, shape.elements(), static_cast<index_type>(shape.run));
    for (std::size_t p = 0; p < all.size(); ++p)
        for (std::size_t turn = 0; turn < 2; ++turn) {
            target& on = *targets[turn == 0 ? 0 : (p + 1) % targets.size()];
            check(on, n, all[p], p, turn,
                  [&](const result& wrong, std::string_view name, std::string_view verb, bool in_place) {
                      if (wrong)
                          counts.fail(where(on, policy, name, verb, n, pattern_name(all[p], in_place)) + ": " + *wrong);
                      else
                          counts.pass();
                  });
        }
}

} // namespace

template <class Case>
void check_long_segmented(const std::vector<target*>& targets, const primitive_function<segmented_arguments<Case>>& run,
                          index_type elements, tally& counts) {
    constexpr index_type bytes = shape_bytes<segmented<typename Case::accumulator_type>>;
    const std::string policy = default_policy::name();
    each_long_pattern(
        targets, bytes, elements, counts,
        [&](target& on, const amount& n, const pattern& heads, std::size_t p, std::size_t turn, auto report) {
            // Forms take turns.
            const std::size_t f = (p + 3 * turn) % segmented_form_count<Case>(policy);
            const bool in_place = is_in_place<Case>(p, f);
            report(segmented_cell<Case>(on, run, policy, n, make_input<Case>(n.room, 9), heads.heads,
                                        segmented_forms[f], p, in_place),
                   Case::name, segmented_forms[f].name, in_place);
        });
}

// --- reductions by key, run lengths ----------------------------------------------------------------------------------

namespace {

/// Runs and judges reduce_by_key, or run_length_encode.
template <class Case>
result runs_cell(target& on, const primitive_function<runs_arguments<Case>>& run, std::string_view policy,
                 const amount& n, const flag_list& heads, bool lengths_wanted) {
    using A = typename Case::accumulator_type;
    using op = typename Case::operator_type;
    using out_type = typename Case::out_type;
    const auto input = make_input<Case>(n.room, 10);
    std::vector<A> x = converted<Case>(input);
    x.erase(x.begin() + n.size(), x.end());
    const auto keys = keys_of(heads);
    const auto is_head = [&](index_type i) { return i == 0 || keys[at(i)] != keys[at(i - 1)]; };
    // Prefixes of every run; its fold is the last of them.
    std::vector<A> prefixes;
    if constexpr (is_exact<Case>) {
        for (index_type i = 0; i < n.size(); ++i)
            prefixes.push_back(is_head(i) ? x[at(i)] : combine(op{}, A(prefixes.back()), x[at(i)]));
    } else {
        std::vector<run_value<A>> pairs;
        for (index_type i = 0; i < n.size(); ++i) pairs.push_back({is_head(i) ? 1 : 0, x[at(i)]});
        for (const auto& prefix : tree_of(policy, pairs, run_operator<op>{})) prefixes.push_back(prefix.value);
    }
    std::vector<std::optional<std::int32_t>> run_keys, run_lengths;
    std::vector<std::optional<out_type>> folds;
    for (index_type i = 0; i < n.size(); ++i) {
        if (is_head(i)) {
            run_keys.push_back(keys[at(i)]);
            run_lengths.push_back(0);
        }
        run_lengths.back() = *run_lengths.back() + 1;
        if (i + 1 == n.size() || is_head(i + 1))
            folds.emplace_back(std::in_place, static_cast<out_type>(prefixes[at(i)]));
    }
    guarded<std::int32_t> keys_memory(on, n.room, 1);
    guarded<typename Case::in_type> in(on, n.room, 0);
    guarded<std::int32_t> keys_out(on, n.room, 0);
    guarded<out_type> out(on, n.room, 1);
    guarded<std::int32_t> lengths(on, n.room, 3);
    guarded<index_type> count(on, 1, 0);
    number live(on, n.live);
    keys_memory.fill(keys);
    in.fill(input);
    const runs_arguments<Case> arguments{lengths_wanted,  keys_memory.data(), in.data(),      n.room,      live.data(),
                                         keys_out.data(), out.data(),         lengths.data(), count.data()};
    result wrong = attempt(on, [&] { run(on, policy, arguments); });
    if (!wrong) wrong = compare<index_type>(count, "count", 1, {static_cast<index_type>(run_keys.size())});
    if (!wrong) wrong = compare<std::int32_t>(keys_out, "keys", n.room, run_keys);
    if (!wrong)
        wrong = lengths_wanted ? compare<std::int32_t>(lengths, "lengths", n.room, run_lengths)
                               : compare<out_type>(out, "output", n.room, folds);
    if (!wrong) wrong = unchanged(keys_memory, "input keys");
    if (!wrong) wrong = unchanged(in, "input");
    return wrong;
}

/// Lengths do not depend on the case.
template <class Case>
constexpr int runs_verbs = std::is_same_v<Case, cases::int32_plus> ? 2 : 1;
constexpr const char* runs_verb_names[] = {"reduce_by_key", "run_length_encode"};

} // namespace

template <class Case>
void check_runs(const std::vector<target*>& targets, const primitive_function<runs_arguments<Case>>& run,
                std::string_view policy, index_type elements_limit, tally& counts) {
    constexpr index_type bytes = shape_bytes<run_value<typename Case::accumulator_type>>;
    const index_type tile = detail::shape_by_name(policy, bytes).elements();
    each_cell(targets, policy, bytes, elements_limit, counts, [&](target& on, const amount& n, auto report) {
        for (const pattern& p : patterns(n.room, tile))
            for (int verb = 0; verb < runs_verbs<Case>; ++verb)
                report(runs_cell<Case>(on, run, policy, n, p.heads, verb == 1), Case::name, runs_verb_names[verb],
                       p.name);
    });
}

template <class Case>
void check_long_runs(const std::vector<target*>& targets, const primitive_function<runs_arguments<Case>>& run,
                     index_type elements, tally& counts) {
    constexpr index_type bytes = shape_bytes<run_value<typename Case::accumulator_type>>;
    const std::string policy = default_policy::name();
    each_long_pattern(
        targets, bytes, elements, counts,
        [&](target& on, const amount& n, const pattern& p, std::size_t p_number, std::size_t turn, auto report) {
            const int verb = static_cast<int>(p_number + turn) % runs_verbs<Case>;
            report(runs_cell<Case>(on, run, policy, n, p.heads, verb == 1), Case::name, runs_verb_names[verb], false);
        });
}

#define POLYSCAN_CHECK(verb, name)                                                                                     \
    template void check_##verb<cases::name>(const std::vector<target*>&,                                               \
                                            const primitive_function<verb##_arguments<cases::name>>&,                  \
                                            std::string_view, index_type, tally&);
#define POLYSCAN_CHECK_REDUCE(name, policies) POLYSCAN_CHECK(reduce, name)
#define POLYSCAN_CHECK_SELECT(name, policies) POLYSCAN_CHECK(select, name)
#define POLYSCAN_CHECK_SEGMENTED(name, policies) POLYSCAN_CHECK(segmented, name)
#define POLYSCAN_CHECK_RUNS(name, policies) POLYSCAN_CHECK(runs, name)
POLYSCAN_REDUCE_CASES(POLYSCAN_CHECK_REDUCE)
POLYSCAN_SELECT_CASES(POLYSCAN_CHECK_SELECT)
POLYSCAN_SEGMENTED_CASES(POLYSCAN_CHECK_SEGMENTED)
POLYSCAN_OPERATOR_CASES(POLYSCAN_CHECK_SEGMENTED)
POLYSCAN_RUNS_CASES(POLYSCAN_CHECK_RUNS)
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_CHECK_REDUCE)
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_CHECK_SEGMENTED)
POLYSCAN_PRIMITIVE_HOST_CASES(POLYSCAN_CHECK_RUNS)

#define POLYSCAN_CHECK_LONG(verb, name)                                                                                \
    template void check_long_##verb<cases::name>(                                                                      \
        const std::vector<target*>&, const primitive_function<verb##_arguments<cases::name>>&, index_type, tally&);
#define POLYSCAN_CHECK_LONG_REDUCE(name, policies) POLYSCAN_CHECK_LONG(reduce, name)
#define POLYSCAN_CHECK_LONG_SEGMENTED(name, policies) POLYSCAN_CHECK_LONG(segmented, name)
#define POLYSCAN_CHECK_LONG_RUNS(name, policies) POLYSCAN_CHECK_LONG(runs, name)
POLYSCAN_LONG_REDUCE_CASES(POLYSCAN_CHECK_LONG_REDUCE)
POLYSCAN_LONG_SEGMENTED_CASES(POLYSCAN_CHECK_LONG_SEGMENTED)
POLYSCAN_LONG_RUNS_CASES(POLYSCAN_CHECK_LONG_RUNS)

} // namespace polyscan::test
