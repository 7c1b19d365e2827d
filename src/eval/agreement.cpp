// SPDX-License-Identifier: Apache-2.0
//
// One call takes the place of the truth in the ordinary comparison.
#include "eval/agreement.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "eval/compare.hpp"

namespace ke {
namespace {

double value_at(ir::DType dtype, const std::byte* data, int64_t i) {
  const auto read = [&](auto sample) {
    std::memcpy(&sample, data + i * static_cast<int64_t>(sizeof sample), sizeof sample);
    return sample;
  };
  if (dtype == ir::DType::float64) return read(0.0);
  if (dtype == ir::DType::float32) return read(0.0F);
  const uint16_t bits = read(uint16_t{0});
  return dtype == ir::DType::float16 ? half_to_double(bits) : bfloat_to_double(bits);
}

Result<OutputTruth> as_truth(const TensorSpec& spec, std::span<const std::byte> bytes) {
  OutputTruth truth;
  truth.values = TRY(os::SharedMemory::create(std::max<int64_t>(1, spec.elements() * 8)));
  double sum_squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < spec.elements(); ++i) {
    const double value = value_at(spec.dtype, bytes.data(), i);
    std::memcpy(truth.values.data() + i * 8, &value, sizeof value);
    if (!std::isfinite(value)) continue;
    sum_squares += value * value;
    ++finite;
  }
  truth.rms_truth = std::sqrt(sum_squares / static_cast<double>(std::max<int64_t>(1, finite)));
  return truth;
}

}  // namespace

Closeness closeness_of(const OutputTruth& truth, const OutputError& error, Precision precision) {
  Closeness each{truth.atol, truth.rtol, truth.any_non_finite_kind, {}, {}, error.ungraded};
  if (precision == Precision::kernelbench) return each;
  each.rms = error.rms_budget;
  each.max = error.max_budget;
  return each;
}

Result<bool> agree(const TensorSpec& spec, std::span<const std::byte> one,
                   std::span<const std::byte> other, const Closeness& each, ThreadPool* pool) {
  if (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0) return true;
  if (!ir::is_floating(spec.dtype)) return false;
  OutputTruth truth = TRY(as_truth(spec, other));
  truth.atol = 2 * each.atol;
  truth.rtol = 2 * each.rtol;
  truth.any_non_finite_kind = each.any_non_finite_kind;
  const Comparison found = compare_output(spec, one, truth, pool);
  if (found.outside > each.ungraded) return false;
  // Where PyTorch itself is at a loss, two answers may be far apart, and nobody knows in which
  // elements; a truth of zeros has no scale.
  if (each.ungraded > 0 || found.graded == 0 || !(truth.rms_truth > 0)) return true;
  const double rms = std::sqrt(found.sum_squares / static_cast<double>(found.graded));
  const double scale = 2 * truth.rms_truth;
  return !(each.rms && rms > *each.rms * scale) && !(each.max && found.max_abs > *each.max * scale);
}

}  // namespace ke
