// SPDX-License-Identifier: Apache-2.0
//
// Alignment: finds, for every stage of a kernel, which of its axes are the kernel's rows. A stage
// that reads another one of the kernel through a view gets its axes merged or split, so that rows
// are plain axes everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "ir/kernel_builder.hpp"

namespace ke::ir {
namespace {

constexpr int kRewritesMax = 16;  // of one stage's axes

bool is_axis(const Expr& e) { return e.kind == Expr::Kind::axis; }

std::vector<ExprPtr> loads_of(const ExprPtr& body, TensorId tensor) {
  std::vector<ExprPtr> found;
  auto search = [&](const ExprPtr& e, const auto& self) -> void {
    if (e->kind == Expr::Kind::load && e->tensor == tensor) found.push_back(e);
    for (const ExprPtr& operand : e->operands) self(operand, self);
  };
  search(body, search);
  return found;
}

// Replaces the parallel axes; `old` gives each old one over the new ones, `coordinates` the
// inverse.
void replace_parallel(OpenStage& stage, std::vector<Axis> parallel, std::vector<ExprPtr> old,
                      const std::vector<ExprPtr>& new_of_old) {
  const std::vector<ExprPtr> store_axes = old;
  for (size_t i = 0; i < stage.reduction.size(); ++i) {
    old.push_back(axis(static_cast<int>(parallel.size() + i)));
  }
  std::vector<ExprPtr> coordinates;
  for (const ExprPtr& e : new_of_old) coordinates.push_back(substitute_axes(e, stage.coordinates));
  stage.coordinates = std::move(coordinates);
  stage.parallel = std::move(parallel);
  const std::vector<int64_t> extents = stage.extents();
  stage.body = simplify_index(substitute_axes(stage.body, old), extents);
  for (ExprPtr& index : stage.store) {
    index = simplify_index(substitute_axes(index, store_axes), extents);
  }
}

std::string joined_names(const OpenStage& stage, const std::vector<int>& axes) {
  std::string name;
  for (int a : axes) {
    name += (name.empty() ? "" : "_") + stage.parallel[static_cast<size_t>(a)].name;
  }
  return name;
}

// Merges `group` (outermost first) into one axis, placed where the first of them was.
void merge_axes(OpenStage& stage, const std::vector<int>& group) {
  std::vector<Axis> parallel;
  std::vector<ExprPtr> old(stage.parallel.size()), new_of_old;
  int64_t total = 1;
  for (int a : group) total *= stage.parallel[static_cast<size_t>(a)].extent;
  const int first = *std::min_element(group.begin(), group.end());
  for (int a = 0; a < static_cast<int>(stage.parallel.size()); ++a) {
    const ExprPtr fresh = axis(static_cast<int>(parallel.size()));
    if (std::find(group.begin(), group.end(), a) == group.end()) {
      parallel.push_back(stage.parallel[static_cast<size_t>(a)]);
      old[static_cast<size_t>(a)] = fresh;
      new_of_old.push_back(axis(a));
    } else if (a == first) {
      parallel.push_back({joined_names(stage, group), total});
      ExprPtr whole = index_constant(0);
      int64_t below = total;
      for (int member : group) {
        const int64_t extent = stage.parallel[static_cast<size_t>(member)].extent;
        below /= std::max<int64_t>(extent, 1);
        const ExprPtr step = index_constant(below);
        old[static_cast<size_t>(member)] =
            binary(BinaryOp::mod, binary(BinaryOp::floor_div, fresh, step), index_constant(extent));
        whole = binary(BinaryOp::add, whole, binary(BinaryOp::mul, axis(member), step));
      }
      new_of_old.push_back(whole);
    }
  }
  replace_parallel(stage, std::move(parallel), std::move(old), new_of_old);
}

// Splits one axis at the divisors (ascending, each dividing the next and the extent).
void split_axis(OpenStage& stage, int position, const std::vector<int64_t>& divisors) {
  std::vector<Axis> parallel;
  std::vector<ExprPtr> old, new_of_old;
  for (int a = 0; a < static_cast<int>(stage.parallel.size()); ++a) {
    const Axis& source = stage.parallel[static_cast<size_t>(a)];
    if (a != position) {
      old.push_back(axis(static_cast<int>(parallel.size())));
      parallel.push_back(source);
      new_of_old.push_back(axis(a));
      continue;
    }
    ExprPtr whole = index_constant(0);
    int64_t above = source.extent;
    for (size_t i = divisors.size() + 1; i-- > 0;) {
      const int64_t below = i == 0 ? 1 : divisors[i - 1];
      whole = binary(
          BinaryOp::add, whole,
          binary(BinaryOp::mul, axis(static_cast<int>(parallel.size())), index_constant(below)));
      parallel.push_back({fmt::format("{}_{}", source.name, divisors.size() - i), above / below});
      const ExprPtr quotient = binary(BinaryOp::floor_div, axis(a), index_constant(below));
      new_of_old.push_back(i == divisors.size()
                               ? quotient
                               : binary(BinaryOp::mod, quotient, index_constant(above / below)));
      above = below;
    }
    old.push_back(whole);
  }
  replace_parallel(stage, std::move(parallel), std::move(old), new_of_old);
}

// The parallel axes that e walks as one axis of that extent, outermost first; empty when it does
// not.
std::vector<int> mixed_radix(const OpenStage& stage, const Expr& e, int64_t extent) {
  Affine affine;
  const int count = static_cast<int>(stage.parallel.size());
  if (!as_affine(e, count, affine) || affine.base != 0) return {};
  std::vector<int> group;
  for (int a = 0; a < count; ++a) {
    if (affine.coefficients[static_cast<size_t>(a)] != 0) group.push_back(a);
  }
  auto step = [&](int a) { return affine.coefficients[static_cast<size_t>(a)]; };
  std::sort(group.begin(), group.end(), [&](int a, int b) { return step(a) < step(b); });
  int64_t below = 1;
  for (int a : group) {
    if (step(a) != below) return {};
    below *= stage.parallel[static_cast<size_t>(a)].extent;
  }
  if (below != extent || group.size() < 2) return {};
  std::reverse(group.begin(), group.end());
  return group;
}

// Recognises axis / S, axis % S and axis / S % E; adds the divisors that separate them.
void collect_divisors(const Expr& e, std::map<int, std::set<int64_t>>& divisors) {
  if (e.kind != Expr::Kind::binary) return;
  const Expr &left = *e.operands[0], &right = *e.operands[1];
  if (right.kind != Expr::Kind::constant || right.int_value <= 1) return;
  const bool divides = e.binary == BinaryOp::floor_div, rests = e.binary == BinaryOp::mod;
  if ((divides || rests) && is_axis(left)) divisors[left.axis].insert(right.int_value);
  if (!rests || left.kind != Expr::Kind::binary || left.binary != BinaryOp::floor_div) return;
  const Expr &whole = *left.operands[0], &below = *left.operands[1];
  int64_t product = 0;
  if (!is_axis(whole) || below.kind != Expr::Kind::constant ||
      __builtin_mul_overflow(below.int_value, right.int_value, &product)) {
    return;
  }
  divisors[whole.axis].insert(below.int_value);
  divisors[whole.axis].insert(product);
}

// Runs one axis from its end.
void flip_axis(OpenStage& stage, int position) {
  std::vector<ExprPtr> flipped;
  for (int a = 0; a < static_cast<int>(stage.parallel.size()); ++a) {
    const int64_t last = stage.parallel[static_cast<size_t>(a)].extent - 1;
    flipped.push_back(a == position ? binary(BinaryOp::sub, index_constant(last), axis(a))
                                    : axis(a));
  }
  replace_parallel(stage, stage.parallel, flipped, flipped);
}

// The parallel axis that e walks backwards, over all of it; -1 when it does not.
int backward_axis(const OpenStage& stage, const Expr& e) {
  Affine affine;
  const int count = static_cast<int>(stage.parallel.size());
  if (!as_affine(e, count, affine)) return -1;
  int found = -1;
  for (int a = 0; a < count; ++a) {
    const int64_t step = affine.coefficients[static_cast<size_t>(a)];
    if (step == 0) continue;
    if (step != -1 || found >= 0) return -1;
    found = a;
  }
  const bool whole =
      found >= 0 && affine.base == stage.parallel[static_cast<size_t>(found)].extent - 1;
  return whole ? found : -1;
}

class Aligner {
 public:
  Aligner(const Program& program, std::vector<OpenStage>& stages)
      : program_(program), stages_(stages) {}

