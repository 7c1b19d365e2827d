// SPDX-License-Identifier: Apache-2.0
//
// The cost rule of fuse.hpp: recompute or store. Decided from the outputs backwards, so that every
// reader's own fate is known.
#include <algorithm>

#include "ir/fuse.hpp"

namespace ke::ir {
namespace {

constexpr int64_t kMemoryCost = 8;  // a write or a read of one element, beside one operation
constexpr int64_t kCheapCost = 8;
constexpr int64_t kTreeMax = 512;  // nodes of one inlined stage
constexpr size_t kUsesMax = 16;    // distinct reads that are told apart

int64_t cost_of(UnaryOp op) {
  if (op == UnaryOp::sqrt || op == UnaryOp::rsqrt) return 4;
  const bool simple =
      op == UnaryOp::neg || op == UnaryOp::abs || (op >= UnaryOp::floor && op <= UnaryOp::is_inf);
  return simple ? 1 : 16;
}

int64_t cost_of(BinaryOp op, DType dtype) {
  switch (op) {
    case BinaryOp::pow:
    case BinaryOp::atan2:
      return 16;
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod:
    case BinaryOp::fmod:
      return 4;
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::maximum:
    case BinaryOp::minimum:
    case BinaryOp::copysign:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      break;
  }
  return dtype == DType::int64 ? 0 : 1;
}

int64_t elements_of(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

struct Use {
  int reader = -1;               // a stage that is stored
  std::vector<ExprPtr> indices;  // over the reader's axes
};

class StoringRule {
 public:
  explicit StoringRule(const ProgramIndex& index)
      : index_(index),
        stages_(index.program.stages),
        stored_(stages_.size(), false),
        cost_(stages_.size(), 0),
        tree_(stages_.size(), 0),
        sees_reduction_(stages_.size(), false),
        sees_contraction_(stages_.size(), false),
        uses_(stages_.size()) {}

  std::vector<bool> run() {
    for (size_t s = 0; s < stages_.size(); ++s) survey(s);
    for (size_t s = stages_.size(); s-- > 0;) {
      stored_[s] = index_.live[s] && (stored_[s] || decide(s));
      if (index_.live[s]) record_uses(s);
    }
    return stored_;
  }

 private:
  bool is_product(size_t s) const {
    const Stage& stage = stages_[s];
    return stage.reduce == ReduceOp::sum && !stage.is_scan() && is_floating(stage.accumulator) &&
           stage.body->kind == Expr::Kind::binary && stage.body->binary == BinaryOp::mul;
  }

  // Forwards: costs when everything before is inlined, and what must be stored in any case.
  void survey(size_t s) {
    const Stage& stage = stages_[s];
    stored_[s] = !stage.is_map() || index_.is_output[static_cast<size_t>(stage.output.index)];
    cost_[s] = ir::cost_of(*stage.body);
    std::vector<int> inlined;
    walk(stage.body, [&](const Expr& e) {
      ++tree_[s];
      const int writer =
          e.kind == Expr::Kind::load ? index_.writer[static_cast<size_t>(e.tensor.index)] : -1;
      if (writer < 0) return;
      const auto w = static_cast<size_t>(writer);
      if (!stages_[w].is_map()) (is_product(w) ? sees_contraction_ : sees_reduction_)[s] = true;
      if (stored_[w]) return;
      inlined.push_back(writer);
      tree_[s] += tree_[w];
    });
    std::sort(inlined.begin(), inlined.end());
    inlined.erase(std::unique(inlined.begin(), inlined.end()), inlined.end());
    for (int writer : inlined) {
      const auto w = static_cast<size_t>(writer);
      cost_[s] += cost_[w];
      if (sees_reduction_[w]) sees_reduction_[s] = true;
      if (sees_contraction_[w]) sees_contraction_[s] = true;
    }
    if (tree_[s] > 2 * kTreeMax) {
      for (int writer : inlined) stored_[static_cast<size_t>(writer)] = true;
    }
    if (tree_[s] > kTreeMax) {
      stored_[s] = true;
      tree_[s] = 1;
    }
  }

  double weight(size_t s, const Use& use) const {
    const Stage& reader = stages_[static_cast<size_t>(use.reader)];
    const double own = static_cast<double>(elements_of(stages_[s].parallel));
    if (own == 0 || is_product(static_cast<size_t>(use.reader))) return 1;
    const double iterations = static_cast<double>(elements_of(reader.parallel)) *
                              static_cast<double>(elements_of(reader.reduction));
    return std::max(1.0, iterations / own);
  }

  bool decide(size_t s) const {
    double reads = 0, widest = 0;
    std::set<int> readers;
    bool reader_reduces = false;
    for (const Use& use : uses_[s]) {
      const double w = weight(s, use);
      widest = std::max(widest, w);
      reads += cost_[s] <= kCheapCost ? std::min(w, 2.0) : w;
      readers.insert(use.reader);
      reader_reduces |= !stages_[static_cast<size_t>(use.reader)].is_map();
    }
    const bool trivial = cost_[s] == 0;
    if (sees_reduction_[s] && widest >= 2 && !trivial) return true;
    if (sees_contraction_[s] && reader_reduces && !trivial) return true;
    const double recompute = (reads - 1) * static_cast<double>(cost_[s]);
    const double memory =
        static_cast<double>(kMemoryCost * (1 + static_cast<int64_t>(readers.size())));
    return recompute > memory;
  }

  // Tells the producers of s where s, or whoever s is inlined into, reads them.
  void record_uses(size_t s) {
    std::vector<Use> mine = uses_[s];
    if (stored_[s]) {
      mine = {Use{static_cast<int>(s), {}}};
      for (int a = 0; a < stages_[s].axis_count(); ++a) mine[0].indices.push_back(axis(a));
    }
    walk(stages_[s].body, [&](const Expr& e) {
      if (e.kind != Expr::Kind::load) return;
      const int writer = index_.writer[static_cast<size_t>(e.tensor.index)];
      if (writer < 0) return;
      for (const Use& use : mine) add_use(static_cast<size_t>(writer), use, e);
    });
  }

  void add_use(size_t producer, const Use& reader, const Expr& access) {
    std::vector<Use>& uses = uses_[producer];
    if (uses.size() >= kUsesMax) return;
    Use use{reader.reader, {}};
    for (const ExprPtr& index : access.operands) {
      use.indices.push_back(substitute_axes(index, reader.indices));
    }
    for (const Use& other : uses) {
      if (other.reader != use.reader) continue;
      bool equal = true;
      for (size_t i = 0; i < use.indices.size() && equal; ++i) {
        equal = same(*other.indices[i], *use.indices[i]);
      }
      if (equal) return;
    }
    uses.push_back(std::move(use));
  }

  const ProgramIndex& index_;
  const std::vector<Stage>& stages_;
  std::vector<bool> stored_;
  std::vector<int64_t> cost_, tree_;
  std::vector<bool> sees_reduction_, sees_contraction_;
  std::vector<std::vector<Use>> uses_;
};

}  // namespace

int64_t cost_of(const Expr& body) {
  int64_t cost = 0, loads = 0;
  auto visit = [&](const Expr& e, const auto& self) -> void {
    if (e.kind == Expr::Kind::load) ++loads;
    if (e.kind == Expr::Kind::unary && e.dtype != DType::int64) cost += cost_of(e.unary);
    if (e.kind == Expr::Kind::binary) cost += cost_of(e.binary, e.operands[0]->dtype);
    if (e.kind == Expr::Kind::select || e.kind == Expr::Kind::cast) ++cost;
    for (const ExprPtr& operand : e.operands) self(*operand, self);
  };
  visit(body, visit);
  return cost + std::max<int64_t>(loads - 1, 0);
}

std::vector<bool> worth_storing(const ProgramIndex& index) { return StoringRule(index).run(); }

}  // namespace ke::ir
