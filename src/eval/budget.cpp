// SPDX-License-Identifier: Apache-2.0
//
// Pooling of errors and the sentences that say where a budget was passed.
#include "eval/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace ke {
namespace {

std::string units_text(double units) {
  if (!std::isfinite(units)) return "of the wrong kind (not finite, or not equal)";
  return fmt::format("{:.3g} times what is allowed", units);
}

}  // namespace

std::string position_text(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = shape[d] > 0 ? index % shape[d] : 0;
    index /= std::max<int64_t>(1, shape[d]);
  }
  return fmt::format("[{}]", fmt::join(position, ", "));
}

Budget::Budget(const Problem& problem, Precision precision)
    : problem_(problem), precision_(precision), pools_(problem.outputs.size()) {
  const double u = problem.unit_roundoff;
  const double longest = static_cast<double>(std::max<int64_t>(1, problem.longest_reduction));
  floor_ = std::min(u * std::sqrt(longest), 512 * u);
}

void Budget::add(size_t output, const Comparison& comparison, const OutputTruth& truth,
                 std::string_view set_name) {
  KE_ASSERT(output < pools_.size());
  Pool& pool = pools_[output];
  pool.error.ungraded += comparison.ungraded;
  if (comparison.outside > 0 && !outside_) {
    outside_ =
        fmt::format("output {}: {} of {} elements are wrong (input set '{}'), the worst at {}, {}",
                    output, comparison.outside, comparison.elements, set_name,
                    position_text(problem_.outputs[output].shape, comparison.worst_index),
                    units_text(comparison.worst_units));
  }
  const bool floating = ir::is_floating(problem_.outputs[output].dtype);
  if (!floating || comparison.graded == 0 || !(truth.rms_truth > 0)) return;
  const double graded = static_cast<double>(comparison.graded);
  const double scale = 1 / truth.rms_truth;
  pool.elements += comparison.graded;
  pool.sum_squares += comparison.sum_squares * scale * scale;
  pool.pytorch_sum_squares += graded * truth.pytorch_rms * truth.pytorch_rms * scale * scale;
  pool.error.max = std::max(pool.error.max, comparison.max_abs * scale);
  pool.error.pytorch_max = std::max(pool.error.pytorch_max, truth.pytorch_max * scale);
}

std::vector<OutputError> Budget::errors() const {
  std::vector<OutputError> errors;
  for (const Pool& pool : pools_) {
    OutputError error = pool.error;
    if (pool.elements > 0) {
      const double count = static_cast<double>(pool.elements);
      // A non-finite value where a finite one belongs makes the pooled error infinite, not NaN.
      error.rms = std::isfinite(error.max) ? std::sqrt(pool.sum_squares / count) : error.max;
      error.pytorch_rms = std::sqrt(pool.pytorch_sum_squares / count);
    }
    error.rms_budget = std::max(8 * error.pytorch_rms, floor_);
    error.max_budget = std::max(8 * error.pytorch_max, 4 * floor_);
    errors.push_back(error);
  }
  return errors;
}

void keep_worst(std::vector<OutputError>& worst, const std::vector<OutputError>& errors) {
  const auto used = [](const OutputError& error) {
    return error.rms_budget > 0 ? error.rms / error.rms_budget : error.rms;
  };
  for (size_t i = 0; i < errors.size(); ++i) {
    if (i >= worst.size()) {
      worst.push_back(errors[i]);
    } else if (used(errors[i]) > used(worst[i])) {
      worst[i] = errors[i];
    }
  }
}

std::optional<std::string> Budget::verdict() const {
  if (outside_) return outside_;
  if (precision_ == Precision::kernelbench) return std::nullopt;
  const std::vector<OutputError> all = errors();
  for (size_t i = 0; i < all.size(); ++i) {
    const OutputError& e = all[i];
    if (!(e.rms <= e.rms_budget)) {
      return fmt::format(
          "output {}: within the tolerance, but its rms error, {:.3g} of the truth's rms, is "
          "{:.3g} "
          "times the budget (PyTorch's own is {:.3g})",
          i, e.rms, e.rms / e.rms_budget, e.pytorch_rms);
    }
    if (!(e.max <= e.max_budget)) {
      return fmt::format(
          "output {}: within the tolerance, but its largest error, {:.3g} of the truth's rms, is "
          "{:.3g} times the budget (PyTorch's own is {:.3g})",
          i, e.max, e.max / e.max_budget, e.pytorch_max);
    }
  }
  return std::nullopt;
}

}  // namespace ke