  Result<void> run() {
    const size_t anchor = find_anchor();
    for (size_t p = 0; p < stages_[anchor].parallel.size(); ++p) {
      if (static_cast<int>(p) == stages_[anchor].scan) continue;
      stages_[anchor].rows.push_back(static_cast<int>(p));
      rows_.push_back(stages_[anchor].parallel[p]);
    }
    stages_[anchor].aligned = true;
    while (size_t left = count_open()) {
      for (OpenStage& stage : stages_) {
        if (!stage.aligned) TRY(align_to_producers(stage));
      }
      for (size_t i = stages_.size(); i-- > 0;) {
        if (!stages_[i].aligned) align_to_consumers(i);
      }
      if (count_open() == left) TRY(align_by_extents());
    }
    return check();
  }

 private:
  size_t find_anchor() const {
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (stages_[i].reduce != ReduceOp::none) return i;
    }
    return 0;
  }
  size_t count_open() const {
    return static_cast<size_t>(std::count_if(stages_.begin(), stages_.end(),
                                             [](const OpenStage& s) { return !s.aligned; }));
  }
  const std::string& name_of(const OpenStage& stage) const {
    return program_.tensor(stage.output).name;
  }
  Error refuse(const OpenStage& stage, std::string_view what) const {
    return {Errc::invalid, fmt::format("stage {} {}", name_of(stage), what)};
  }

