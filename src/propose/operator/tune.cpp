// SPDX-License-Identifier: Apache-2.0
//
// The proposer `tune`: searches the values of the tunables that a source declares (tunables.hpp),
// whoever wrote the source.
#include <fmt/format.h>

#include <algorithm>

#include "propose/proposer.hpp"
#include "propose/tunables.hpp"

namespace ke {
namespace {

constexpr int kTriesMax = 16;

struct Change {
  std::string source;
  std::string note;
};

Change change(std::string_view source, const Tunable& tunable, const std::string& value) {
  return {with_value(source, tunable, value),
          fmt::format("{} {} -> {}", tunable.name, tunable.current, value)};
}

// Mostly a neighbour in the declared order, else any other value.
std::string draw_value(const Tunable& tunable, Rng& rng) {
  const auto count = static_cast<int64_t>(tunable.values.size());
  const auto found = std::ranges::find(tunable.values, tunable.current);
  const int64_t at = found - tunable.values.begin();
  if (at == count) return rng.pick(tunable.values);
  int64_t next = 0;
  if (rng.chance(0.7)) {
    next = at == 0 ? 1 : at == count - 1 ? count - 2 : at + (rng.chance(0.5) ? 1 : -1);
  } else {
    next = rng.below(count - 1);
    if (next >= at) ++next;
  }
  return tunable.values[static_cast<size_t>(next)];
}

// One tunable changed, sometimes two.
Change draw(const std::string& source, Rng& rng) {
  const std::vector<Tunable> tunables = find_tunables(source);
  const Tunable& chosen = rng.pick(tunables);
  Change first = change(source, chosen, draw_value(chosen, rng));
  if (tunables.size() < 2 || !rng.chance(0.3)) return first;
  // Offsets moved: look them up again.
  const std::vector<Tunable> moved = find_tunables(first.source);
  const Tunable& other = rng.pick(moved);
  if (other.name == chosen.name) return first;
  Change second = change(first.source, other, draw_value(other, rng));
  second.note = first.note + ", " + second.note;
  return second;
}

// The first unknown source that differs in one value, in declared order.
std::optional<Change> sweep(const ProposalContext& context, const std::string& source) {
  for (const Tunable& tunable : find_tunables(source)) {
    for (const std::string& value : tunable.values) {
      Change one = change(source, tunable, value);
      if (!context.is_known(one.source)) return one;
    }
  }
  return std::nullopt;
}

class Tune final : public Proposer {
 public:
  Result<std::optional<Proposal>> propose(const ProposalContext& context, Rng& rng) const override {
    if (context.kind != NodeKind::mutate) return std::optional<Proposal>();
    const NodeRow& parent = context.parents.front().node;
    if (find_tunables(parent.source).empty()) return std::optional<Proposal>();
    std::optional<Change> found;
    for (int i = 0; i < kTriesMax && !found; ++i) {
      Change drawn = draw(parent.source, rng);
      if (!context.is_known(drawn.source)) found = std::move(drawn);
    }
    if (!found) found = sweep(context, parent.source);
    if (!found) return std::optional<Proposal>();
    return std::optional<Proposal>(Proposal{.source = std::move(found->source),
                                            .plan = {},
                                            .parents = {parent.id},
                                            .note = std::move(found->note)});
  }
};

}  // namespace

extern const ProposerInfo proposer_tune;
const ProposerInfo proposer_tune{
    .name = "tune",
    .help = "searches the values that a source declares with `// ke:tune NAME in {a, b}`",
    .make = [] { return std::unique_ptr<Proposer>(std::make_unique<Tune>()); }};

}  // namespace ke
