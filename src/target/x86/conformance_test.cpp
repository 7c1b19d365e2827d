// SPDX-License-Identifier: Apache-2.0
#include "target/conformance.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/rng.hpp"
#include "graph_writer.hpp"
#include "ir/lower/lower.hpp"
#include "ir/random_program.hpp"

KE_CONFORMANCE(x86)

namespace ke::x86 {
namespace {

using target::ConformanceCase;

// One reduce kernel, under every combination of what a row's passes can choose: of the stages that
// the greedy plan keeps, or of those at the given positions of the program.
std::vector<ConformanceCase> reduce_cases(std::string_view name, const std::string& text,
                                          const std::vector<int>& stages = {}) {
  std::vector<ConformanceCase> cases;
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.has_value()) << name;
  if (!program) return cases;
  ir::KernelPlan kernel{.skeleton = ir::Skeleton::reduce, .stages = {}, .schedule = {}};
  const ir::Plan greedy = ir::fuse_greedily(*program);
  for (const ir::KernelPlan& part : greedy.kernels) {
    kernel.stages.insert(kernel.stages.end(), part.stages.begin(), part.stages.end());
  }
  if (!stages.empty()) kernel.stages.clear();
  for (const int stage : stages) kernel.stages.push_back(ir::StageId{stage});
  Rng rng(11);
  for (const int64_t split : {1, 4}) {
    for (const int64_t keep : {0, 1}) {
      for (const int64_t streaming : {0, 1}) {
        kernel.schedule = {{"rows_in_lanes", 0},
                           {"split", split},
                           {"keep_terms", keep},
                           {"streaming", streaming}};
        cases.push_back({fmt::format("{}, split {} keep {} streaming {}", name, split, keep,
                                     streaming),
                         *program,
                         ir::Plan{{kernel}},
                         ir::random_inputs(*program, rng)});
      }
    }
  }
  return cases;
}

void expect_right(const std::vector<ConformanceCase>& cases) {
  target::expect_conformance(*find_target("x86")->make(), cases, {});
}

TEST(X86Reduce, StoresASumThatIsReducedBesideAMap) {
  expect_right(reduce_cases("sum beside a map", R"(tensor %0 x: float32[2, 8192] input
tensor %1 s: float32[2] output
tensor %2 y: float32[2, 8192] output
inputs %0
stage %1[i=2] = sum[j=8192] in float32: load %0[i0, i1]  # sum
stage %2[i=2, j=8192] = map: add(load %0[i0, i1], 1.0:float32)  # add
outputs %1, %2
)"));
}

TEST(X86Reduce, StoresAValueOfTheRowThatReadsWhatAMapWrote) {
  expect_right(reduce_cases("an element of a map", R"(tensor %0 x: float32[2, 8192] input
tensor %1 s: float32[2] intermediate
tensor %2 y: float32[2, 8192] intermediate
tensor %3 z: float32[2] output
inputs %0
stage %1[i=2] = sum[j=8192] in float32: load %0[i0, i1]  # sum
stage %2[i=2, j=8192] = map: sub(load %0[i0, i1], load %1[i0])  # sub
stage %3[i=2] = map: load %2[i0, 77]  # gather
outputs %3
)",
                            {0, 1, 2}));
}

TEST(X86Reduce, KeepsTheTermsOfASoftmaxInItsOutput) {
  for (const int columns : {4099, 8192}) {
    expect_right(reduce_cases(fmt::format("softmax of {}", columns),
                              fmt::format(R"(tensor %0 x: float32[3, {0}] input
tensor %1 m: float32[3] intermediate
tensor %2 e: float32[3, {0}] intermediate
tensor %3 s: float32[3] intermediate
tensor %4 y: float32[3, {0}] output
inputs %0
stage %1[i=3] = maximum[j={0}] in float32: load %0[i0, i1]  # max
stage %2[i=3, j={0}] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # exp
stage %3[i=3] = sum[j={0}] in float32: load %2[i0, i1]  # sum
stage %4[i=3, j={0}] = map: div(load %2[i0, i1], load %3[i0])  # div
outputs %4
)",
                                          columns)));
  }
}

