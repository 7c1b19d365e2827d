// SPDX-License-Identifier: Apache-2.0
//
// Programs: their text, every refusal of verify(), and what the interpreter makes of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "ir/interpret.hpp"
#include "ir/random_program.hpp"

namespace ke::ir {
namespace {

constexpr const char* kText =
    "tensor %0 x: float32[2, 3] strides [1, 2] input\n"
    "tensor %1 table: int64[2] constant {1, -4}\n"
    "tensor %2 largest: float32[2] intermediate\n"
    "tensor %3 y: float32[2, 3] output\n"
    "inputs %0\n"
    "stage %2[m=2] = maximum[k=3] in float32: load %0[i0, i1]  # aten.amax.default\n"
    "stage %3[m=2, n=3] = map: sub(load %0[i0, i1], mul(load %2[i0], "
    "cast(float32, load %1[i0])))  # aten.sub.Tensor\n"
    "outputs %3\n";

Program sample() { return parse_program(kText).value(); }

template <class T>
TensorBytes bytes_of_values(const std::vector<T>& values) {
  TensorBytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const TensorBytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(ProgramText, ParsesWhatItPrints) {
  EXPECT_EQ(print(sample()), kText);
  EXPECT_TRUE(verify(sample()).has_value());
  EXPECT_EQ(digest_of(sample()), digest_of(parse_program(print(sample())).value()));
}

TEST(ProgramText, RoundTripsRandomPrograms) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::string text = print(random_program(rng));
    const auto again = parse_program(text);
    ASSERT_TRUE(again.has_value()) << "seed " << seed << ": " << again.error().to_string();
    ASSERT_EQ(print(*again), text) << "seed " << seed;
  }
}

TEST(ProgramText, SurvivesDamage) {
  int parsed = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    std::string text = seed % 2 ? kText : print(random_program(rng));
    for (int64_t edits = 1 + rng.below(4); edits > 0; --edits) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      const auto other = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.chance(0.3))
        text[at] = static_cast<char>(rng.below(256));
      else if (rng.chance(0.5))
        text.erase(at, static_cast<size_t>(rng.below(9)));
      else
        text.insert(at, text.substr(other, static_cast<size_t>(rng.below(30))));
    }
    const auto program = parse_program(text);
    if (!program) continue;
    ++parsed;
    (void)verify(*program).has_value();  // must not abort either
  }
  EXPECT_GT(parsed, 10);
}

TEST(ProgramText, NamesTheLineOfAnError) {
  struct Case {
    std::string text, message;
  };
  const std::string head = "tensor %0 x: float32[] input\n";
  const std::string stage = head + "stage %0[] = map: ";
  const Case cases[] = {
      {"program", "line 1 of the program: a line starts with tensor, inputs, stage or outputs"},
      {"tensor %1 x: float32[] input", "line 1 of the program: tensors are not numbered in order"},
      {"tensor %0 x: float99[] input", "line 1 of the program: unknown dtype"},
      {"tensor %0 x: float32[-1] input", "line 1 of the program: a tensor has a negative extent"},
      {"tensor %0 x: float32[99999999999999999999] input",
       "line 1 of the program: a number is missing or out of range"},
      {"tensor %0 x: float32[] output input",
       "line 1 of the program: something follows the end of the line"},
      {"tensor %0 x float32[] input", "line 1 of the program: ':' is missing"},
      {"tensor %0 x: float32[] attic", "line 1 of the program: unknown role"},
      {"inputs %99999999999", "line 1 of the program: an id is out of range"},
      {stage + "load %7[]", "line 2 of the program: %7 is not declared"},
      {stage + "twist(load %0[])", "line 2 of the program: unknown operation 'twist'"},
      {stage + "add(load %0[], 1)", "line 2 of the program: add cannot take these operands"},
      {stage + "exp(1)", "line 2 of the program: exp cannot take these operands"},
      {stage + "select(1, 2, 3)", "line 2 of the program: select cannot take these operands"},
      {head + "stage %0[] = braid: 1", "line 2 of the program: unknown reduction"},
      {stage +
           [] {
             std::string deep;
             for (int n = 0; n < 100000; ++n) deep += "neg(";
             return deep;
           }(),
       "line 2 of the program: an expression is nested too deeply"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text.substr(0, 100));
    const auto program = parse_program(c.text);
    ASSERT_FALSE(program.has_value());
    EXPECT_EQ(program.error().code, Errc::invalid);
    EXPECT_EQ(program.error().message, c.message);
  }
}

