// SPDX-License-Identifier: Apache-2.0
//
// The judge's parts that need no process: comparing, budgets, statistics, floors, normal form,
// plans, and the thread pool that runners carry.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "base/rng.hpp"
#include "eval/admission.hpp"
#include "eval/build.hpp"
#include "eval/floor.hpp"
#include "eval/statistics.hpp"
#include "eval/timing.hpp"
#include "eval/timing_lock.hpp"
#include "graph_writer.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"

namespace ke {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

template <class T>
std::span<const std::byte> bytes_of_values(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

OutputTruth truth_of(const std::vector<double>& values, double atol = 1e-4, double rtol = 1e-4) {
  OutputTruth truth;
  truth.values = *os::SharedMemory::create(static_cast<int64_t>(values.size() * sizeof(double)));
  std::memcpy(truth.values.data(), values.data(), values.size() * sizeof(double));
  double squares = 0;
  for (double v : values) squares += std::isfinite(v) ? v * v : 0;
  truth.rms_truth = std::sqrt(squares / static_cast<double>(values.size()));
  truth.atol = atol;
  truth.rtol = rtol;
  return truth;
}

TensorSpec vector_spec(int64_t n, ir::DType dtype = ir::DType::float32) {
  return {"out", dtype, {n}, {1}};
}

// --- compare -----------------------------------------------------------------------------------

TEST(Compare, FindsTheErrorOfOneElementWhereverItIs) {
  constexpr int64_t kCount = 20'000;
  Rng rng(1);
  std::vector<double> values(kCount);
  for (double& v : values) v = rng.normal();
  const OutputTruth truth = truth_of(values, 1e-6, 1e-6);
  ThreadPool pool(2);
  for (int64_t at : {int64_t{0}, int64_t{7}, int64_t{8191}, int64_t{8192}, kCount - 1}) {
    SCOPED_TRACE(at);
    std::vector<float> got(values.begin(), values.end());
    got[static_cast<size_t>(at)] += 0.5f;
    const Comparison c = compare_output(vector_spec(kCount), bytes_of_values(got), truth, &pool);
    EXPECT_EQ(c.outside, 1);
    EXPECT_EQ(c.worst_index, at);
    EXPECT_EQ(c.max_index, at);
    EXPECT_NEAR(c.max_abs, 0.5, 1e-6);
    EXPECT_EQ(c.graded, kCount);
  }
}

TEST(Compare, SumsSquaresLikeTheDefinition) {
  Rng rng(2);
  std::vector<double> values(9'001);
  std::vector<float> got;
  double squares = 0, largest = 0;
  for (double& v : values) {
    v = rng.normal();
    got.push_back(static_cast<float>(v + 1e-6 * rng.normal()));
    const double error = std::fabs(static_cast<double>(got.back()) - v);
    squares += error * error;
    largest = std::max(largest, error);
  }
  const Comparison c =
      compare_output(vector_spec(9'001), bytes_of_values(got), truth_of(values), nullptr);
  EXPECT_NEAR(c.sum_squares, squares, 1e-12 * squares + 1e-20);
  EXPECT_EQ(c.max_abs, largest);
  EXPECT_EQ(c.outside, 0);
}

TEST(Compare, DemandsTheKindOfNonFiniteValues) {
  struct Case {
    double truth;
    float got;
    bool any_kind;
    bool right;
  } cases[] = {{kNan, NAN, false, true},           {kNan, 1.0f, false, false},
               {kInfinity, INFINITY, false, true}, {kInfinity, -INFINITY, false, false},
               {kInfinity, NAN, false, false},     {kInfinity, NAN, true, true},
               {kNan, -INFINITY, true, true},      {kNan, 0.0f, true, false},
               {1.0, NAN, false, false},           {1.0, INFINITY, true, false},
               {-kInfinity, -INFINITY, true, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.truth << " " << c.got << " " << c.any_kind);
    std::vector<double> values(40, 1.0);
    std::vector<float> got(40, 1.0f);
    values[17] = c.truth;
    got[17] = c.got;
    OutputTruth truth = truth_of(values);
    truth.any_non_finite_kind = c.any_kind;
    const Comparison found = compare_output(vector_spec(40), bytes_of_values(got), truth, nullptr);
    EXPECT_EQ(found.outside == 0, c.right);
  }
}

TEST(Compare, LeavesOutWhatIsNotGraded) {
  std::vector<double> values(100, 1.0);
  std::vector<float> got(100, 1.0f);
  got[50] = 99;
  OutputTruth truth = truth_of(values);
  truth.ignore = *os::SharedMemory::create(100);
  truth.ignore.data()[50] = std::byte{1};
  const Comparison c = compare_output(vector_spec(100), bytes_of_values(got), truth, nullptr);
  EXPECT_EQ(c.outside, 0);
  EXPECT_EQ(c.ungraded, 1);
  EXPECT_EQ(c.graded, 99);
}

TEST(Compare, IsExactForIntegersAndBooleans) {
  std::vector<int64_t> values{1, -2, int64_t{1} << 60};
  OutputTruth truth;
  truth.values = *os::SharedMemory::create(24);
  std::memcpy(truth.values.data(), values.data(), 24);
  const TensorSpec spec = vector_spec(3, ir::DType::int64);
  EXPECT_EQ(compare_output(spec, bytes_of_values(values), truth, nullptr).outside, 0);
  values[2] += 1;
  EXPECT_EQ(compare_output(spec, bytes_of_values(values), truth, nullptr).outside, 1);
}

TEST(Compare, ReadsNarrowFloats) {
  EXPECT_EQ(half_to_double(0x3c00), 1.0);
  EXPECT_EQ(half_to_double(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(half_to_double(0xfc00), -kInfinity);
  EXPECT_TRUE(std::isnan(half_to_double(0x7e01)));
  EXPECT_EQ(bfloat_to_double(0xc000), -2.0);
  EXPECT_EQ(round_to_half(1.0 + std::ldexp(1.0, -12)), 1.0);
  EXPECT_EQ(round_to_half(1e-7), std::ldexp(2.0, -24));
  EXPECT_EQ(round_to_half(65519.0), 65504.0);
  EXPECT_EQ(round_to_half(-65520.0), -kInfinity);
  for (int bits = 0; bits < 0x7c00; ++bits) {
    const double value = half_to_double(static_cast<uint16_t>(bits));
    ASSERT_EQ(round_to_half(value), value);
  }
}

TEST(Compare, CountsWhatWasNeverWritten) {
  std::vector<float> got(10, 1.0f);
  std::memset(got.data() + 3, 0x5a, 8);
  EXPECT_EQ(count_poisoned(vector_spec(10), bytes_of_values(got), std::byte{0x5a}), 2);
}

// --- budget ------------------------------------------------------------------------------------

Problem problem_of(int64_t elements, int64_t longest) {
  Problem problem;
  problem.outputs = {vector_spec(elements)};
  problem.longest_reduction = longest;
  problem.unit_roundoff = 0x1p-24;
  return problem;
}

// A comparison of `count` elements with a given absolute rms and max error.
Comparison errors_of(int64_t count, double rms, double max) {
  Comparison c;
  c.elements = c.graded = count;
  c.sum_squares = rms * rms * static_cast<double>(count);
  c.max_abs = max;
  c.max_index = 0;
  return c;
}

TEST(Budget, AllowsEightTimesPytorchOrTheFloor) {
  const Problem problem = problem_of(1000, 100);
  const double floor = 0x1p-24 * 10;
  OutputTruth truth = truth_of(std::vector<double>(1000, 2.0));
  struct Case {
    double pytorch_rms, pytorch_max, rms, max;
    bool right;
  } cases[] = {{1e-6, 1e-5, 7.9e-6, 7.9e-5, true},        {1e-6, 1e-5, 8.1e-6, 1e-5, false},
               {1e-6, 1e-5, 1e-6, 8.1e-5, false},         {0, 0, 1.99 * floor, 7.9 * floor, true},
               {0, 0, 2.01 * floor, 2.01 * floor, false}, {0, 0, floor, 8.1 * floor, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.rms << " " << c.max);
    truth.pytorch_rms = c.pytorch_rms;
    truth.pytorch_max = c.pytorch_max;
    Budget budget(problem, Precision::strict);
    budget.add(0, errors_of(1000, c.rms, c.max), truth, "nominal");
    EXPECT_EQ(!budget.verdict().has_value(), c.right);
    Budget loose(problem, Precision::kernelbench);
    loose.add(0, errors_of(1000, c.rms, c.max), truth, "nominal");
    EXPECT_FALSE(loose.verdict().has_value());
  }
}

TEST(Budget, CapsTheFloorForLongReductions) {
  const Problem problem = problem_of(10, int64_t{1} << 40);
  Budget budget(problem, Precision::strict);
  budget.add(0, errors_of(10, 0, 0), truth_of(std::vector<double>(10, 1.0)), "nominal");
  EXPECT_DOUBLE_EQ(budget.errors()[0].rms_budget, 512 * 0x1p-24);
}

TEST(Budget, PoolsSetsRelativeToTheirOwnScale) {
  const Problem problem = problem_of(100, 1);
  const OutputTruth small = truth_of(std::vector<double>(100, 1e-3));
  const OutputTruth large = truth_of(std::vector<double>(100, 1e3));
  Budget budget(problem, Precision::strict);
  budget.add(0, errors_of(100, 3e-11, 3e-11), small, "nominal");
  budget.add(0, errors_of(100, 4e-5, 4e-5), large, "scaled");
  EXPECT_NEAR(budget.errors()[0].rms, std::sqrt((9 + 16) / 2.0) * 1e-8, 1e-12);
  EXPECT_NEAR(budget.errors()[0].max, 4e-8, 1e-12);
}

TEST(Budget, SaysWhereWithoutSayingWhat) {
  Problem problem = problem_of(6, 1);
  problem.outputs[0].shape = {2, 3};
  std::vector<float> got(6, 1.0f);
  got[4] = 1234.5f;
  const OutputTruth truth = truth_of(std::vector<double>(6, 1.0));
  Budget budget(problem, Precision::strict);
  budget.add(0, compare_output(problem.outputs[0], bytes_of_values(got), truth, nullptr), truth,
             "planted");
  ASSERT_TRUE(budget.verdict().has_value());
  EXPECT_EQ(*budget.verdict(),
            "output 0: 1 of 6 elements are wrong (input set 'planted'), the worst at [1, 1], "
            "6.17e+06 times what is allowed");
}

TEST(Budget, GradesAnAllZeroTruthByToleranceAlone) {
  const Problem problem = problem_of(10, 1);
  const OutputTruth truth = truth_of(std::vector<double>(10, 0.0));
  Budget budget(problem, Precision::strict);
  budget.add(0, errors_of(10, 1e-5, 1e-5), truth, "nominal");
  EXPECT_FALSE(budget.verdict().has_value());
}

// Two answers within the budget lie at most twice the budget apart.
TEST(Agreement, AllowsTwiceTheBudgetInFloatingOutputsAlone) {
  const TensorSpec spec = problem_of(1000, 1).outputs[0];
  OutputTruth truth = truth_of(std::vector<double>(1000, 2.0));
  truth.atol = truth.rtol = 1e-3;
  OutputError error;
  error.rms_budget = 1e-5;
  error.max_budget = 4e-5;
  const Closeness each = closeness_of(truth, error, Precision::strict);
  const Closeness loose = closeness_of(truth, error, Precision::kernelbench);
  const std::vector<float> one(1000, 2.0f);
  const auto agrees = [&](const std::vector<float>& other, const Closeness& closeness) {
    return *agree(spec, bytes_of_values(one), bytes_of_values(other), closeness, nullptr);
  };
  const std::vector<float> near(1000, 2.0f * (1 + 1.9e-5f)), far(1000, 2.0f * (1 + 2.1e-5f));
  EXPECT_TRUE(agrees(one, each));
  EXPECT_TRUE(agrees(near, each));
  EXPECT_FALSE(agrees(far, each));
  EXPECT_TRUE(agrees(far, loose));
  std::vector<float> other = one;
  other[7] = 2.0f * (1 + 9e-5f);
  EXPECT_FALSE(agrees(other, each)) << "more than twice the largest error";
  EXPECT_TRUE(agrees(other, loose));
  other[7] = 2.01f;
  EXPECT_FALSE(agrees(other, loose)) << "outside twice the tolerance";
  other[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(agrees(other, each));
  TensorSpec integers = spec;
  integers.dtype = ir::DType::int32;
  const std::vector<int32_t> sevens(1000, 7);
  std::vector<int32_t> eight = sevens;
  eight[0] = 8;
  EXPECT_TRUE(*agree(integers, bytes_of_values(sevens), bytes_of_values(sevens), each, nullptr));
  EXPECT_FALSE(*agree(integers, bytes_of_values(sevens), bytes_of_values(eight), each, nullptr));
}

// --- statistics --------------------------------------------------------------------------------

TEST(Statistics, IntervalsFollowTheBinomialTable) {
  std::vector<double> values(20);
  std::iota(values.begin(), values.end(), 1.0);
  const Interval interval = median_interval(values);  // 6th and 15th of 20: 95.9 %
  EXPECT_EQ(interval.middle, 10.5);
  EXPECT_EQ(interval.low, 6);
  EXPECT_EQ(interval.high, 15);
  const Interval six = median_interval({1, 2, 3, 4, 5, 6});  // extremes: 96.9 %
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.high, 6);
  const Interval three = median_interval({1, 2, 3});
  EXPECT_EQ(three.low, 0);
  EXPECT_EQ(three.high, 4);
}

// Per-call times as a busy two-core machine gives them: a base, slow drift, a right tail of
// interruptions. The generator is fitted to samples of a 30 microsecond kernel.
int64_t noisy(Rng& rng, double base, double drift) {
  double time = base * drift * (1 + 0.004 * rng.normal());
  if (rng.chance(0.12)) time *= 1 + 0.3 * rng.uniform();
  if (rng.chance(0.01)) time *= 3;
  return static_cast<int64_t>(time);
}

TEST(Statistics, CoverOneForAKernelAgainstItself) {
  Rng rng(7);
  int covered = 0, ties = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<int64_t> a, b;
    for (int pair = 0; pair < 9; ++pair) {
      const double drift = 1 + 0.1 * std::sin(trial + pair / 3.0);
      a.push_back(noisy(rng, 30'000, drift));
      b.push_back(noisy(rng, 30'000, drift));
    }
    const Interval ratio = paired_speedup(a, b);
    covered += ratio.low <= 1 && ratio.high >= 1;
    ties += is_tie(ratio);
  }
  EXPECT_GE(covered, 372);  // 93 %
  EXPECT_GE(ties, covered);
}

TEST(Statistics, TellFivePercentApartInFifteenPairs) {
  Rng rng(8);
  int told = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<int64_t> a, b;
    for (int pair = 0; pair < 15; ++pair) {
      const double drift = 1 + 0.1 * std::sin(trial + pair / 3.0);
      a.push_back(noisy(rng, 31'500, drift));
      b.push_back(noisy(rng, 30'000, drift));
    }
    const Interval ratio = paired_speedup(a, b);
    told += ratio.low > 1 && !is_tie(ratio);
  }
  EXPECT_GE(told, 95);
}

// --- floor and plan ----------------------------------------------------------------------------

TEST(Floor, AsksForNoWeightsWhereThereIsNothingToCombineThemWith) {
  Problem problem;
  problem.inputs = {{"x", ir::DType::float32, {0, 1024}, {1024, 1}, ir::InputKind::argument},
                    {"w", ir::DType::float32, {1024, 1024}, {1024, 1}, ir::InputKind::parameter}};
  problem.outputs = {{"y", ir::DType::float32, {0, 1024}, {1024, 1}}};
  ir::Graph graph;
  for (int i = 0; i < 2; ++i) {
    graph.values.push_back({});
    graph.inputs.push_back({.value = ir::ValueId{i}});
    graph.outputs.push_back(ir::ValueId{i});
  }
  problem.graph = graph;
  const MachineProfile machine;
  EXPECT_EQ(bytes_that_must_move(problem), 0);
  EXPECT_EQ(physical_floor_ns(problem, machine, true), 1);
  EXPECT_EQ(impossible_below_ns(problem, machine, true), 0);
  problem.inputs[0].shape = {1, 1024};
  EXPECT_GT(bytes_that_must_move(problem), 4 << 20);
  EXPECT_GT(impossible_below_ns(problem, machine, true), 1'000);
}

TEST(Floor, IsTheSlowerOfMovingAndComputing) {
  Problem problem = problem_of(1 << 20, 1);
  problem.inputs = {vector_spec(1 << 20)};
  MachineProfile machine;
  machine.bandwidth_all = 8e9;
  machine.flops_f32_all = 1e11;
  EXPECT_EQ(physical_floor_ns(problem, machine, true), (int64_t{8} << 20) / 8);
  problem.flops = 1'000'000'000;
  EXPECT_EQ(physical_floor_ns(problem, machine, true), 10'000'000);
}

TEST(Floor, CountsTheLeastFormOfTheWork) {
  Problem problem = problem_of(1 << 10, 1);
  MachineProfile machine;
  machine.flops_f32_all = 1e11;
  problem.flops = 1'000'000'000;
  problem.spared_flops = 900'000'000;
  EXPECT_EQ(problem.minimal_flops(), 100'000'000);
  EXPECT_EQ(physical_floor_ns(problem, machine, true), 1'000'000);
}

// A kernel may leave an input alone that nothing depends on: b and, as c - c, c.
TEST(Floor, MovesNoInputThatNothingDependsOn) {
  Problem problem = problem_of(1 << 20, 1);
  problem.inputs = {vector_spec(1 << 20), vector_spec(1 << 20), vector_spec(1 << 20)};
  testing_support::GraphWriter g;
  const std::vector<int64_t> shape = {1 << 20};
  const ir::ValueId a = g.input("a", shape), b = g.input("b", shape), c = g.input("c", shape);
  g.call("aten.relu.default", {ir::Arg{b}}, shape);
  const ir::ValueId zero = g.call("aten.sub.Tensor", {ir::Arg{c}, ir::Arg{c}}, shape);
  problem.graph = g.returning({g.call("aten.add.Tensor", {ir::Arg{a}, ir::Arg{zero}}, shape)});
  EXPECT_EQ(bytes_that_must_move(problem), 8 << 20);  // a and the output
  MachineProfile machine;
  machine.bandwidth_all = 8e9;
  EXPECT_EQ(physical_floor_ns(problem, machine, true), 1 << 20);
}

TEST(Floor, CallsImpossibleOnlyWhatIs) {
  Problem problem = problem_of(1 << 24, 1);
  problem.inputs = {vector_spec(1 << 24)};
  MachineProfile machine;
  const int64_t impossible = impossible_below_ns(problem, machine, true);
  EXPECT_GT(impossible, 0);
  EXPECT_LT(3 * impossible, physical_floor_ns(problem, machine, true));
  EXPECT_EQ(bytes_that_must_move(problem), 4 << 24);  // no graph: the outputs alone
}

TEST(Plan, SparesHeavyProblemsAndFillsShortOnes) {
  const TimingPlan small = plan_timing(Effort::screen, 30'000, 40'000, 34, true);
  EXPECT_GE(small.pairs, 5);
  EXPECT_EQ(small.calls % 34, 0);
  EXPECT_LE(small.pairs * small.calls * 70'000, 400'000'000);
  const TimingPlan heavy = plan_timing(Effort::screen, 2'000'000'000, 2'000'000'000, 2, true);
  EXPECT_EQ(heavy.calls, 1);
  EXPECT_EQ(heavy.pairs, 1);
  EXPECT_FALSE(heavy.warm_calls);
  EXPECT_GE(plan_timing(Effort::confirm, 30'000, 40'000, 34, true).pairs, 15);
  EXPECT_EQ(plan_timing(Effort::confirm, 2'000'000'000, 2'000'000'000, 2, true).pairs, 3);
}

// --- build -------------------------------------------------------------------------------------

TEST(NormalizedSource, DropsWhatMeansNothing) {
  struct Case {
    const char *source, *normal;
  } cases[] = {
      {"int  x = 1; // one\n\n\nint y;\n", "int x = 1;\nint y;\n"},
      {"a /* long\ncomment */ b\n", "a b\n"},
      {"char* s = \"a  // b\";\n", "char* s = \"a  // b\";\n"},
      {"// ke:flags -O2\nint x;\n", "// ke:flags -O2\nint x;\n"},
      {"char q = '\"'; // x\n", "char q = '\"';\n"},
      {"int n = 1'000; // ' quote\n", "int n = 1'000;\n"},
      {"\t#define A  1\r\n", "#define A 1\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.source);
    const std::string normal = normalized_source(c.source);
    EXPECT_EQ(normal.substr(normal.find_first_not_of(' ')), c.normal);
  }
  const std::string raw = "auto s = R\"(  // kept )\";";
  EXPECT_EQ(normalized_source(raw), raw);
}

TEST(LibraryPolicy, LooksAtWhatTheLibraryNeeds) {
  ElfSummary own{{"libstdc++.so.6", "libm.so.6", "libgomp.so.1", "libc.so.6"}, {"expf"}, {}};
  const LibraryPolicy none, any{LibraryPolicy::Kind::any, {}};
  EXPECT_FALSE(check_libraries(own, none).violation.has_value());
  EXPECT_EQ(check_libraries(own, none).kernel_class, "own");
  ElfSummary foreign{{"libopenblas.so.0", "libc.so.6"}, {}, {}};
  EXPECT_TRUE(check_libraries(foreign, none).violation.has_value());
  EXPECT_FALSE(check_libraries(foreign, any).violation.has_value());
  EXPECT_EQ(check_libraries(foreign, any).kernel_class, "mixed");
  ElfSummary loader{{"libc.so.6"}, {"dlopen"}, {}};
  EXPECT_TRUE(check_libraries(loader, none).violation.has_value());
}

TEST(LibraryPolicy, IsReadFromText) {
  EXPECT_EQ(parse_library_policy("none")->to_string(), "none");
  EXPECT_EQ(parse_library_policy("any")->to_string(), "any");
  const Result<LibraryPolicy> listed = parse_library_policy("m,c");
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->to_string(), "m,c");
  EXPECT_TRUE(listed->may_link("m"));
  EXPECT_FALSE(listed->may_link("z"));
  for (const char* wrong : {"", "m,", "../evil", "no_such_library_anywhere"}) {
    EXPECT_FALSE(parse_library_policy(wrong)) << wrong;
  }
}

TEST(LibraryPolicy, ShowsTheRunTimeAloneUnlessMoreIsAdmitted) {
  const auto files = visible_libraries(LibraryPolicy{});
  ASSERT_TRUE(files);
  const auto has = [&](const char* name) {
    return std::any_of(files->begin(), files->end(),
                       [&](const std::string& file) { return file.ends_with(name); });
  };
  EXPECT_TRUE(has("/libm.so.6"));
  EXPECT_TRUE(has("/libc.so.6"));
  EXPECT_FALSE(has("/libsqlite3.so.0"));
  EXPECT_FALSE(visible_libraries({LibraryPolicy::Kind::any, {}}));
}

TEST(Drift, ComparesTheEndsOfASeries) {
  EXPECT_EQ(drift_of({1, 2, 3}), 1);  // too few to say
  EXPECT_EQ(drift_of({10, 10, 10, 11, 12, 11, 20, 20, 20}), 2);
  EXPECT_NEAR(drift_of({10, 99, 10, 10, 10, 10, 10, 10, 99}), 1, 1e-12);
}

// --- turns -------------------------------------------------------------------------------------

char state_of(pid_t pid) {
  const std::string stat = os::read_file(fmt::format("/proc/{}/stat", pid), 4096).value_or("");
  const size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? '?' : stat[end + 2];
}

// Waits, for as long as a test may take, until what another thread does has happened.
template <class Condition>
bool comes_true(const Condition& condition) {
  os::SystemClock clock;
  for (int i = 0; i < 20'000 && !condition(); ++i) clock.sleep_for(std::chrono::milliseconds(1));
  return condition();
}

// While somebody judges, a build stands still: that is no fault of the source.
TEST(Build, HasItsOwnTimeLimited) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create();
  const std::unique_ptr<Target> target = find_target("x86")->make();
  os::SystemClock clock;
  TimingLock lock{std::filesystem::path()};
  Limits limits;
  limits.compile_max = Milliseconds(1'000);
  const Result<Builder> builder =
      Builder::create({target.get(), limits, {}, folder.path(), &lock, &clock});
  ASSERT_TRUE(builder) << builder.error().to_string();
  std::optional<TimingLock::Held> held = lock.hold();
  std::atomic<bool> judged = false;
  const std::jthread judging([&] {
    std::this_thread::sleep_for(2 * limits.compile_max);
    judged = true;
    held.reset();
  });
  const Result<Artifact> built = builder->build(
      "#include <kernelevolve/kernel.h>\nextern \"C\" int ke_launch(const ke_tensor*, int32_t, "
      "ke_tensor*, int32_t, ke_context*) { return 0; }\n");
  ASSERT_TRUE(built) << built.error().to_string();
  EXPECT_FALSE(built->failure) << built->failure->detail;
  EXPECT_TRUE(judged) << "it was built while somebody judged";
}

TEST(TimingLock, StopsTheBackgroundOfWhoeverWaits) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create();
  std::atomic<int> told = 0;  // begun and not ended
  TimingLock first(folder.path() / "lock");
  TimingLock second(folder.path() / "lock", [&](bool judging) { told += judging ? 1 : -1; });
  os::ProcessOptions sleeping;
  sleeping.argv = {"sleep", "600"};
  os::Child child = std::move(*os::spawn(sleeping));
  second.add_group(child.pid());
  {
    const auto turn = first.take_turn();
    ASSERT_TRUE(turn);
    EXPECT_TRUE(comes_true([&] { return told == 1 && state_of(child.pid()) == 'T'; }));
  }
  EXPECT_TRUE(comes_true([&] { return told == 0 && state_of(child.pid()) != 'T'; }));
  {
    const auto own = second.take_turn();  // its own turn is nobody else's
    ASSERT_TRUE(own);
    EXPECT_EQ(told, 0);
    EXPECT_NE(state_of(child.pid()), 'T');
    const TimingLock::Held held = second.hold();
    EXPECT_TRUE(comes_true([&] { return state_of(child.pid()) == 'T'; }));
  }
  EXPECT_TRUE(comes_true([&] { return state_of(child.pid()) != 'T'; }));
  second.remove_group(child.pid());
}

// --- thread pool -------------------------------------------------------------------------------

TEST(ThreadPool, RunsEveryIndexOnceWhateverTheSizes) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 3, 17, 1000, 100'000}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << n << " indices");
      std::vector<int> seen(static_cast<size_t>(n));
      pool.parallel_for(
          n, [](int64_t i, void* arg) { ++(*static_cast<std::vector<int>*>(arg))[size_t(i)]; },
          &seen);
      EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    }
  }
}

TEST(ThreadPool, SurvivesManyShortJobs) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  for (int64_t job = 0; job < 20'000; ++job) {
    pool.parallel_for(
        3, [](int64_t i, void* arg) { *static_cast<std::atomic<int64_t>*>(arg) += i; }, &sum);
  }
  EXPECT_EQ(sum, 3 * 20'000);
}

}  // namespace
}  // namespace ke
