// SPDX-License-Identifier: Apache-2.0
#include "app/distill.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/json.hpp"
#include "ir/plan.hpp"
#include "knowledge/deep_search.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

using knowledge::DecisionChange;
using knowledge::Skill;
using knowledge::SkillEvidence;

constexpr size_t kChangesMax = 2;    // decisions: a gain of more could not be put down to one
constexpr size_t kSkillsMax = 5;     // of a run: somebody has to read them
constexpr size_t kEvidenceMax = 24;  // pairs of a skill

// How fast a node was against eager PyTorch, with the interval of its measurement.
struct Speed {
  double middle = 0;
  double low = 0;
  double high = 0;
  bool confirmed = false;
};

std::optional<Speed> speed_of(const NodeEvaluation& node) {
  const Evaluation& evaluation = node.evaluation;
  const std::optional<double> fitness = ranking_fitness(evaluation);
  if (!fitness || !evaluation.measurement || node.reused_from) return std::nullopt;
  for (const std::string_view doubt : {"too_small", "drift"}) {
    if (std::ranges::find(evaluation.flags, doubt) != evaluation.flags.end()) return std::nullopt;
  }
  const Measurement& measured = *evaluation.measurement;
  if (measured.speedup <= 0 || measured.speedup_low <= 0) return std::nullopt;
  return Speed{*fitness, *fitness * measured.speedup_low / measured.speedup,
               *fitness * measured.speedup_high / measured.speedup, evaluation.confirmed};
}

// Of each node the confirmed figure, else the latest.
Result<std::map<NodeId, Speed>> speeds_of_run(const GraphReader& graph, RunId run) {
  std::map<NodeId, NodeEvaluation> deciding;
  for (NodeEvaluation& one : TRY(graph.evaluations_of_run(run))) {
    const auto at = deciding.find(one.node);
    if (at != deciding.end() && at->second.evaluation.confirmed && !one.evaluation.confirmed) {
      continue;
    }
    deciding.insert_or_assign(one.node, std::move(one));
  }
  std::map<NodeId, Speed> speeds;
  for (const auto& [node, evaluation] : deciding) {
    if (const std::optional<Speed> speed = speed_of(evaluation)) speeds[node] = *speed;
  }
  return speeds;
}