TEST(ProgramText, BoundsItsSize) {
  std::string text = "outputs %0";
  for (int n = 0; n < (1 << 20) + 2; ++n) text += ",%0";
  const auto program = parse_program(text);
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().message, "line 1 of the program: the program is too large");
}

// --- verify
// ---------------------------------------------------------------------------------------
ExprPtr raw(Expr e) { return std::make_shared<Expr>(std::move(e)); }

struct Refusal {
  std::string message;
  std::function<void(Program&)> damage;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.message);
    Program program = sample();
    refusal.damage(program);
    const auto valid = verify(program);
    ASSERT_FALSE(valid.has_value());
    EXPECT_EQ(valid.error().message, refusal.message);
  }
}

TEST(Verify, RefusesBrokenTensors) {
  expect_refusals({
      {"a tensor's name is no identifier", [](Program& p) { p.tensors[0].name = "X"; }},
      {"two tensors are called x", [](Program& p) { p.tensors[1].name = "x"; }},
      {"tensor x has a negative or too large extent",
       [](Program& p) {
         p.tensors[0].shape = {int64_t{1} << 62, 4};
       }},
      {"tensor x has 1 strides for 2 dimensions", [](Program& p) { p.tensors[0].strides = {1}; }},
      {"tensor y is no input and has strides of its own",
       [](Program& p) {
         p.tensors[3].strides = {1, 2};
       }},
      {"tensor x has a negative or too large stride",
       [](Program& p) {
         p.tensors[0].strides = {-1, 1};
       }},
      {"tensor table lists 1 values instead of 2", [](Program& p) { p.tensors[1].values = {1}; }},
  });
}

TEST(Verify, RefusesBrokenInterfaces) {
  expect_refusals({
      {"input %9 is not declared", [](Program& p) { p.inputs[0] = {9}; }},
      {"tensor table is listed as an input without being one",
       [](Program& p) { p.inputs.push_back({1}); }},
      {"input x is listed twice", [](Program& p) { p.inputs.push_back({0}); }},
      {"tensor x is an input that is not listed", [](Program& p) { p.inputs.clear(); }},
      {"output %-1 is not declared", [](Program& p) { p.outputs[0] = {-1}; }},
      {"tensor largest is listed as an output without being one",
       [](Program& p) { p.outputs.push_back({2}); }},
      {"tensor y is an output that is not listed", [](Program& p) { p.outputs = {TensorId{0}}; }},
      {"output y is computed by no stage", [](Program& p) { p.stages.pop_back(); }},
  });
}

TEST(Verify, RefusesBrokenStages) {
  expect_refusals({
      {"stage 0 writes an undeclared tensor", [](Program& p) { p.stages[0].output = {77}; }},
      {"stage x writes an input or a constant", [](Program& p) { p.stages[0].output = {0}; }},
      {"stage largest writes a tensor that is already written",
       [](Program& p) { p.stages.push_back(p.stages[0]); }},
      {"stage y has parallel extents that differ from its output's shape",
       [](Program& p) { p.stages[1].parallel[0].extent = 1; }},
      {"stage y has a nameless axis", [](Program& p) { p.stages[1].parallel[0].name = ""; }},
      {"stage y has two axes called n", [](Program& p) { p.stages[1].parallel[0].name = "n"; }},
      {"stage largest has a negative or too large extent",
       [](Program& p) { p.stages[0].reduction[0].extent = -1; }},
      {"stage largest must have reduction axes exactly when it reduces",
       [](Program& p) { p.stages[0].reduction.clear(); }},
      {"stage largest takes an extreme of nothing",
       [](Program& p) { p.stages[0].reduction[0].extent = 0; }},
      {"stage largest must yield int64, as every argmax and argmin does",
       [](Program& p) { p.stages[0].reduce = ReduceOp::argmax; }},
      {"stage largest must take and yield boolean, as every any and all does",
       [](Program& p) { p.stages[0].reduce = ReduceOp::any; }},
      {"stage largest must accumulate in its body's dtype",
       [](Program& p) { p.stages[0].accumulator = DType::float64; }},
      {"stage largest accumulates in a dtype that cannot hold its body",
       [](Program& p) {
         p.stages[0].reduce = ReduceOp::sum;
         p.stages[0].accumulator = DType::int64;
       }},
      {"stage largest has an origin that does not fit a line",
       [](Program& p) { p.stages[0].origin = "a\nb"; }},
      {"stage largest has no body", [](Program& p) { p.stages[0].body = nullptr; }},
  });
}

