// SPDX-License-Identifier: Apache-2.0
#include "eval/admission.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ke {
namespace {

// Decoys made element by element are left out for outputs larger than this.
constexpr int64_t kSlowDecoysUpTo = int64_t{1} << 25;

uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);  // size = f * 2^exponent, f in [0.5, 1)
  const int shift = std::max(exponent - 11, -24);
  const int64_t steps = std::llrint(std::ldexp(size, -shift));  // at most 2048
  // A carry into the next binade is what adding to the encoding does by itself.
  const int64_t encoded = shift == -24 ? steps : (static_cast<int64_t>(shift + 24) << 10) + steps;
  return static_cast<uint16_t>(sign | encoded);
}

uint16_t bfloat_bits(double value) {
  const float narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  if (std::isnan(narrow)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T>
void put(std::byte* to, double value) {
  const T element = static_cast<T>(value);
  std::memcpy(to, &element, sizeof element);
}

void store(ir::DType dtype, std::byte* to, double value) {
  switch (dtype) {
    case ir::DType::float64:
      return put<double>(to, value);
    case ir::DType::float32:
      return put<float>(to, value);
    case ir::DType::float16:
      return put<uint16_t>(to, half_bits(value));
    case ir::DType::bfloat16:
      return put<uint16_t>(to, bfloat_bits(value));
    case ir::DType::int64:
      return put<int64_t>(to, value);
    case ir::DType::int32:
      return put<int32_t>(to, value);
    case ir::DType::int16:
      return put<int16_t>(to, value);
    case ir::DType::int8:
      return put<int8_t>(to, value);
    case ir::DType::uint8:
      return put<uint8_t>(to, value);
    case ir::DType::boolean:
      return put<uint8_t>(to, value != 0);
  }
}

double finite_mean(const double* values, int64_t count) {
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++finite;
  }
  return finite ? sum / static_cast<double>(finite) : 0;
}

// Fills `to` with the decoy of one output; false when this output has no such decoy.
bool make_decoy(Decoy decoy, const Problem& problem, size_t output, const HeldSet& held,
                std::span<std::byte> to) {
  const TensorSpec& spec = problem.outputs[output];
  const int64_t count = spec.elements(), width = ir::bytes_of(spec.dtype);
  const bool floating = ir::is_floating(spec.dtype);
  const auto* truth = reinterpret_cast<const double*>(held.set.truths[output].values.data());
  const auto fill = [&](double value) {
    if (count > 0) store(spec.dtype, to.data(), value);
    for (size_t filled = static_cast<size_t>(width); filled < to.size(); filled *= 2) {
      std::memcpy(to.data() + filled, to.data(), std::min(filled, to.size() - filled));
    }
    return true;
  };
  switch (decoy) {
    case Decoy::zeros:
      return fill(0);
    case Decoy::ones:
      return fill(1);
    case Decoy::mean:
      return floating && fill(finite_mean(truth, count));
    case Decoy::echo:
      for (size_t i = 0; i < problem.inputs.size(); ++i) {
        const TensorSpec& input = problem.inputs[i];
        if (input.dtype != spec.dtype || input.elements() != count || count == 0) continue;
        const TensorMemory& tensor = held.set.inputs[i];
        std::memcpy(to.data(), tensor.memory.data() + tensor.offset, to.size());
        return true;
      }
      return false;
    case Decoy::permuted:
      if (!floating || count < 2 || count > kSlowDecoysUpTo) return false;
      for (int64_t i = 0; i < count; ++i) {
        store(spec.dtype, to.data() + i * width, truth[(i + 1) % count]);
      }
      return true;
    case Decoy::half:
      if (spec.dtype != ir::DType::float64 && spec.dtype != ir::DType::float32) return false;
      if (count > kSlowDecoysUpTo) return false;
      for (int64_t i = 0; i < count; ++i) {
        store(spec.dtype, to.data() + i * width, round_to_half(truth[i]));
      }
      return true;
  }
  return false;
}

}  // namespace

double round_to_half(double value) { return half_to_double(half_bits(value)); }

bool AdmissionReport::trivial() const {
  return std::any_of(passed.begin(), passed.end(),
                     [](Decoy decoy) { return decoy != Decoy::half; });
}

Result<AdmissionReport> screen_problem(const Problem& problem, SetStore& sets, Precision precision,
                                       Rng& rng, ThreadPool* pool) {
  AdmissionReport report;
  int64_t elements = 0;
  for (const TensorSpec& spec : problem.outputs) elements += spec.elements();
  if (elements == 0) return report;
  OutputSet decoys = TRY(make_outputs(problem, rng));
  const int set_count = sets.resident(1) ? 2 : 1;
  for (Decoy decoy :
       {Decoy::zeros, Decoy::ones, Decoy::mean, Decoy::echo, Decoy::permuted, Decoy::half}) {
    Budget budget(problem, precision);
    bool exists = true;
    for (int i = 0; i < set_count && exists; ++i) {
      const HeldSet* held = TRY(sets.checked(i));
      for (size_t output = 0; output < problem.outputs.size() && exists; ++output) {
        const std::span<std::byte> bytes = decoys[output].data();
        exists = make_decoy(decoy, problem, output, *held, bytes);
        if (!exists) break;
        const OutputTruth& truth = held->set.truths[output];
        budget.add(output, compare_output(problem.outputs[output], bytes, truth, pool), truth,
                   enum_name(decoy));
      }
      if (budget.outside_tolerance()) break;
    }
    if (exists && !budget.verdict()) report.passed.push_back(decoy);
  }
  return report;
}

}  // namespace ke
