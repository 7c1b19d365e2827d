// SPDX-License-Identifier: Apache-2.0
//
// Single moves of a fusion boundary. Every candidate is checked as a whole, so a move here may be
// wrong but never illegal.
#include <algorithm>

#include "ir/fuse.hpp"

namespace ke::ir {
namespace {

constexpr size_t kNeighboursMax = 64;
constexpr int kAttemptsMax = 512;  // realizing is the cost of a candidate

class Neighbourhood {
 public:
  Neighbourhood(const Program& program, const Plan& plan)
      : index_(program), plan_(plan), held_(program.stages.size(), false) {
    for (const KernelPlan& kernel : plan.kernels) {
      for (StageId id : kernel.stages) held_[static_cast<size_t>(id.index)] = true;
    }
    seen_.insert(digest_of(plan));
  }

  std::vector<Plan> run() {
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      merges(k);
      splits(k);
      change_skeleton(k);
      inlinings(k);
    }
    for (size_t s = 0; s < held_.size(); ++s) {
      if (index_.live[s] && !held_[s]) materialisations(StageId{static_cast<int>(s)});
    }
    return std::move(found_);
  }

 private:
  bool is_full() const { return found_.size() >= kNeighboursMax || attempts_ >= kAttemptsMax; }

  void offer(Plan candidate) {
    if (is_full() || !seen_.insert(digest_of(candidate)).second) return;
    ++attempts_;
    if (verify(index_.program, candidate)) found_.push_back(std::move(candidate));
  }

  Inliner inliner_for(const std::vector<bool>& held) const {
    std::vector<bool> inlined = held;
    inlined.flip();
    return Inliner(index_, inlined);
  }

  // Kernel k with a later one, at either place.
  void merges(size_t k) {
    Inliner inliner = inliner_for(held_);
    for (size_t other = k + 1; other < plan_.kernels.size() && !is_full(); ++other) {
      ++attempts_;
      const auto whole = merged(index_, inliner, plan_.kernels[k], plan_.kernels[other]);
      if (!whole) continue;
      Plan early = plan_, late = plan_;
      early.kernels[k] = *whole;
      early.kernels.erase(early.kernels.begin() + static_cast<std::ptrdiff_t>(other));
      late.kernels[other] = *whole;
      late.kernels.erase(late.kernels.begin() + static_cast<std::ptrdiff_t>(k));
      const size_t before = found_.size();
      offer(std::move(early));
      if (found_.size() == before) offer(std::move(late));
    }
  }

  KernelPlan part(const KernelPlan& whole, size_t begin, size_t end) const {
    KernelPlan result{whole.skeleton, {}, {}};
    const auto first = whole.stages.begin();
    result.stages.assign(first + static_cast<std::ptrdiff_t>(begin),
                         first + static_cast<std::ptrdiff_t>(end));
    const Skeleton plain = skeleton_of(index_.program, result.stages);
    if (plain != Skeleton::reduce) result.skeleton = plain;
    return result;
  }

  void splits(size_t k) {
    const KernelPlan& whole = plan_.kernels[k];
    for (size_t cut = 1; cut < whole.stages.size(); ++cut) {
      Plan candidate = plan_;
      candidate.kernels[k] = part(whole, 0, cut);
      candidate.kernels.insert(candidate.kernels.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                               part(whole, cut, whole.stages.size()));
      offer(std::move(candidate));
    }
  }

  void change_skeleton(size_t k) {
    Plan candidate = plan_;
    KernelPlan& kernel = candidate.kernels[k];
    if (kernel.skeleton == Skeleton::map || kernel.skeleton == Skeleton::scan) return;
    const bool contract = kernel.skeleton == Skeleton::contract;
    kernel.skeleton = contract ? Skeleton::reduce : Skeleton::contract;
    kernel.schedule.clear();
    offer(std::move(candidate));
  }

  void inlinings(size_t k) {
    const KernelPlan& kernel = plan_.kernels[k];
    for (size_t i = 0; i < kernel.stages.size(); ++i) {
      const Stage& stage = index_.program.stage(kernel.stages[i]);
      if (!stage.is_map() || index_.is_output[static_cast<size_t>(stage.output.index)]) continue;
      Plan candidate = plan_;
      KernelPlan& rest = candidate.kernels[k];
      rest.stages.erase(rest.stages.begin() + static_cast<std::ptrdiff_t>(i));
      rest.schedule.clear();
      if (rest.stages.empty()) {
        candidate.kernels.erase(candidate.kernels.begin() + static_cast<std::ptrdiff_t>(k));
      }
      offer(std::move(candidate));
    }
  }

  // A kernel of its own before the first kernel that works with it, or a place in any kernel.
  void materialisations(StageId stage) {
    std::vector<bool> held = held_;
    held[static_cast<size_t>(stage.index)] = true;
    Inliner inliner = inliner_for(held);
    for (size_t k = 0; k < plan_.kernels.size() && !is_full(); ++k) {
      ++attempts_;
      const auto grown = with_stage(index_, inliner, plan_.kernels[k], stage);
      if (!grown) continue;
      Plan candidate = plan_;
      candidate.kernels[k] = *grown;
      offer(std::move(candidate));
    }
    for (size_t k = 0; k <= plan_.kernels.size() && !is_full(); ++k) {
      Plan candidate = plan_;
      candidate.kernels.insert(candidate.kernels.begin() + static_cast<std::ptrdiff_t>(k),
                               alone(index_, inliner, stage));
      const size_t before = found_.size();
      offer(std::move(candidate));
      if (found_.size() != before) return;
    }
  }

  ProgramIndex index_;
  const Plan& plan_;
  std::vector<bool> held_;  // a stage: whether a kernel has it
  std::set<Digest> seen_;
  std::vector<Plan> found_;
  int attempts_ = 0;
};

}  // namespace

std::vector<Plan> fusion_neighbours(const Program& program, const Plan& plan) {
  return Neighbourhood(program, plan).run();
}

}  // namespace ke::ir
