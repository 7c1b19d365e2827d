// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "propose/synth/genome.hpp"

namespace ke::synth {
namespace {

constexpr int kMutateTriesMax = 24;
constexpr double kFusionShare = 0.15;  // of the moves; the rest are schedule decisions
constexpr double kSecondMoveShare = 0.3;
constexpr double kNeighbourShare = 0.7;  // of the new values; the rest are any legal value
// A move that the cost model finds this much worse is tried only now and then.
constexpr double kWorseMax = 1.5;
constexpr double kWorseShare = 0.25;

struct Move {
  ir::Plan plan;
  std::string note;
};

// A kernel drawn by its share of the estimated time, among those that have a decision to change.
std::optional<size_t> draw_kernel(const CaseGenome& genome, Rng& rng) {
  double total = 0;
  std::vector<double> weights;
  for (size_t i = 0; i < genome.kernels.size(); ++i) {
    const bool has = std::ranges::any_of(
        genome.choices[i], [](const ScheduleChoice& choice) { return choice.values.size() > 1; });
    weights.push_back(has ? std::max(genome.estimates_ns[i], 1.0) : 0.0);
    total += weights.back();
  }
  if (total <= 0) return std::nullopt;
  double at = rng.uniform() * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    at -= weights[i];
    if (at < 0 && weights[i] > 0) return i;
  }
  return std::nullopt;  // rounding at the very end of the range: no move this time
}

int64_t draw_value(const ScheduleChoice& choice, int64_t current, Rng& rng) {
  const auto count = static_cast<int64_t>(choice.values.size());
  const int64_t at = std::ranges::find(choice.values, current) - choice.values.begin();
  int64_t next = 0;
  if (rng.chance(kNeighbourShare)) {
    next = at == 0 ? 1 : at == count - 1 ? count - 2 : at + (rng.chance(0.5) ? 1 : -1);
  } else {
    next = rng.below(count - 1);
    if (next >= at) ++next;
  }
  return choice.values[static_cast<size_t>(next)];
}

void set_decision(const CaseGenome& genome, size_t kernel, const ScheduleChoice& choice,
                  int64_t value, Move& move) {
  int64_t& held = move.plan.kernels[kernel].schedule[choice.name];
  move.note += fmt::format("{}{} {} {} -> {}", move.note.empty() ? "" : ", ",
                           genome.kernels[kernel].name, choice.name, held, value);
  held = value;
}

std::optional<Move> draw_schedule_move(const CaseGenome& genome, Rng& rng) {
  Move move{genome.plan, ""};
  const int count = rng.chance(kSecondMoveShare) ? 2 : 1;
  for (int i = 0; i < count; ++i) {
    const std::optional<size_t> kernel = draw_kernel(genome, rng);
    if (!kernel) return std::nullopt;
    std::vector<const ScheduleChoice*> open;
    for (const ScheduleChoice& choice : genome.choices[*kernel]) {
      if (choice.values.size() > 1) open.push_back(&choice);
    }
    const ScheduleChoice& choice = *rng.pick(open);
    const int64_t current = move.plan.kernels[*kernel].schedule[choice.name];
    set_decision(genome, *kernel, choice, draw_value(choice, current, rng), move);
  }
  return move;
}

Move fusion_move(const CaseGenome& genome, ir::Plan neighbour) {
  std::string note =
      fmt::format("fusion moved: {} -> {}", shape_of(genome.plan), shape_of(neighbour));
  return {std::move(neighbour), std::move(note)};
}

// Every single move there is, in random order.
std::vector<Move> all_moves(const CaseGenome& genome, std::vector<ir::Plan> neighbours, Rng& rng) {
  std::vector<Move> moves;
  for (size_t i = 0; i < genome.kernels.size(); ++i) {
    for (const ScheduleChoice& choice : genome.choices[i]) {
      for (const int64_t value : choice.values) {
        if (value == genome.plan.kernels[i].schedule.at(choice.name)) continue;
        moves.push_back({genome.plan, ""});
        set_decision(genome, i, choice, value, moves.back());
      }
    }
  }
  for (ir::Plan& plan : neighbours) moves.push_back(fusion_move(genome, std::move(plan)));
  rng.shuffle(moves);
  return moves;
}

// Mutations of one case of a parent.
class Mutator {
 public:
  Mutator(const ProposalContext& context, const Genome& genome, size_t index)
      : context_(context),
        genome_(genome),
        index_(index),
        neighbours_(ir::fusion_neighbours(program(), own().plan)) {}

  Result<std::optional<Proposal>> draw(Rng& rng) const {
    std::optional<Move> move;
    if (!neighbours_.empty() && rng.chance(kFusionShare)) {
      move = fusion_move(own(), rng.pick(neighbours_));
    } else {
      move = draw_schedule_move(own(), rng);
    }
    if (!move) return std::optional<Proposal>();
    std::optional<CaseGenome> child = complete(context_, program(), std::move(move->plan));
    if (!child) return std::optional<Proposal>();
    const double ratio = child->estimate_ns() / std::max(own().estimate_ns(), 1.0);
    if (ratio > kHopeless || (ratio > kWorseMax && !rng.chance(kWorseShare))) {
      return std::optional<Proposal>();
    }
    return print(std::move(*child), std::move(move->note));
  }

  // The first new one of all single moves, in random order.
  Result<std::optional<Proposal>> any(Rng& rng) const {
    for (Move& move : all_moves(own(), neighbours_, rng)) {
      std::optional<CaseGenome> child = complete(context_, program(), std::move(move.plan));
      if (!child || child->estimate_ns() > kHopeless * own().estimate_ns()) continue;
      auto found = TRY(print(std::move(*child), std::move(move.note)));
      if (found) return found;
    }
    return std::optional<Proposal>();
  }

 private:
  const ir::Program& program() const { return context_.programs[index_]; }
  const CaseGenome& own() const { return genome_.cases[index_]; }
  Result<std::optional<Proposal>> print(CaseGenome child, const std::string& note) const {
    return print_new(context_, genome_.with(index_, std::move(child)),
                     {context_.parents.front().node.id}, case_prefix(genome_, index_) + note);
  }

  const ProposalContext& context_;
  const Genome& genome_;
  size_t index_;
  std::vector<ir::Plan> neighbours_;
};

}  // namespace

Result<std::optional<Proposal>> mutate(const ProposalContext& context, Rng& rng) {
  const std::optional<Genome> genome = genome_of(context, context.parents.front().node);
  if (!genome) return std::optional<Proposal>();
  std::vector<size_t> cases = cases_to_vary(context);
  std::map<size_t, Mutator> mutators;
  for (const size_t i : cases) mutators.try_emplace(i, context, *genome, i);
  for (int i = 0; i < kMutateTriesMax; ++i) {
    // Each case alike, since a part gained in any counts the same.
    const size_t drawn = cases.size() == 1 ? cases[0] : rng.pick(cases);
    auto found = TRY(mutators.at(drawn).draw(rng));
    if (found) return found;
  }
  rng.shuffle(cases);
  for (const size_t i : cases) {
    auto found = TRY(mutators.at(i).any(rng));
    if (found) return found;
  }
  return std::optional<Proposal>();
}

}  // namespace ke::synth
