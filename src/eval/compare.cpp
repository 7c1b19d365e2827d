// SPDX-License-Identifier: Apache-2.0
//
// Blocks of elements are compared independently, on the pool when there are many, and joined in
// order, so the result does not depend on threads. The common case, a finite float32, runs in a
// branch-free loop that compilers vectorise; a block in which that loop meets anything else (an
// ignored element, a non-finite value, an element outside the tolerance) is walked one by one.
#include "eval/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/assert.hpp"

namespace ke {
namespace {

constexpr int64_t kBlock = 8192;                     // elements a block
constexpr int64_t kParallelFrom = int64_t{1} << 19;  // elements from which threads pay

double to_double(float value) { return value; }
double to_double(double value) { return value; }
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
double to_double(Half value) { return half_to_double(value.bits); }
double to_double(Bfloat value) { return bfloat_to_double(value.bits); }

struct FloatTask {
  const void* got;
  const double* truth;
  const uint8_t* ignore;  // null: all are graded
  double atol, rtol;
  bool any_non_finite_kind;
};

void take_outside(Comparison& result, double units, int64_t index) {
  ++result.outside;
  if (units > result.worst_units) {
    result.worst_units = units;
    result.worst_index = index;
  }
}

void compare_non_finite(Comparison& result, const FloatTask& task, double got, double truth,
                        int64_t i) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (std::isfinite(truth)) {  // got is not
    result.max_abs = infinity;
    result.max_index = i;
    ++result.graded;
    take_outside(result, infinity, i);
    return;
  }
  const bool same_kind = std::isnan(truth) ? std::isnan(got) : got == truth;
  const bool right = task.any_non_finite_kind ? !std::isfinite(got) : same_kind;
  if (!right) take_outside(result, infinity, i);
}

template <class T>
void compare_one_by_one(Comparison& result, const FloatTask& task, int64_t begin, int64_t end) {
  const T* got = static_cast<const T*>(task.got);
  for (int64_t i = begin; i < end; ++i) {
    if (task.ignore && task.ignore[i]) {
      ++result.ungraded;
      continue;
    }
    const double value = to_double(got[i]), truth = task.truth[i];
    if (!std::isfinite(value) || !std::isfinite(truth)) {
      compare_non_finite(result, task, value, truth, i);
      continue;
    }
    const double error = std::fabs(value - truth);
    const double allowed = task.atol + task.rtol * std::fabs(truth);
    ++result.graded;
    result.sum_squares += error * error;
    if (error > result.max_abs) {
      result.max_abs = error;
      result.max_index = i;
    }
    if (error > allowed) {
      take_outside(result, allowed > 0 ? error / allowed : std::numeric_limits<double>::infinity(),
                   i);
    }
  }
}

// Sum of squares and largest error of a block without anything special in it. False when there is
// something special: then nothing was learnt. (x - x) is 0 for finite x and NaN otherwise.
template <class T>
bool compare_plain(const T* got, const double* truth, int64_t count, double atol, double rtol,
                   double& sum_squares, double& largest) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {}, maxima[kLanes] = {}, excess[kLanes] = {}, strange[kLanes] = {};
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const double value = to_double(got[i + j]), expected = truth[i + j];
      const double error = std::fabs(value - expected);
      const double over = error - (atol + rtol * std::fabs(expected));
      sums[j] += error * error;
      maxima[j] = error > maxima[j] ? error : maxima[j];
      excess[j] = over > excess[j] ? over : excess[j];
      strange[j] += error - error;
    }
  }
  double sum = 0, maximum = 0;
  for (int64_t j = 0; j < kLanes; ++j) {
    if (!(strange[j] == 0) || excess[j] > 0) return false;
    sum += sums[j];
    maximum = std::max(maximum, maxima[j]);
  }
  sum_squares = sum;
  largest = maximum;
  return true;
}

template <class T>
void compare_block(Comparison& result, const FloatTask& task, int64_t begin, int64_t end) {
  const T* got = static_cast<const T*>(task.got);
  const int64_t plain_end = begin + (end - begin) / 8 * 8;
  double sum_squares = 0, largest = 0;
  const bool ignores = task.ignore && std::memchr(task.ignore + begin, 1,
                                                  static_cast<size_t>(end - begin)) != nullptr;
  const bool plain =
      !ignores && compare_plain<T>(got + begin, task.truth + begin, plain_end - begin, task.atol,
                                   task.rtol, sum_squares, largest);
  if (!plain) {
    compare_one_by_one<T>(result, task, begin, end);
    return;
  }
  result.graded += plain_end - begin;
  result.sum_squares += sum_squares;
  if (largest > result.max_abs) {
    result.max_abs = largest;
    for (int64_t i = begin; i < plain_end; ++i) {
      if (std::fabs(to_double(got[i]) - task.truth[i]) == largest) {
        result.max_index = i;
        break;
      }
    }
  }
  compare_one_by_one<T>(result, task, plain_end, end);
}

void join(Comparison& sum, const Comparison& part) {
  sum.graded += part.graded;
  sum.ungraded += part.ungraded;
  sum.sum_squares += part.sum_squares;
  sum.outside += part.outside;
  if (part.max_abs > sum.max_abs) {
    sum.max_abs = part.max_abs;
    sum.max_index = part.max_index;
  }
  if (part.worst_units > sum.worst_units) {
    sum.worst_units = part.worst_units;
    sum.worst_index = part.worst_index;
  }
}