TEST(Verify, RefusesBrokenExpressions) {
  const ExprPtr x = load(TensorId{0}, DType::float32, {axis(0), axis(1)});
  const ExprPtr one = index_constant(1);
  auto body = [](ExprPtr e) { return [e](Program& p) { p.stages[1].body = e; }; };
  ExprPtr deep = x;
  for (int n = 0; n < 2100; ++n) deep = unary(UnaryOp::neg, deep);
  expect_refusals({
      {"stage y uses axis i5 of 2", body(cast(DType::float32, axis(5)))},
      {"stage y loads an undeclared tensor", body(load(TensorId{50}, DType::float32, {}))},
      {"stage y loads y before it is computed",
       body(load(TensorId{3}, DType::float32, {axis(0), axis(1)}))},
      {"stage y loads x as float64", body(load(TensorId{0}, DType::float64, {axis(0), axis(1)}))},
      {"stage y loads x with 1 indices for 2 dimensions",
       body(load(TensorId{0}, DType::float32, {axis(0)}))},
      {"stage y indexes x by float32", body(load(TensorId{0}, DType::float32, {x, axis(0)}))},
      {"stage y mixes float32 and int64 in add", body(raw({.kind = Expr::Kind::binary,
                                                           .dtype = DType::float32,
                                                           .binary = BinaryOp::add,
                                                           .operands = {x, one}}))},
      {"stage y applies exp to int64", body(raw({.kind = Expr::Kind::unary,
                                                 .dtype = DType::int64,
                                                 .unary = UnaryOp::exp,
                                                 .operands = {one}}))},
      {"stage y applies bit_and to float32", body(raw({.kind = Expr::Kind::binary,
                                                       .dtype = DType::float32,
                                                       .binary = BinaryOp::bit_and,
                                                       .operands = {x, x}}))},
      {"stage y selects by something that is not boolean",
       body(raw({.kind = Expr::Kind::select, .dtype = DType::float32, .operands = {x, x, x}}))},
      {"stage y mixes float32 and int64 in select",
       body(raw({.kind = Expr::Kind::select,
                 .dtype = DType::float32,
                 .operands = {constant_int(DType::boolean, 1), x, one}}))},
      {"stage y has an expression of a wrong dtype: lt", body(raw({.kind = Expr::Kind::binary,
                                                                   .dtype = DType::float32,
                                                                   .binary = BinaryOp::lt,
                                                                   .operands = {x, x}}))},
      {"stage y has 1 operands where 2 belong",
       body(raw({.kind = Expr::Kind::binary, .dtype = DType::float32, .operands = {x}}))},
      {"stage y lacks an operand",
       body(raw({.kind = Expr::Kind::cast, .dtype = DType::float32, .operands = {nullptr}}))},
      {"stage y nests its body too deeply", body(deep)},
  });
}

// --- interpret
// ------------------------------------------------------------------------------------
std::vector<TensorBytes> run(const char* text, const std::vector<TensorBytes>& inputs) {
  const Program program = parse_program(text).value();
  EXPECT_TRUE(verify(program).has_value());
  return interpret(program, inputs).value();
}

TEST(Interpret, ReadsStridedInputsAndConstants) {
  const auto outputs =
      interpret(sample(), std::vector<TensorBytes>{bytes_of_values<float>({1, 2, 3, 4, 5, 6})});
  ASSERT_TRUE(outputs.has_value());
  // Rows are {1, 3, 5} and {2, 4, 6}; y is x - largest * {1, -4}.
  EXPECT_EQ(values_of<float>(outputs->at(0)), (std::vector<float>{-4, -2, 0, 26, 28, 30}));
}

