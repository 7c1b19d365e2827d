// SPDX-License-Identifier: Apache-2.0
//
// The error budget (DESIGN D3). Errors of one output are pooled over all elements of all input
// sets, each set's relative to the rms of its truth. With u the unit roundoff of the problem's
// type, L its longest reduction and f = min(u sqrt(L), 512 u), an output is right when
//
//   rms <= max(8 * PyTorch's rms, f)   and   max <= max(8 * PyTorch's max, 4 f)
//
// and every graded element is within the problem's own tolerance. Precision::kernelbench keeps the
// tolerance alone. A set whose truth is zero throughout has no scale: there the tolerance decides.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "domain/evaluation.hpp"
#include "domain/problem.hpp"
#include "eval/compare.hpp"

namespace ke {

// Collects comparisons set by set. Values only; no ownership.
class Budget {
 public:
  Budget(const Problem& problem, Precision precision);

  // The comparison of output `output` on one more input set, against that set's truth.
  void add(size_t output, const Comparison& comparison, const OutputTruth& truth,
           std::string_view set_name);

  // Why the outputs so far are wrong, as one sentence without expected values; absent: they are in
  // the budget. Elements outside the tolerance are reported as they are added; pooled figures count
  // only once everything was added.
  std::optional<std::string> outside_tolerance() const { return outside_; }
  std::optional<std::string> verdict() const;

  std::vector<OutputError> errors() const;

 private:
  struct Pool {
    double sum_squares = 0;          // of relative errors
    double pytorch_sum_squares = 0;  // the same of PyTorch's, by the same elements
    int64_t elements = 0;
    OutputError error;
  };

  const Problem& problem_;
  Precision precision_;
  double floor_;  // f
  std::vector<Pool> pools_;
  std::optional<std::string> outside_;
};

// The budgets of one run through the input sets.
class RunBudget {
 public:
  RunBudget(const Problem& problem, Precision precision)
      : ordinary_(problem, precision), special_(problem, precision) {}

  Budget& of(SetKind kind) { return kind == SetKind::special ? special_ : ordinary_; }
  std::optional<std::string> verdict() const {
    const auto wrong = ordinary_.verdict();
    return wrong ? wrong : special_.verdict();
  }
  std::vector<OutputError> errors() const { return ordinary_.errors(); }

 private:
  Budget ordinary_;
  Budget special_;  // PyTorch's errors there say nothing about ordinary values
};

// For each output the errors that used most of their budget.
void keep_worst(std::vector<OutputError>& worst, const std::vector<OutputError>& errors);

// "[3, 17]" for the row-major position `index` of a tensor of this shape; "[]" for a scalar.
std::string position_text(const std::vector<int64_t>& shape, int64_t index);

}  // namespace ke