template <class Block>
Comparison over_blocks(int64_t elements, ThreadPool* pool, const Block& block) {
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  std::vector<Comparison> parts(static_cast<size_t>(blocks));
  struct Job {
    std::vector<Comparison>* parts;
    const Block* block;
    int64_t elements;
  } job{&parts, &block, elements};
  const auto body = [](int64_t i, void* arg) {
    const Job& own = *static_cast<Job*>(arg);
    const int64_t begin = i * kBlock, end = std::min(own.elements, begin + kBlock);
    (*own.block)((*own.parts)[static_cast<size_t>(i)], begin, end);
  };
  if (pool && elements >= kParallelFrom) {
    pool->parallel_for(blocks, body, &job);
  } else {
    for (int64_t i = 0; i < blocks; ++i) body(i, &job);
  }
  Comparison sum;
  sum.elements = elements;
  for (const Comparison& part : parts) join(sum, part);
  return sum;
}

template <class T>
Comparison compare_floats(const FloatTask& task, int64_t elements, ThreadPool* pool) {
  return over_blocks(elements, pool, [&task](Comparison& part, int64_t begin, int64_t end) {
    compare_block<T>(part, task, begin, end);
  });
}

Comparison compare_exactly(const std::byte* got, const std::byte* truth, const uint8_t* ignore,
                           int64_t width, int64_t elements, ThreadPool* pool) {
  return over_blocks(elements, pool, [&](Comparison& part, int64_t begin, int64_t end) {
    const size_t bytes = static_cast<size_t>((end - begin) * width);
    if (!ignore && std::memcmp(got + begin * width, truth + begin * width, bytes) == 0) {
      part.graded += end - begin;
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      if (ignore && ignore[i]) {
        ++part.ungraded;
        continue;
      }
      ++part.graded;
      if (std::memcmp(got + i * width, truth + i * width, static_cast<size_t>(width)) != 0) {
        take_outside(part, std::numeric_limits<double>::infinity(), i);
      }
    }
  });
}

}  // namespace

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double bfloat_to_double(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

Comparison compare_output(const TensorSpec& spec, std::span<const std::byte> got,
                          const OutputTruth& truth, ThreadPool* pool) {
  const int64_t elements = spec.elements();
  const int64_t width = ir::bytes_of(spec.dtype);
  const bool floating = ir::is_floating(spec.dtype);
  KE_ASSERT(static_cast<int64_t>(got.size()) == elements * width);
  KE_ASSERT(truth.values.size() >= elements * (floating ? 8 : width));
  KE_ASSERT(truth.ignore.empty() || truth.ignore.size() >= elements);
  const uint8_t* ignore =
      truth.ignore.empty() ? nullptr : reinterpret_cast<const uint8_t*>(truth.ignore.data());
  if (elements == 0) return Comparison{};
  if (!floating) {
    return compare_exactly(got.data(), truth.values.data(), ignore, width, elements, pool);
  }
  const FloatTask task{got.data(), reinterpret_cast<const double*>(truth.values.data()),
                       ignore,     truth.atol,
                       truth.rtol, truth.any_non_finite_kind};
  if (spec.dtype == ir::DType::float32) return compare_floats<float>(task, elements, pool);
  if (spec.dtype == ir::DType::float64) return compare_floats<double>(task, elements, pool);
  if (spec.dtype == ir::DType::float16) return compare_floats<Half>(task, elements, pool);
  return compare_floats<Bfloat>(task, elements, pool);
}

std::string values_at(const TensorSpec& spec, std::span<const std::byte> got,
                      const OutputTruth& truth, int64_t index) {
  const auto element = [index](const std::byte* data, auto sample) {
    std::memcpy(&sample, data + index * static_cast<int64_t>(sizeof sample), sizeof sample);
    return sample;
  };
  const std::byte* mine = got.data();
  const std::byte* theirs = truth.values.data();
  const auto floats = [&](double value) {
    return fmt::format("expected {:.9g}, got {:.9g}", element(theirs, 0.0), value);
  };
  const auto integers = [&](auto sample) {
    return fmt::format("expected {}, got {}", static_cast<int64_t>(element(theirs, sample)),
                       static_cast<int64_t>(element(mine, sample)));
  };
  switch (spec.dtype) {
    case ir::DType::float64:
      return floats(element(mine, 0.0));
    case ir::DType::float32:
      return floats(to_double(element(mine, 0.0F)));
    case ir::DType::float16:
      return floats(to_double(element(mine, Half{})));
    case ir::DType::bfloat16:
      return floats(to_double(element(mine, Bfloat{})));
    case ir::DType::int64:
      return integers(int64_t{});
    case ir::DType::int32:
      return integers(int32_t{});
    case ir::DType::int16:
      return integers(int16_t{});
    case ir::DType::int8:
      return integers(int8_t{});
    case ir::DType::uint8:
    case ir::DType::boolean:
      return integers(uint8_t{});
  }
  return {};
}

int64_t count_poisoned(const TensorSpec& spec, std::span<const std::byte> got, std::byte poison) {
  const int64_t width = ir::bytes_of(spec.dtype);
  int64_t count = 0;
  for (int64_t i = 0; i < spec.elements(); ++i) {
    const auto* element = got.data() + i * width;
    count += std::all_of(element, element + width, [poison](std::byte b) { return b == poison; });
  }
  return count;
}

}  // namespace ke
