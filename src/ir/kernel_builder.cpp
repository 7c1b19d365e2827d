// SPDX-License-Identifier: Apache-2.0
//
// Builds one fused kernel from its stages.
#include "ir/kernel_builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"

namespace ke::ir {
namespace {

std::string origin_of(const Program& program, const std::set<int>& sources) {
  std::vector<std::string> names;
  for (int source : sources) {
    const std::string& name = program.stages[static_cast<size_t>(source)].origin;
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Error refuse(const Program& program, const OpenStage& stage, std::string_view what) {
  return {Errc::invalid, fmt::format("stage {} {}", program.tensor(stage.output).name, what)};
}

// A scan and the maps of what it yields, each at its own element.
Result<void> check_scan(const Program& program, const std::vector<OpenStage>& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    const OpenStage& stage = stages[i];
    if ((i == 0) != (stage.scan >= 0) || (i > 0 && stage.reduce != ReduceOp::none)) {
      return refuse(program, stage, "does not fit a scan kernel, whose first stage alone scans");
    }
    if (stage.rows.size() + 1 != stage.parallel.size()) {
      return refuse(program, stage, "has other extents than its scan kernel");
    }
  }
  return {};
}

Result<void> check_same_element(const Program& program, const FusedKernel& kernel) {
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const FusedStage& stage = kernel.stages[i];
    bool same_element = stage.inner[0].extent == kernel.stages[0].inner[0].extent;
    walk(stage.body, [&](const Expr& e) {
      if (e.kind != Expr::Kind::load) return;
      for (const FusedStage& other : kernel.stages) {
        if (other.output != e.tensor) continue;
        for (size_t d = 0; d < other.store.size(); ++d) {
          same_element = same_element && same(*e.operands[d], *other.store[d]);
        }
      }
    });
    if (same_element) continue;
    return Error{Errc::invalid, fmt::format("stage {} reads its scan kernel at another element",
                                            program.tensor(stage.output).name)};
  }
  return {};
}

Result<void> check_skeleton(const Program& program, Skeleton skeleton,
                            const std::vector<OpenStage>& stages) {
  if (skeleton == Skeleton::scan) return check_scan(program, stages);
  for (size_t i = 0; i < stages.size(); ++i) {
    const OpenStage& stage = stages[i];
    if (stage.scan >= 0) return refuse(program, stage, "scans outside a scan kernel");
    const bool reduces = stage.reduce != ReduceOp::none;
    if (skeleton == Skeleton::map && reduces) {
      return refuse(program, stage, "reduces inside a map kernel");
    }
    if (skeleton == Skeleton::contract && reduces != (i == 0)) {
      return refuse(program, stage,
                    "does not fit a contract kernel, whose first stage alone reduces");
    }
    if (skeleton != Skeleton::reduce && stage.rows.size() != stage.parallel.size()) {
      return refuse(program, stage,
                    fmt::format("has other extents than its {} kernel", enum_name(skeleton)));
    }
  }
  const bool any = std::any_of(stages.begin(), stages.end(), [](const OpenStage& stage) {
    return stage.reduce != ReduceOp::none;
  });
  if (skeleton == Skeleton::reduce && !any) {
    return refuse(program, stages.front(), "is in a reduce kernel that reduces nothing");
  }
  return {};
}

// Numbers the axes of one stage rows first; row_order[i] is the row that comes i-th.
FusedStage number_axes(const OpenStage& stage, const std::vector<int>& row_order) {
  FusedStage fused;
  fused.output = stage.output;
  fused.reduce = stage.reduce;
  fused.scan = stage.scan >= 0;
  fused.accumulator = stage.accumulator;
  fused.origin = stage.origin;
  const size_t parallel = stage.parallel.size();
  std::vector<ExprPtr> renumbered(parallel + stage.reduction.size());
  for (size_t i = 0; i < row_order.size(); ++i) {
    const int own = stage.rows[static_cast<size_t>(row_order[i])];
    renumbered[static_cast<size_t>(own)] = axis(static_cast<int>(i));
  }
  for (size_t p = 0; p < renumbered.size(); ++p) {
    if (renumbered[p]) continue;
    renumbered[p] = axis(static_cast<int>(row_order.size() + fused.inner.size()));
    fused.inner.push_back(p < parallel ? stage.parallel[p] : stage.reduction[p - parallel]);
  }
  fused.body = substitute_axes(stage.body, renumbered);
  for (const ExprPtr& index : stage.store) {
    fused.store.push_back(substitute_axes(index, renumbered));
  }
  return fused;
}

// Row and inner axes of one stage never share a name.
void separate_names(FusedKernel& kernel) {
  for (FusedStage& stage : kernel.stages) {
    std::set<std::string> taken;
    for (const Axis& row : kernel.rows) taken.insert(row.name);
    for (Axis& inner : stage.inner) {
      while (!taken.insert(inner.name).second) inner.name += "_r";
    }
  }
}

size_t anchor_of(const std::vector<OpenStage>& stages) {
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].reduce != ReduceOp::none) return i;
  }
  return 0;
}

