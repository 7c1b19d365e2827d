// SPDX-License-Identifier: Apache-2.0
//
// Several shape cases: one oracle a case.
#include <cmath>

#include "oracle/oracle_fixture.hpp"

namespace ke {
namespace {

TEST_F(OracleTest, ServesEveryShapeCase) {
  const auto oracles = start_oracles(options_for("cases.py"));
  ASSERT_TRUE(oracles) << oracles.error().to_string();
  ASSERT_EQ(oracles->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    Oracle& oracle = *(*oracles)[i];
    const int64_t rows = i == 0 ? 6 : i == 1 ? 1 : 0;
    const Problem& problem = oracle.problem();
    EXPECT_EQ(problem.shape_case, static_cast<int32_t>(i));
    EXPECT_EQ(problem.case_count, 3);
    ASSERT_EQ(problem.inputs.size(), 3u);
    EXPECT_EQ(problem.inputs[0].shape, (std::vector<int64_t>{rows, 8}));
    EXPECT_EQ(problem.outputs.at(0).shape, (std::vector<int64_t>{rows, 8}));
    EXPECT_TRUE(problem.graph) << problem.graph_error;
    for (const SetKind kind : {SetKind::nominal, SetKind::planted, SetKind::mantissa_tail}) {
      const InputSet set = made(oracle, {.kind = kind, .seed = 5});
      ASSERT_EQ(set.inputs.size(), 3u);
      EXPECT_EQ(set.inputs[0].bytes, rows * 8 * 4);
      double sum = 0;
      for (int64_t k = 0; k < rows * 8; ++k) {
        sum += static_cast<double>(element<float>(set.inputs[0], k));
      }
      EXPECT_NEAR(expected(set.truths.at(1), 0), sum, 1e-9 * (1 + std::fabs(sum)));
    }
    const InputSet a = made(oracle, {.seed = 1, .with_truth = false});
    const InputSet again = made(oracle, {.seed = 1, .with_truth = false});
    const InputSet other = made(oracle, {.seed = 2, .with_truth = false});
    EXPECT_TRUE(same_bytes(a.inputs[0], again.inputs[0]));
    EXPECT_EQ(same_bytes(a.inputs[0], other.inputs[0]), rows == 0);
    ASSERT_TRUE(oracle.ring(BaselineKind::eager, {a.id, other.id}));
  }
}

TEST_F(OracleTest, RefusesCasesThatChangeMoreThanShapes) {
  constexpr const char* kProblem = R"(import torch

class Model(torch.nn.Module):
    def forward(self, x, scale=1.0):
        return (x, x * scale) if len(x) == 1 else x * scale

def get_inputs():
    return [torch.randn(4), 2.0]

def get_init_inputs():
    return []

def get_input_cases():
)";
  struct Case {
    const char* body;  // of get_input_cases()
    const char* sentence;
  } cases[] = {
      {"return {'x': [torch.randn(3), 2.0]}",
       "get_input_cases() returns dict; it must return a list of cases"},
      {"return [torch.randn(3), torch.randn(2)]",
       "get_input_cases()[0] is Tensor; it must be a list of the arguments"},
      {"return [[torch.randn(3)]]", "get_input_cases()[0] has another structure than get_inputs()"},
      {"return [[torch.randn(3).double(), 2.0]]",
       "has the type float64 for argument 0, which is float32"},
      {"return [[torch.randn(3), 3.0]]",
       "get_input_cases()[0] has another argument 1 than get_inputs()"},
      {"return [[torch.randn(3), 2.0], [torch.randn(3), 2.0]]",
       "case 2 (x [3]) has the shapes of case 1"},
      {"return [[torch.randn(1), 2.0]]",
       "case 1 (x [1]) has another number of outputs than case 0"},
      {"return [[torch.randn(rows), 2.0] for rows in range(5, 40)]",
       "has 36 shape cases, get_inputs() included, and at most 16 are judged"},
      {"raise ValueError('no cases today')",
       "raises ValueError during get_input_cases() (line 14): no cases today"},
  };
  const Result<os::TemporaryDirectory> folder = os::TemporaryDirectory::create("ke-cases");
  ASSERT_TRUE(folder);
  OracleOptions options = options_for("cases.py");
  options.problem_path = folder->path() / "cases.py";
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body);
    ASSERT_TRUE(os::write_file_atomically(options.problem_path,
                                          std::string(kProblem) + "    " + c.body + "\n"));
    const auto oracles = start_oracles(options);
    ASSERT_FALSE(oracles);
    EXPECT_EQ(oracles.error().code, Errc::invalid);
    const std::string message = oracles.error().to_string();
    EXPECT_NE(message.find(c.sentence), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace ke