// Equal terms are rounded the same way at each addition, so a long run of them drifts away.
TEST(X86Reduce, AddsEqualTermsUpWithoutDrift) {
  const auto program = ir::parse_program(R"(tensor %0 x: float32[64, 4096] input
tensor %1 s: float32[64] output
inputs %0
stage %1[i=64] = sum[j=4096] in float32: load %0[i0, i1]  # sum
outputs %1
)");
  ASSERT_TRUE(program) << program.error().to_string();
  std::vector<ConformanceCase> cases;
  for (const int64_t rows_in_lanes : {0, 1}) {
    ir::Plan plan = ir::fuse_greedily(*program);
    plan.kernels[0].schedule = {{"rows_in_lanes", rows_in_lanes}};
    Rng rng(1);
    cases.push_back({fmt::format("rows in lanes {}", rows_in_lanes), *program, plan,
                     ir::random_inputs(*program, rng)});
    cases.back().relative = 1e-5;
    const float same = 1.1f;
    for (size_t at = 0; at < cases.back().inputs[0].size(); at += sizeof same) {
      std::memcpy(cases.back().inputs[0].data() + at, &same, sizeof same);
    }
  }
  expect_right(cases);
}

// Squares of a row with one outlier: wherever that lies, the others must still count.
TEST(X86Reduce, AddsUpWhatVanishesBesideALargeTerm) {
  struct Row {
    const char *shape, *inner, *indices;
  };
  const Row rows[] = {{"8192", "j=8192", "i0, i1"},
                      {"256, 32", "j=32, k=256", "i0, i2, i1"},
                      {"16, 512", "j=512, k=16", "i0, i2, i1"},
                      {"6, 1365", "j=1365, k=6", "i0, i2, i1"}};
  std::vector<ConformanceCase> cases;
  for (const Row& row : rows) {
    const auto program = ir::parse_program(fmt::format(R"(tensor %0 x: float32[32, {}] input
tensor %1 s: float32[32] output
inputs %0
stage %1[i=32] = sum[{}] in float32: load %0[{}]  # sum
outputs %1
)",
                                                       row.shape, row.inner, row.indices));
    ASSERT_TRUE(program) << program.error().to_string();
    for (const ir::Schedule& schedule :
         std::initializer_list<ir::Schedule>{{{"rows_in_lanes", 1}},
                                             {{"rows_in_lanes", 1}, {"tile", 128}},
                                             {{"rows_in_lanes", 0}, {"unroll", 1}},
                                             {{"rows_in_lanes", 0}, {"unroll", 8}},
                                             {{"rows_in_lanes", 0}, {"split", 64}}}) {
      ir::Plan plan = ir::fuse_greedily(*program);
      plan.kernels[0].schedule = schedule;
      Rng rng(1);
      cases.push_back({fmt::format("{} {}", row.inner, cases.size()), *program, plan,
                       ir::random_inputs(*program, rng)});
      target::plant_large_terms(cases.back(), program->tensor(ir::TensorId{0}).elements() / 32);
    }
  }
  expect_right(cases);
}

// Equal products minus their maximum are zero, however the compiler likes to fuse multiplications.
TEST(X86Reduce, RoundsAProductBeforeItMeetsAValueOfTheRow) {
  std::vector<ConformanceCase> cases =
      reduce_cases("products minus their maximum", R"(tensor %0 x: float32[2, 8192] input
tensor %1 m: float32[2] intermediate
tensor %2 y: float32[2, 8192] output
inputs %0
stage %1[i=2] = maximum[j=8192] in float32: mul(load %0[i0, i1], load %0[i0, i1])  # max
stage %2[i=2, j=8192] = map: sub(mul(load %0[i0, i1], load %0[i0, i1]), load %1[i0])  # sub
outputs %2
)");
  for (ConformanceCase& one : cases) {
    const float same = 1.1f;
    for (size_t at = 0; at < one.inputs[0].size(); at += sizeof same) {
      std::memcpy(one.inputs[0].data() + at, &same, sizeof same);
    }
  }
  expect_right(cases);
}