// Puts the factor with m first and gives the rows their classes, in the order [batch, m, n].
Result<void> order_contraction(const Program& program, OpenStage& stage, std::vector<int>& order,
                               std::vector<int>& classes) {
  const std::optional<Contraction> found = as_contraction(stage);
  if (!found) return refuse(program, stage, "is no product of two factors over m, n and k");
  order.clear();
  classes.clear();
  int number = 0;
  for (const auto* group : {&found->batch, &found->m, &found->n}) {
    for (int row : *group) {
      order.push_back(row);
      classes.push_back(number);
    }
    ++number;
  }
  if (found->swapped) {
    stage.body = binary(BinaryOp::mul, stage.body->operands[1], stage.body->operands[0]);
  }
  return {};
}

void name_contraction(FusedKernel& kernel, const std::vector<int>& class_of_row) {
  static constexpr const char* kNames[] = {"b", "m", "n"};
  std::vector<int> seen(3, 0);
  for (size_t r = 0; r < kernel.rows.size(); ++r) {
    const auto number = static_cast<size_t>(class_of_row[r]);
    const int position = seen[number]++;
    kernel.rows[r].name = position ? fmt::format("{}{}", kNames[number], position) : kNames[number];
  }
  std::vector<Axis>& inner = kernel.stages.front().inner;
  for (size_t k = 0; k < inner.size(); ++k) inner[k].name = k ? fmt::format("k{}", k) : "k";
}

// The class of each row after collapsing: rows keep their order, so the extents tell.
std::vector<int> classes_after(const std::vector<Axis>& before, const std::vector<int>& classes,
                               const std::vector<Axis>& after) {
  std::vector<int> result;
  size_t next = 0;
  for (const Axis& row : after) {
    result.push_back(classes[next]);
    std::string name = before[next++].name;
    while (name != row.name) name += "_" + before[next++].name;
  }
  return result;
}

}  // namespace

OpenStage open_stage(const Program& program, const Stage& stage, const Inliner::Body& body) {
  OpenStage open;
  open.output = stage.output;
  open.reduce = stage.reduce;
  open.accumulator = stage.accumulator;
  open.origin = origin_of(program, body.sources);
  std::vector<ExprPtr> renumbered;
  for (size_t p = 0; p < stage.parallel.size(); ++p) {
    const bool scanned = static_cast<int>(p) == stage.scan;
    const bool dropped = stage.parallel[p].extent == 1 && !scanned;
    if (scanned) open.scan = static_cast<int>(open.parallel.size());
    renumbered.push_back(dropped ? index_constant(0)
                                 : axis(static_cast<int>(open.parallel.size())));
    open.store.push_back(renumbered.back());
    if (dropped) continue;
    open.coordinates.push_back(axis(static_cast<int>(p)));
    open.parallel.push_back(stage.parallel[p]);
  }
  for (size_t r = 0; r < stage.reduction.size(); ++r) {
    const bool last = r + 1 == stage.reduction.size();
    const bool dropped = stage.reduction[r].extent == 1 && !(last && open.reduction.empty());
    renumbered.push_back(
        dropped ? index_constant(0)
                : axis(static_cast<int>(open.parallel.size() + open.reduction.size())));
    if (!dropped) open.reduction.push_back(stage.reduction[r]);
  }
  open.body = substitute_axes(body.expr, renumbered);
  return open;
}

Result<FusedKernel> build_kernel(const ProgramIndex& index, Inliner& inliner,
                                 const KernelPlan& plan) {
  const Program& program = index.program;
  std::vector<OpenStage> stages;
  for (StageId id : plan.stages) {
    stages.push_back(open_stage(program, program.stage(id), TRY(inliner.body(id.index))));
  }
  TRY(align(program, stages));
  TRY(check_skeleton(program, plan.skeleton, stages));
  OpenStage& anchor = stages[anchor_of(stages)];
  std::vector<int> order, classes;
  for (size_t r = 0; r < anchor.rows.size(); ++r) {
    order.push_back(static_cast<int>(r));
    classes.push_back(0);
  }
  if (plan.skeleton == Skeleton::contract) {
    TRY(order_contraction(program, anchor, order, classes));
  }
  FusedKernel kernel;
  kernel.skeleton = plan.skeleton;
  kernel.schedule = plan.schedule;
  for (int row : order) {
    const int own = anchor.rows[static_cast<size_t>(row)];
    kernel.rows.push_back(anchor.parallel[static_cast<size_t>(own)]);
  }
  for (const OpenStage& stage : stages) kernel.stages.push_back(number_axes(stage, order));
  const std::vector<Axis> before = kernel.rows;
  collapse(program, kernel, classes);
  if (plan.skeleton == Skeleton::contract) {
    name_contraction(kernel, classes_after(before, classes, kernel.rows));
  }
  if (plan.skeleton == Skeleton::scan) TRY(check_same_element(program, kernel));
  separate_names(kernel);
  return kernel;
}

}  // namespace ke::ir
