// SPDX-License-Identifier: Apache-2.0
//
// Draws from base/rng by kind, rounds to the tensor's type, asks the script for the truth.
#include "oracle/fake_oracle.hpp"

#include <cmath>
#include <cstring>
#include <span>

#include "base/assert.hpp"
#include "base/rng.hpp"

namespace ke {

namespace {

constexpr int64_t kAlignment = 64;

// IEEE 754 binary16 and bfloat16 with rounding to nearest even, by way of float.
uint16_t to_bfloat16(double value) {
  const auto single = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  if (std::isnan(single)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double from_bfloat16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float single = 0;
  std::memcpy(&single, &bits, sizeof single);
  return static_cast<double>(single);
}

uint16_t to_float16(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  const double size = std::fabs(value);
  if (size >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);  // of the last place
  auto digits = static_cast<int>(std::nearbyint(std::ldexp(size, -unit)));
  int biased = unit + 24;  // 0: subnormal; a carry into bit 10 moves to the next exponent by itself
  if (unit > -24 || digits >= 1024) return static_cast<uint16_t>(sign + (biased << 10) + digits);
  return static_cast<uint16_t>(sign + digits);
}

double from_float16(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const int digits = half & 1023;
  double size = 0;
  if (exponent == 31) {
    size = digits == 0 ? HUGE_VAL : std::nan("");
  } else {
    size = exponent == 0 ? std::ldexp(digits, -24) : std::ldexp(digits + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -size : size;
}

template <class T>
void store_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
double load_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

void store(std::byte* to, ir::DType type, double value) {
  switch (type) {
    case ir::DType::float64:
      return store_as(to, value);
    case ir::DType::float32:
      return store_as(to, static_cast<float>(value));
    case ir::DType::float16:
      return store_as(to, to_float16(value));
    case ir::DType::bfloat16:
      return store_as(to, to_bfloat16(value));
    case ir::DType::int64:
      return store_as(to, static_cast<int64_t>(value));
    case ir::DType::int32:
      return store_as(to, static_cast<int32_t>(value));
    case ir::DType::int16:
      return store_as(to, static_cast<int16_t>(value));
    case ir::DType::int8:
      return store_as(to, static_cast<int8_t>(value));
    case ir::DType::uint8:
      return store_as(to, static_cast<uint8_t>(value));
    case ir::DType::boolean:
      return store_as(to, static_cast<uint8_t>(value != 0));
  }
}

double load(const std::byte* from, ir::DType type) {
  switch (type) {
    case ir::DType::float64:
      return load_as<double>(from);
    case ir::DType::float32:
      return load_as<float>(from);
    case ir::DType::float16:
      return from_float16(static_cast<uint16_t>(load_as<uint16_t>(from)));
    case ir::DType::bfloat16:
      return from_bfloat16(static_cast<uint16_t>(load_as<uint16_t>(from)));
    case ir::DType::int64:
      return load_as<int64_t>(from);
    case ir::DType::int32:
      return load_as<int32_t>(from);
    case ir::DType::int16:
      return load_as<int16_t>(from);
    case ir::DType::int8:
      return load_as<int8_t>(from);
    case ir::DType::uint8:
    case ir::DType::boolean:
      return load_as<uint8_t>(from);
  }
  return 0;
}

constexpr double kSpecial[] = {std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), -0.0, 1e-40, 1e12};

double draw(Rng& rng, ir::DType type, SetKind kind) {
  if (type == ir::DType::boolean) return rng.chance(0.5) ? 1 : 0;
  if (ir::is_integral(type)) return static_cast<double>(rng.below(100));
  const double value = rng.normal();
  switch (kind) {
    case SetKind::nominal:
      return value;
    case SetKind::scaled:
      return value * 8;
    case SetKind::planted:
      return rng.chance(0.02) ? value * 64 : value;
    case SetKind::tied:
      return std::round(value * 2) / 2;
    case SetKind::mantissa_tail:
      return std::copysign(
          std::exp2(std::floor(std::log2(std::fabs(value) + 1e-9))) * (1 + std::exp2(-12)), value);
    case SetKind::special:
      return rng.chance(0.0005) ? kSpecial[rng.below(std::size(kSpecial))] : value;
  }
  return value;
}

class FakeOracle final : public Oracle {
 public:
  explicit FakeOracle(FakeOracleScript script) : script_(std::move(script)) {}

  const Problem& problem() const override { return script_.problem; }

  Result<InputSet> make_set(const SetRequest& request) override {
    InputSet set;
    set.id = next_id_++;
    set.request = request;
    Rng rng = Rng(request.seed).split(enum_name(request.kind));
    std::vector<FakeTensor> values;
    for (const TensorSpec& spec : script_.problem.inputs) {
      set.inputs.push_back(TRY(make_input(spec, request.kind, rng)));
      const TensorMemory& made = set.inputs.back();
      FakeTensor& tensor = values.emplace_back();
      const int64_t width = ir::bytes_of(spec.dtype);
      for (int64_t i = 0; i < spec.elements(); ++i) {
        tensor.push_back(load(made.memory.data() + made.offset + i * width, spec.dtype));
      }
    }
    if (!request.with_truth) return set;
    const std::vector<FakeTensor> outputs = script_.truth(values);
    KE_ASSERT(outputs.size() == script_.problem.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      set.truths.push_back(TRY(make_truth(script_.problem.outputs[i], outputs[i])));
    }
    if (script_.own) report_error(script_.own(values), outputs, set.truths);
    return set;
  }

  void release(int64_t) override {}

  Result<BaselineState> baseline(BaselineKind kind) override {
    return kind == BaselineKind::eager ? BaselineState::ready : script_.compile_state;
  }

  Result<Nanoseconds> ring(BaselineKind kind, const std::vector<int64_t>& set_ids) override {
    if (kind == BaselineKind::compile && script_.compile_state != BaselineState::ready) {
      return Error{Errc::unavailable, "the torch.compile baseline is not ready"};
    }
    if (set_ids.empty() && script_.slow_empty_rings-- > 0) return std::chrono::hours(1);
    const Nanoseconds call =
        kind == BaselineKind::eager ? script_.eager_call : script_.compile_call;
    return script_.empty_ring + call * static_cast<int64_t>(set_ids.size());
  }

  void set_running(bool) override {}

 private:
  static Result<TensorMemory> make_input(const TensorSpec& spec, SetKind kind, Rng& rng) {
    TensorMemory made;
    made.bytes = spec.bytes();
    made.memory = TRY(os::SharedMemory::create(made.bytes));
    made.offset = (made.memory.size() - made.bytes) / kAlignment * kAlignment;
    for (int64_t i = 0; i < made.memory.size(); ++i) {
      made.memory.data()[i] = static_cast<std::byte>(rng.next());  // canary; data follows
    }
    const int64_t width = ir::bytes_of(spec.dtype);
    for (int64_t i = 0; i < spec.elements(); ++i) {
      store(made.memory.data() + made.offset + i * width, spec.dtype, draw(rng, spec.dtype, kind));
    }
    return made;
  }

  void report_error(const std::vector<FakeTensor>& own, const std::vector<FakeTensor>& outputs,
                    std::vector<OutputTruth>& truths) const {
    constexpr double kAttainable = 32;  // ATTAINABLE_RMS of truth.py
    for (size_t i = 0; i < outputs.size(); ++i) {
      double squares = 0, largest = 0;
      for (size_t k = 0; k < outputs[i].size(); ++k) {
        const double error = std::fabs(own[i][k] - outputs[i][k]);
        if (!std::isfinite(error)) continue;
        squares += error * error;
        largest = std::max(largest, error);
      }
      OutputTruth& truth = truths[i];
      const auto count = static_cast<double>(std::max<size_t>(1, own[i].size()));
      truth.pytorch_rms = std::sqrt(squares / count);
      truth.pytorch_max = largest;
      truth.atol = std::max(truth.atol, kAttainable * truth.pytorch_rms);
    }
  }

  Result<OutputTruth> make_truth(const TensorSpec& spec, const FakeTensor& values) const {
    KE_ASSERT(static_cast<int64_t>(values.size()) == spec.elements());
    const ir::DType stored = ir::is_floating(spec.dtype) ? ir::DType::float64 : spec.dtype;
    const int64_t width = ir::bytes_of(stored);
    OutputTruth truth;
    truth.values = TRY(os::SharedMemory::create(spec.elements() * width));
    double squares = 0;
    int64_t finite = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      store(truth.values.data() + static_cast<int64_t>(i) * width, stored, values[i]);
      if (!std::isfinite(values[i])) continue;
      squares += values[i] * values[i];
      ++finite;
    }
    truth.rms_truth = finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
    truth.pytorch_rms = script_.pytorch_rms;
    truth.pytorch_max = script_.pytorch_max;
    const bool graded_exactly = !ir::is_floating(spec.dtype);
    truth.atol = graded_exactly ? 0 : script_.atol;
    truth.rtol = graded_exactly ? 0 : script_.rtol;
    truth.any_non_finite_kind = script_.any_non_finite_kind;
    return truth;
  }

  FakeOracleScript script_;
  int64_t next_id_ = 1;
};

}  // namespace

std::unique_ptr<Oracle> make_fake_oracle(FakeOracleScript script) {
  return std::make_unique<FakeOracle>(std::move(script));
}

}  // namespace ke
