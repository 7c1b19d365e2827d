// SPDX-License-Identifier: Apache-2.0
//
// Greedy fusion: stages that are worth storing join the latest kernel they depend on, or one that
// reads the same tensors over the same rows, where that is legal; otherwise they start a kernel.
#include "ir/fuse.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace ke::ir {
namespace {

// A map kernel becomes a reduce kernel only when at least so many rows are left to run in parallel.
constexpr int64_t kRowsMin = 8;

int64_t row_count(const FusedKernel& kernel) {
  int64_t count = 1;
  for (const Axis& row : kernel.rows) count *= row.extent;
  return count;
}

class GreedyFuser {
 public:
  explicit GreedyFuser(const Program& program)
      : index_(program), stored_(worth_storing(index_)), inliner_(index_, inverted(stored_)) {}

  Plan run() {
    kernel_of_.assign(stored_.size(), -1);
    for (size_t s = 0; s < stored_.size(); ++s) {
      if (stored_[s]) place(StageId{static_cast<int>(s)});
    }
    return std::move(plan_);
  }

 private:
  static std::vector<bool> inverted(std::vector<bool> flags) {
    flags.flip();
    return flags;
  }

  void place(StageId stage) {
    const Result<Inliner::Body> body = inliner_.body(stage.index);
    KE_ASSERT(body.has_value());  // worth_storing() bounds every body
    const std::set<int> loads = tensors_loaded(body->expr);
    int latest = -1;
    for (int tensor : loads) {
      const int writer = index_.writer[static_cast<size_t>(tensor)];
      if (writer >= 0) latest = std::max(latest, kernel_of_[static_cast<size_t>(writer)]);
    }
    const KernelPlan own = alone(index_, inliner_, stage);
    const int count = static_cast<int>(plan_.kernels.size());
    for (int k = std::max(latest, 0); k < count && own.skeleton != Skeleton::contract; ++k) {
      if (k != latest && !shares_input(k, loads)) continue;
      if (join(k, stage)) return;
    }
    kernel_of_[static_cast<size_t>(stage.index)] = count;
    plan_.kernels.push_back(own);
    reads_.push_back(loads);
  }

  bool shares_input(int kernel, const std::set<int>& loads) const {
    const std::set<int>& reads = reads_[static_cast<size_t>(kernel)];
    return std::any_of(loads.begin(), loads.end(),
                       [&](int tensor) { return reads.contains(tensor) && !is_small(tensor); });
  }
  // Sharing a weight vector or a scalar is no reason to share a kernel.
  bool is_small(int tensor) const {
    return index_.program.tensors[static_cast<size_t>(tensor)].elements() < 64;
  }

  bool join(int kernel, StageId stage) {
    KernelPlan& plan = plan_.kernels[static_cast<size_t>(kernel)];
    const std::optional<KernelPlan> grown = with_stage(index_, inliner_, plan, stage);
    if (!grown) return false;
    if (plan.skeleton == Skeleton::map && grown->skeleton == Skeleton::reduce) {
      const Result<FusedKernel> built = build_kernel(index_, inliner_, *grown);
      if (!built || row_count(*built) < kRowsMin) return false;
    }
    plan = *grown;
    kernel_of_[static_cast<size_t>(stage.index)] = kernel;
    reads_[static_cast<size_t>(kernel)].merge(tensors_loaded(inliner_.body(stage.index)->expr));
    return true;
  }

  ProgramIndex index_;
  std::vector<bool> stored_;
  Inliner inliner_;
  Plan plan_;
  std::vector<int> kernel_of_;        // a stage: its kernel, or -1
  std::vector<std::set<int>> reads_;  // a kernel: tensors it loads
};

std::optional<KernelPlan> checked(const ProgramIndex& index, Inliner& inliner, KernelPlan plan) {
  if (plan.skeleton != Skeleton::contract) {
    plan.skeleton = skeleton_of(index.program, plan.stages);
  }
  if (build_kernel(index, inliner, plan)) return plan;
  return std::nullopt;
}

}  // namespace

std::set<int> tensors_loaded(const ExprPtr& body) {
  std::set<int> loaded;
  walk(body, [&](const Expr& e) {
    if (e.kind == Expr::Kind::load) loaded.insert(e.tensor.index);
  });
  return loaded;
}

KernelPlan alone(const ProgramIndex& index, Inliner& inliner, StageId stage) {
  KernelPlan plan{Skeleton::contract, {stage}, {}};
  const Skeleton plain = skeleton_of(index.program, plan.stages);
  if (plain != Skeleton::reduce || !build_kernel(index, inliner, plan)) plan.skeleton = plain;
  return plan;
}

Skeleton skeleton_of(const Program& program, const std::vector<StageId>& stages) {
  Skeleton skeleton = Skeleton::map;
  for (const StageId id : stages) {
    const Stage& stage = program.stage(id);
    if (stage.is_scan()) return Skeleton::scan;
    if (!stage.is_map()) skeleton = Skeleton::reduce;
  }
  return skeleton;
}

std::optional<KernelPlan> with_stage(const ProgramIndex& index, Inliner& inliner,
                                     const KernelPlan& kernel, StageId stage) {
  KernelPlan plan{kernel.skeleton, kernel.stages, {}};
  plan.stages.push_back(stage);
  std::sort(plan.stages.begin(), plan.stages.end());
  return checked(index, inliner, std::move(plan));
}

std::optional<KernelPlan> merged(const ProgramIndex& index, Inliner& inliner, const KernelPlan& a,
                                 const KernelPlan& b) {
  const bool contract = a.skeleton == Skeleton::contract || b.skeleton == Skeleton::contract;
  KernelPlan plan{contract ? Skeleton::contract : Skeleton::map, a.stages, {}};
  plan.stages.insert(plan.stages.end(), b.stages.begin(), b.stages.end());
  std::sort(plan.stages.begin(), plan.stages.end());
  return checked(index, inliner, std::move(plan));
}

Plan fuse_greedily(const Program& program) { return GreedyFuser(program).run(); }

}  // namespace ke::ir
