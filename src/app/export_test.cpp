// SPDX-License-Identifier: Apache-2.0
#include "app/export.hpp"

#include <gtest/gtest.h>

namespace ke::app {
namespace {

TEST(ModuleName, IsAlwaysImportable) {
  EXPECT_EQ(module_name("level1/19_ReLU"), "problem_19_ReLU");
  EXPECT_EQ(module_name("a-b c.d"), "problem_a_b_c_d");
  EXPECT_EQ(module_name("class"), "problem_class");
}

TEST(CppHeader, NamesEveryTensorOnceAndNoKeyword) {
  Problem problem;
  problem.name = "p";
  problem.inputs = {{"for", ir::DType::float32, {2, 3}, {3, 1}, ir::InputKind::argument},
                    {"gemm.weight", ir::DType::bfloat16, {4}, {1}, ir::InputKind::parameter},
                    {"gemm_weight", ir::DType::int64, {}, {}, ir::InputKind::buffer}};
  problem.outputs = {{"output0", ir::DType::boolean, {2}, {1}, ir::InputKind::argument}};
  const std::string header = cpp_header(problem);
  EXPECT_NE(header.find("const float* for_,"), std::string::npos) << header;
  EXPECT_NE(header.find("const uint16_t* gemm_weight,"), std::string::npos) << header;
  EXPECT_NE(header.find("const int64_t* gemm_weight_,"), std::string::npos) << header;
  EXPECT_NE(header.find("bool* output,"), std::string::npos) << header;
  EXPECT_NE(header.find("inputs_0_strides[] = {3, 1}"), std::string::npos) << header;
  EXPECT_NE(header.find("nullptr, nullptr, 0, 0, 64, 1}"), std::string::npos) << header;
}

TEST(ExportTexts, SayHowRandomInputsAreDrawn) {
  Problem problem;
  problem.name = "p";
  problem.inputs = {{"x", ir::DType::float32, {2}, {1}, ir::InputKind::argument},
                    {"draw0", ir::DType::boolean, {2}, {1}, ir::InputKind::random}};
  EXPECT_EQ(readme({.problem = problem}, "p.py").find("draws"), std::string::npos);
  problem.draws = {{"bernoulli_", {0.7}}};
  const std::string header = cpp_header(problem);
  EXPECT_NE(header.find("// x: float32 [2], strides [1]\n"), std::string::npos) << header;
  EXPECT_NE(header.find("// draw0: boolean [2], strides [1], drawn by bernoulli_(0.7)\n"),
            std::string::npos)
      << header;
  EXPECT_NE(readme({.problem = problem}, "p.py").find("draws random numbers"), std::string::npos);
}

TEST(CppHeader, HasAFunctionForEachShapeCase) {
  Problem first, second;
  first.name = second.name = "p";
  first.inputs = {{"x", ir::DType::float32, {4}, {1}, ir::InputKind::argument}};
  second.inputs = {{"x", ir::DType::float32, {0}, {1}, ir::InputKind::argument}};
  second.shape_case = 1;
  const std::string header = cpp_header(first, {&second});
  EXPECT_NE(header.find("inline int problem_p(\n"), std::string::npos) << header;
  EXPECT_NE(header.find("inline int problem_p_case1(\n"), std::string::npos) << header;
  EXPECT_NE(header.find("inputs_0_shape[] = {0}"), std::string::npos) << header;
  EXPECT_EQ(cpp_header(first).find("_case"), std::string::npos);
}

TEST(Readme, ShowsOnlyWhatWasMeasured) {
  const Problem problem{.name = "level1/19_ReLU"};
  ExportRequest request{.problem = problem};
  request.target = "x86";
  EXPECT_NE(readme(request, "").find("not timed"), std::string::npos);
  Measurement measured;
  measured.time_ns = 12'500;
  measured.eager_median_ns = 25'000;
  measured.speedup = 2;
  request.evaluation.measurement = measured;
  const std::string text = readme(request, "problem_19_ReLU.py");
  EXPECT_NE(text.find("| this kernel | 12.50 us |"), std::string::npos) << text;
  EXPECT_NE(text.find("| torch.compile | not measured |"), std::string::npos) << text;
  EXPECT_NE(text.find("not confirmed"), std::string::npos) << text;
  EXPECT_NE(text.find("from problem_19_ReLU import ModelNew"), std::string::npos) << text;
}

}  // namespace
}  // namespace ke::app