TEST(Interpret, RefusesInputsThatDoNotFit) {
  const auto few = interpret(sample(), std::span<const TensorBytes>{});
  ASSERT_FALSE(few.has_value());
  EXPECT_EQ(few.error().message, "0 inputs were given where the program takes 1");
  const auto small = interpret(sample(), std::vector<TensorBytes>{bytes_of_values<float>({1, 2})});
  ASSERT_FALSE(small.has_value());
  EXPECT_EQ(small.error().message, "input x has 8 bytes where 24 belong");
}

TEST(Interpret, ReportsLoadsOutsideTheirTensor) {
  Program program = sample();
  program.stages[1].body = load(TensorId{0}, DType::float32,
                                {axis(0), binary(BinaryOp::add, axis(1), index_constant(1))});
  const auto outputs =
      interpret(program, std::vector<TensorBytes>{bytes_of_values<float>({1, 2, 3, 4, 5, 6})});
  ASSERT_FALSE(outputs.has_value());
  EXPECT_EQ(outputs.error().message, "tensor x is accessed at 3 in dimension 1 of extent 3");
}

TEST(Interpret, EvaluatesOnlyTheChosenSide) {
  const auto outputs =
      run("tensor %0 x: float32[2] input\ntensor %1 y: float32[4] output\ninputs %0\n"
          "stage %1[i=4] = map: select(lt(i0, 2), load %0[i0], -1.0:float32)\noutputs %1\n",
          {bytes_of_values<float>({5, 6})});
  EXPECT_EQ(values_of<float>(outputs[0]), (std::vector<float>{5, 6, -1, -1}));
}

TEST(Interpret, FindsTheFirstExtremeAndCountsNanAsOne) {
  const char* text =
      "tensor %0 x: float32[3, 4] input\ntensor %1 a: int64[3] output\n"
      "tensor %2 b: int64[3] output\ntensor %3 c: float32[3] output\ninputs %0\n"
      "stage %1[i=3] = argmax[r=4] in float32: load %0[i0, i1]\n"
      "stage %2[i=3] = argmin[r=4] in float32: load %0[i0, i1]\n"
      "stage %3[i=3] = minimum[r=4] in float32: load %0[i0, i1]\noutputs %1, %2, %3\n";
  const float nan = std::nanf("");
  const auto outputs =
      run(text, {bytes_of_values<float>({1, 7, 7, 1, 3, nan, nan, 9, -INFINITY, 0, -1, 0})});
  EXPECT_EQ(values_of<int64_t>(outputs[0]), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(values_of<int64_t>(outputs[1]), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_TRUE(std::isnan(values_of<float>(outputs[2])[1]));
}

TEST(Interpret, GivesNeutralElementsForEmptyReductions) {
  const auto outputs =
      run("tensor %0 x: float32[2, 0] input\ntensor %1 s: float32[2] output\n"
          "tensor %2 p: float32[2] output\ntensor %3 e: float32[0, 2] output\ninputs %0\n"
          "stage %1[i=2] = sum[r=0] in float32: load %0[i0, i1]\n"
          "stage %2[i=2] = product[r=0] in float32: load %0[i0, i1]\n"
          "stage %3[a=0, b=2] = map: load %0[i1, i0]\noutputs %1, %2, %3\n",
          {TensorBytes{}});
  EXPECT_EQ(values_of<float>(outputs[0]), (std::vector<float>{0, 0}));
  EXPECT_EQ(values_of<float>(outputs[1]), (std::vector<float>{1, 1}));
  EXPECT_TRUE(outputs[2].empty());
}

TEST(Interpret, KeepsInt64AndBooleansExact) {
  const auto outputs = run(
      "tensor %0 x: int64[2] input\ntensor %1 s: int64[] output\ntensor %2 f: boolean[] output\n"
      "inputs %0\nstage %1[] = sum[r=2] in int64: load %0[i0]\n"
      "stage %2[] = any[r=2] in boolean: eq(load %0[i0], 1)\noutputs %1, %2\n",
      {bytes_of_values<int64_t>({(int64_t{1} << 62) + 1, 1})});
  EXPECT_EQ(values_of<int64_t>(outputs[0])[0], (int64_t{1} << 62) + 2);
  EXPECT_EQ(values_of<uint8_t>(outputs[1])[0], 1);
}

}  // namespace
}  // namespace ke::ir