  // Parallel axis p of `producer` as `consumer` sees it through that load.
  static ExprPtr seen(const OpenStage& producer, size_t p, const OpenStage& consumer,
                      const Expr& access) {
    return simplify_index(substitute_axes(producer.coordinates[p], access.operands),
                          consumer.extents());
  }

  template <class Visit>
  void each_load(const OpenStage& consumer, const Visit& visit) const {
    for (const OpenStage& producer : stages_) {
      if (&producer == &consumer) return;
      for (const ExprPtr& access : loads_of(consumer.body, producer.output)) {
        visit(producer, *access);
      }
    }
  }

  // The axis of an aligned stage that the scan of its kernel runs along; -1 without a scan.
  int scanned_axis(const OpenStage& stage) const {
    const bool scans = stages_.front().scan >= 0;
    if (!scans || stage.parallel.size() != rows_.size() + 1) return -1;
    for (int p = 0; p < static_cast<int>(stage.parallel.size()); ++p) {
      if (std::find(stage.rows.begin(), stage.rows.end(), p) == stage.rows.end()) return p;
    }
    return -1;
  }

  // Merges, splits or flips axes so that rows, and the axis of a scan, become plain axes. False
  // when nothing is left to do.
  bool rewrite(OpenStage& stage) const {
    std::vector<int> group;
    int backward = -1;
    std::map<int, std::set<int64_t>> divisors;
    each_load(stage, [&](const OpenStage& producer, const Expr& access) {
      if (!producer.aligned) return;
      for (size_t r = 0; r < rows_.size(); ++r) {
        const ExprPtr e = seen(producer, static_cast<size_t>(producer.rows[r]), stage, access);
        if (is_axis(*e)) continue;
        if (group.empty()) group = mixed_radix(stage, *e, rows_[r].extent);
        collect_divisors(*e, divisors);
      }
      const int along = scanned_axis(producer);
      if (along < 0) return;
      const ExprPtr e = seen(producer, static_cast<size_t>(along), stage, access);
      backward = std::max(backward, backward_axis(stage, *e));
    });
    if (backward >= 0) {
      flip_axis(stage, backward);
      return true;
    }
    if (!group.empty()) {
      merge_axes(stage, group);
      return true;
    }
    for (const auto& [position, set] : divisors) {
      if (position >= static_cast<int>(stage.parallel.size())) continue;
      std::vector<int64_t> chain(set.begin(), set.end());
      const int64_t extent = stage.parallel[static_cast<size_t>(position)].extent;
      if (chain.back() == extent) chain.pop_back();
      bool divides = !chain.empty() && extent % chain.back() == 0;
      for (size_t i = 1; i < chain.size(); ++i) divides &= chain[i] % chain[i - 1] == 0;
      if (!divides) continue;
      split_axis(stage, position, chain);
      return true;
    }
    return false;
  }