using testing_support::GraphWriter;
using testing_support::integer;
using testing_support::list;
using Shape = std::vector<int64_t>;

struct ConvolutionCase {
  const char* name;
  Shape x, w, y;
  Shape stride{1}, padding{0};
  bool transposed = false;
  int64_t groups = 1;
  ir::DType dtype = ir::DType::float32;
};

ir::Graph graph_of(const ConvolutionCase& c) {
  GraphWriter g;
  std::vector<ir::Arg> args = {ir::Arg{g.input("x", c.x, c.dtype)},
                               ir::Arg{g.input("w", c.w, c.dtype)},
                               ir::Arg{g.input("b", {c.y[1]}, c.dtype)},
                               list(c.stride),
                               list(c.padding),
                               list({1}),
                               ir::Arg{c.transposed},
                               list({0}),
                               integer(c.groups)};
  const ir::ValueId sum = g.call("aten.convolution.default", std::move(args), c.y, c.dtype);
  return g.returning({g.call("aten.relu.default", {ir::Arg{sum}}, c.y, c.dtype)});
}

ir::Graph pool_graph(const char* op, Shape x, const Shape& y, std::vector<ir::Arg> options) {
  GraphWriter g;
  options.insert(options.begin(), ir::Arg{g.input("x", std::move(x))});
  return g.returning({g.call(op, std::move(options), y)});
}

// Guarded loads inside a contraction or a reduction.
std::vector<ConformanceCase> window_cases() {
  std::vector<std::pair<std::string, ir::Graph>> graphs;
  for (const ConvolutionCase& c : std::initializer_list<ConvolutionCase>{
           {"halves",
            {2, 5, 19, 23},
            {7, 5, 3, 3},
            {2, 7, 10, 21},
            {2, 1},
            {1, 0},
            false,
            1,
            ir::DType::float16},
           {"groups", {3, 6, 35}, {10, 3, 5}, {3, 10, 35}, {1}, {2}, false, 2},
           {"a group a channel", {3, 6, 35}, {6, 1, 5}, {3, 6, 35}, {1}, {2}, false, 6},
           {"transposed", {2, 9, 33}, {9, 6, 4}, {2, 6, 66}, {2}, {1}, true}}) {
    graphs.emplace_back(c.name, graph_of(c));
  }
  graphs.emplace_back("largest", pool_graph("aten.max_pool2d_with_indices.default", {2, 3, 33, 37},
                                            {2, 3, 17, 19}, {list({3}), list({2}), list({1})}));
  graphs.emplace_back("mean",
                      pool_graph("aten.avg_pool1d.default", {4, 70}, {4, 36},
                                 {list({3}), list({2}), list({1}), ir::Arg{true}, ir::Arg{false}}));
  std::vector<ConformanceCase> cases;
  Rng rng(5);
  for (const auto& [name, graph] : graphs) {
    const auto program = ir::lower(graph);
    EXPECT_TRUE(program.has_value()) << name << ": " << program.error().to_string();
    if (!program) continue;
    cases.push_back(
        {name, *program, ir::fuse_greedily(*program), ir::random_inputs(*program, rng)});
    if (name == "halves") cases.back().relative = 1e-3;  // the last bit of a half
  }
  return cases;
}

TEST(X86Windows, AreRight) {
  const std::vector<ConformanceCase> cases = window_cases();
  const auto target = find_target("x86")->make();
  for (const ConformanceCase& one : cases) {
    const auto kernels = ir::realize(one.program, one.plan);
    ASSERT_TRUE(kernels.has_value()) << one.name;
    EXPECT_TRUE(target->print(one.program, *kernels, {}).has_value()) << one.name;
  }
  expect_right(cases);
  MachineProfile small;  // whose caches hold little, so that contractions are cut into blocks
  small.l1_bytes = 1 << 10;
  small.l2_bytes = 4 << 10;
  small.llc_bytes = 16 << 10;
  target::expect_conformance(*target, cases, small);
}

}  // namespace
}  // namespace ke::x86