// A plan whose stages are the program's, or nothing: seeds and hand-written kernels have none.
std::optional<ir::Plan> plan_of(const NodeRow& node, const ir::Program& program) {
  if (node.plan.empty()) return std::nullopt;
  const auto json = parse_json(node.plan);
  if (!json) return std::nullopt;
  auto plan = ir::decode_plan(*json, program);
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

struct Difference {
  size_t kernel = 0;
  std::vector<DecisionChange> changes;
};

// Nothing unless one kernel alone differs, in one or two decisions that both plans spell out.
std::optional<Difference> difference(const ir::Plan& from, const ir::Plan& to) {
  if (from.kernels.size() != to.kernels.size()) return std::nullopt;
  std::optional<Difference> found;
  for (size_t i = 0; i < from.kernels.size(); ++i) {
    const ir::KernelPlan& a = from.kernels[i];
    const ir::KernelPlan& b = to.kernels[i];
    if (a.skeleton != b.skeleton || a.stages != b.stages) return std::nullopt;
    if (a.schedule == b.schedule) continue;
    if (found || a.schedule.size() != b.schedule.size()) return std::nullopt;
    found = Difference{i, {}};
    for (const auto& [name, value] : a.schedule) {
      const auto other = b.schedule.find(name);
      if (other == b.schedule.end()) return std::nullopt;
      if (other->second != value) found->changes.push_back({name, value, other->second});
    }
  }
  if (!found || found->changes.size() > kChangesMax) return std::nullopt;
  return found;
}

// The ATen operations that a kernel of the plan does, what is inlined into it included.
std::vector<std::string> operations_of(const ir::Program& program, const ir::Plan& plan,
                                       size_t kernel) {
  const auto kernels = ir::realize(program, plan);
  if (!kernels || kernel >= kernels->size()) return {};
  std::set<std::string> names;
  for (const ir::FusedStage& stage : (*kernels)[kernel].stages) {
    for (const std::string& origin : knowledge::split_trimmed(stage.origin, ',')) {
      names.emplace(knowledge::operation_name(origin));
    }
  }
  return {names.begin(), names.end()};
}

std::vector<DecisionChange> reversed(std::vector<DecisionChange> changes) {
  for (DecisionChange& change : changes) std::swap(change.from, change.to);
  return changes;
}

// Gathers pairs into lessons, by id.
class Lessons {
 public:
  Lessons(const ProblemRow& problem, const RunRow& run, const ir::Program& program)
      : problem_(problem), run_(run), program_(program) {}

  void add_pair(const NodeRow& parent, const Speed& before, const NodeRow& child,
                const Speed& after) {
    const bool gained = after.low > before.high;
    if (!gained && before.low <= after.high) return;  // within the noise
    const std::optional<ir::Plan> a = plan_of(parent, program_);
    const std::optional<ir::Plan> b = plan_of(child, program_);
    if (!a || !b) return;
    const std::optional<Difference> differs = difference(*a, *b);
    if (!differs) return;
    // A lesson always goes from the slower to the faster.
    const Speed& slow = gained ? before : after;
    const Speed& fast = gained ? after : before;
    Skill skill{.target = run_.scope.target,
                .skeleton = std::string(enum_name(a->kernels[differs->kernel].skeleton)),
                .operations = operations_of(program_, *a, differs->kernel),
                .changes = gained ? differs->changes : reversed(differs->changes)};
    skill.evidence.push_back({.problem = problem_.name,
                              .digest = problem_.digest.short_hex(),
                              .run = run_.id.value,
                              .from = (gained ? parent : child).id.value,
                              .to = (gained ? child : parent).id.value,
                              .gain = fast.middle / slow.middle,
                              .low = fast.low / slow.high,
                              .high = fast.high / slow.low,
                              .confirmed = fast.confirmed && slow.confirmed});
    const auto [at, is_new] = skills_.try_emplace(knowledge::skill_id(skill), skill);
    if (!is_new && at->second.evidence.size() < kEvidenceMax) {
      knowledge::merge_evidence(at->second.evidence, skill.evidence);
    }
  }

  std::vector<Skill> take() {
    std::vector<Skill> kept;
    for (const auto& [id, skill] : skills_) {
      Skill opposite = skill;
      opposite.changes = reversed(skill.changes);
      if (!skills_.contains(knowledge::skill_id(opposite))) kept.push_back(skill);
    }
    const auto least_gain = [](const Skill& skill) {
      return std::ranges::min_element(skill.evidence, {}, &SkillEvidence::low)->low;
    };
    std::ranges::stable_sort(kept, std::greater(), least_gain);
    if (kept.size() > kSkillsMax) kept.resize(kSkillsMax);
    return kept;
  }

 private:
  const ProblemRow& problem_;
  const RunRow& run_;
  const ir::Program& program_;
  std::map<std::string, Skill> skills_;
};

}  // namespace

Result<std::vector<Skill>> distill(const GraphReader& graph, RunId run,
                                   const ir::Program& program) {
  const RunRow row = TRY(graph.run(run));
  const ProblemRow problem = TRY(graph.problem(row.scope.problem));
  const std::map<NodeId, Speed> speeds = TRY(speeds_of_run(graph, run));
  const std::vector<NodeRow> nodes = TRY(graph.nodes(run, true));  // with plans
  std::map<NodeId, const NodeRow*> by_id;
  for (const NodeRow& node : nodes) by_id[node.id] = &node;
  Lessons lessons(problem, row, program);
  for (const NodeRow& child : nodes) {
    const auto after = speeds.find(child.id);
    if (after == speeds.end()) continue;
    for (const NodeId parent : child.parents) {
      const auto before = speeds.find(parent);
      if (before == speeds.end() || !by_id.contains(parent)) continue;
      lessons.add_pair(*by_id[parent], before->second, child, after->second);
    }
  }
  return lessons.take();
}

Result<int64_t> propose_skills(std::span<const Skill> skills, const std::filesystem::path& folder) {
  int64_t count = 0;
  for (Skill skill : skills) {
    const std::string path = knowledge::skill_path(knowledge::skill_id(skill));
    if (os::exists(folder / path)) {
      const std::string text =
          TRY(os::read_file(folder / path, knowledge::kDocumentBytesMax).context("a skill"));
      const auto known = TRY(knowledge::parse_document(path, text, folder.string()));
      std::vector<SkillEvidence> evidence = TRY(knowledge::evidence_of(known));
      if (evidence.size() >= kEvidenceMax) continue;
      if (!knowledge::merge_evidence(evidence, skill.evidence)) continue;
      skill.evidence = std::move(evidence);
      skill.status = known.skill->status;
    } else {
      ++count;
    }
    TRY(os::make_directories((folder / path).parent_path()).context("the skills"));
    TRY(os::write_file_atomically(folder / path, knowledge::render(skill)).context("a skill"));
  }
  return count;
}

}  // namespace ke::app