  Result<void> align_to_producers(OpenStage& stage) const {
    for (int i = 0; i < kRewritesMax && rewrite(stage); ++i) {
    }
    std::vector<int> rows(rows_.size(), -1);
    bool found = false, plain = true;
    each_load(stage, [&](const OpenStage& producer, const Expr& access) {
      if (!producer.aligned) return;
      found = true;
      for (size_t r = 0; r < rows.size(); ++r) {
        const ExprPtr e = seen(producer, static_cast<size_t>(producer.rows[r]), stage, access);
        plain &= is_axis(*e) && e->axis < static_cast<int>(stage.parallel.size());
        if (plain) rows[r] = e->axis;
      }
    });
    if (!plain) return refuse(stage, "reads a stage of its kernel across rows");
    if (found) settle(stage, rows);
    return {};
  }

  void align_to_consumers(size_t position) const {
    OpenStage& stage = stages_[position];
    std::vector<int> rows(rows_.size(), -1);
    for (size_t c = position + 1; c < stages_.size(); ++c) {
      const OpenStage& consumer = stages_[c];
      if (!consumer.aligned) continue;
      for (const ExprPtr& access : loads_of(consumer.body, stage.output)) {
        for (size_t p = 0; p < stage.parallel.size(); ++p) {
          const ExprPtr e = seen(stage, p, consumer, *access);
          if (!is_axis(*e)) continue;
          const auto row = std::find(consumer.rows.begin(), consumer.rows.end(), e->axis);
          if (row == consumer.rows.end()) continue;
          rows[static_cast<size_t>(row - consumer.rows.begin())] = static_cast<int>(p);
        }
      }
    }
    settle(stage, rows);
  }

  // Accepts the rows when they are complete, distinct and of the right extents.
  void settle(OpenStage& stage, const std::vector<int>& rows) const {
    std::set<int> distinct(rows.begin(), rows.end());
    if (distinct.contains(-1) || distinct.size() != rows.size()) return;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (stage.parallel[static_cast<size_t>(rows[r])].extent != rows_[r].extent) return;
    }
    stage.rows = rows;
    stage.aligned = true;
  }

  // The first open stage takes the first axes that have the rows' extents, in order.
  Result<void> align_by_extents() const {
    for (OpenStage& stage : stages_) {
      if (stage.aligned) continue;
      std::vector<int> rows;
      for (size_t p = 0; p < stage.parallel.size() && rows.size() < rows_.size(); ++p) {
        if (stage.parallel[p].extent == rows_[rows.size()].extent) {
          rows.push_back(static_cast<int>(p));
        }
      }
      if (rows.size() == rows_.size()) settle(stage, rows);
      if (!stage.aligned) return refuse(stage, "does not run over the rows of its kernel");
      return {};
    }
    return {};
  }

  Result<void> check() const {
    for (const OpenStage& stage : stages_) {
      const bool reduces = stage.reduce != ReduceOp::none && stage.scan < 0;
      if (reduces && stage.rows.size() != stage.parallel.size()) {
        return refuse(stage, "reduces over other rows than its kernel");
      }
      bool same_row = true;
      each_load(stage, [&](const OpenStage& producer, const Expr& access) {
        for (size_t r = 0; r < rows_.size(); ++r) {
          const ExprPtr e = seen(producer, static_cast<size_t>(producer.rows[r]), stage, access);
          same_row &= is_axis(*e) && e->axis == stage.rows[r];
        }
      });
      if (!same_row) return refuse(stage, "reads a stage of its kernel across rows");
    }
    return {};
  }

  const Program& program_;
  std::vector<OpenStage>& stages_;
  std::vector<Axis> rows_;
};

}  // namespace

std::vector<int64_t> OpenStage::extents() const {
  std::vector<int64_t> result;
  for (const Axis& a : parallel) result.push_back(a.extent);
  for (const Axis& a : reduction) result.push_back(a.extent);
  return result;
}

bool uses_axis(const Expr& expr, int position) {
  if (expr.kind == Expr::Kind::axis) return expr.axis == position;
  return std::any_of(expr.operands.begin(), expr.operands.end(),
                     [&](const ExprPtr& operand) { return uses_axis(*operand, position); });
}

Result<void> align(const Program& program, std::vector<OpenStage>& stages) {
  KE_ASSERT(!stages.empty());
  for (size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].scan < 0) continue;
    return Error{Errc::invalid, fmt::format("stage {} scans and is not its kernel's first",
                                            program.tensor(stages[i].output).name)};
  }
  return Aligner(program, stages).run();
}

}  // namespace ke::ir
