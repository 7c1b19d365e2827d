// SPDX-License-Identifier: Apache-2.0
#include "propose/model/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json.hpp"
#include "propose/model/text.hpp"
#include "propose/synth/genome.hpp"

namespace ke::model {
namespace {

constexpr size_t kTrajectoryMax = 10;
constexpr size_t kSiblingsMax = 16;
constexpr size_t kAttemptNoteBytesMax = 240;
constexpr size_t kAttemptDetailBytesMax = 300;
constexpr double kSameWithin = 0.01;  // of the speed: below what two measurements can tell apart

bool sees_trajectory(Memory memory) { return memory == Memory::parents || memory == Memory::both; }
bool sees_siblings(Memory memory) { return memory == Memory::siblings || memory == Memory::both; }

// What differs between the plans of two nodes; empty when that is nothing, or not known.
std::string plan_difference(const ProposalContext& context, const NodeRow& from,
                            const NodeRow& to) {
  if (context.programs.empty()) return {};
  const std::optional<synth::Genome> before = synth::genome_of(context, from);
  const std::optional<synth::Genome> after = synth::genome_of(context, to);
  if (!before || !after) return {};
  std::string text;
  for (size_t i = 0; i < after->cases.size(); ++i) {
    const std::string one = model::difference(before->cases[i].plan, after->cases[i].plan);
    if (one.empty()) continue;
    text += (text.empty() ? "" : "; ") + synth::case_prefix(*after, i) + one;
  }
  return text;
}

std::string what_changed(const ProposalContext& context, const NodeRow& node,
                         const std::optional<NodeRow>& parent) {
  std::string text = fmt::format("{} by {}", enum_name(node.kind), node.proposer);
  const std::string moved = parent ? plan_difference(context, *parent, node) : "";
  if (!moved.empty()) text += fmt::format(" ({})", one_line(moved, kAttemptNoteBytesMax));
  const std::string note = one_line(node.note, kAttemptNoteBytesMax);
  // The synthesizer's notes say the same as the difference.
  if (!note.empty() && (moved.empty() || node.proposer != "synth")) text += ": " + note;
  return text;
}

bool overlap(const Measurement& a, const Measurement& b) {
  return a.speedup_low <= b.speedup_high && b.speedup_low <= a.speedup_high;
}

void compare(Attempt& attempt, const std::optional<Evaluation>& parent) {
  if (!attempt.evaluation) return;
  if (attempt.evaluation->verdict != Verdict::accepted) {
    attempt.effect = Effect::rejected;
    return;
  }
  const std::optional<double> own = ranking_fitness(*attempt.evaluation);
  const std::optional<double> before = parent ? ranking_fitness(*parent) : std::nullopt;
  if (!own || !before) return;
  attempt.gain = *own / *before;
  const bool same =
      std::abs(*attempt.gain - 1) < kSameWithin ||
      overlap(*attempt.evaluation->measurement, *parent->measurement);
  attempt.effect = same ? Effect::same : *attempt.gain > 1 ? Effect::faster : Effect::slower;
}

std::optional<Evaluation> evaluation_in(std::optional<NodeEvaluation> found) {
  return found ? std::optional<Evaluation>(std::move(found->evaluation)) : std::nullopt;
}

Result<Attempt> attempt_of(const ProposalContext& context, const NodeRow& node) {
  std::optional<NodeRow> parent;
  std::optional<Evaluation> before;
  if (!node.parents.empty()) {
    parent = TRY(context.graph.node(node.parents.front()));
    before = evaluation_in(TRY(context.graph.verdict_of(parent->id)));
  }
  Attempt attempt{.node = node.id, .kind = node.kind};
  attempt.what = what_changed(context, node, parent);
  attempt.evaluation = evaluation_in(TRY(context.graph.verdict_of(node.id)));
  compare(attempt, before);
  return attempt;
}

Result<std::vector<Attempt>> attempts(const ProposalContext& context, const std::set<NodeId>& nodes,
                                      size_t count_max) {
  std::vector<Attempt> found;
  for (auto id = nodes.rbegin(); id != nodes.rend() && found.size() < count_max; ++id) {
    found.push_back(TRY(attempt_of(context, TRY(context.graph.node(*id)))));
  }
  return found;
}

}  // namespace

std::string difference(const ir::Plan& from, const ir::Plan& to) {
  const bool same_shape = std::ranges::equal(
      from.kernels, to.kernels, [](const ir::KernelPlan& a, const ir::KernelPlan& b) {
        return a.skeleton == b.skeleton && a.stages == b.stages;
      });
  if (!same_shape) {
    return fmt::format("fusion: {} -> {}", synth::shape_of(from), synth::shape_of(to));
  }
  std::string text;
  for (size_t i = 0; i < to.kernels.size(); ++i) {
    std::string changes;
    for (const auto& [name, value] : to.kernels[i].schedule) {
      const auto before = from.kernels[i].schedule.find(name);
      const bool had = before != from.kernels[i].schedule.end();
      if (had && before->second == value) continue;
      changes += fmt::format("{}{} {} -> {}", changes.empty() ? "" : ", ", name,
                             had ? fmt::format("{}", before->second) : "default", value);
    }
    if (changes.empty()) continue;
    text += fmt::format("{}kernel {} ({}): {}", text.empty() ? "" : "; ", i,
                        enum_name(to.kernels[i].skeleton), changes);
  }
  return text;
}

Result<History> history_of(const ProposalContext& context) {
  History history;
  std::set<NodeId> ancestors, others;
  if (context.parents.empty()) {
    if (context.memory == Memory::nothing) return history;
    for (const NodeRow& node : TRY(context.graph.nodes(context.run, false))) {
      if (node.kind == NodeKind::draft) others.insert(node.id);
    }
  }
  for (const ParentView& parent : context.parents) {
    if (sees_trajectory(context.memory)) {
      for (const NodeRow& node : TRY(context.graph.lineage(parent.node.id))) {
        ancestors.insert(node.id);
      }
    }
    if (sees_siblings(context.memory)) {
      for (const NodeRow& node : TRY(context.graph.children(parent.node.id))) {
        others.insert(node.id);
      }
    }
  }
  for (const NodeId id : ancestors) others.erase(id);
  history.trajectory = TRY(attempts(context, ancestors, kTrajectoryMax));
  history.siblings = TRY(attempts(context, others, kSiblingsMax));
  return history;
}

std::string duration(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  const auto [scale, unit] = ns < 1e6   ? std::pair(1e3, "us")
                             : ns < 1e9 ? std::pair(1e6, "ms")
                                        : std::pair(1e9, "s");
  const double value = ns / scale;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

std::string outcome(const std::optional<Evaluation>& evaluation) {
  if (!evaluation) return "not judged yet";
  if (evaluation->verdict != Verdict::accepted) {
    return fmt::format("{}: {}", enum_name(evaluation->verdict),
                       one_line(evaluation->detail, kAttemptDetailBytesMax));
  }
  std::string text = "accepted";
  if (evaluation->measurement) {
    text += fmt::format(", {} a call",
                        duration(static_cast<double>(evaluation->measurement->time_ns)));
  }
  if (const std::optional<double> speed = ranking_fitness(*evaluation)) {
    text += fmt::format(", {:.2f} times as fast as eager PyTorch", *speed);
  }
  return text;
}

std::string sentence(const Attempt& attempt) {
  std::string text =
      fmt::format("node {}, {}; {}", attempt.node.value, attempt.what, outcome(attempt.evaluation));
  if (attempt.effect == Effect::same) {
    text += "; as fast as its parent within the noise";
  } else if (attempt.gain) {
    text += fmt::format("; {:.2f} times as fast as its parent", *attempt.gain);
  }
  return text;
}

}  // namespace ke::model
