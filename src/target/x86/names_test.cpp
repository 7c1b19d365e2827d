// SPDX-License-Identifier: Apache-2.0
#include "target/x86/names.hpp"

#include <gtest/gtest.h>

namespace ke::x86 {
namespace {

ir::Program named(const std::vector<std::string>& names) {
  ir::Program program;
  for (const std::string& name : names) {
    ir::Tensor tensor;
    tensor.name = name;
    program.tensors.push_back(tensor);
  }
  return program;
}

TEST(Names, KeepsTheWordsOfThePrintedCodeToItself) {
  for (const char* name : {"static_cast", "input_count", "abs_of", "load_f32x8", "f32x8", "bf16x8",
                           "uint16_t", "kernel0_mm", "partial3", "copy0", "position", "sum_acc"}) {
    EXPECT_TRUE(is_taken(name)) << name;
  }
  for (const char* name : {"x", "weight", "kernel", "kernel_size", "f32", "i0", "copy", "partial",
                           "internal_t", "load", "d", "offset1"}) {
    EXPECT_FALSE(is_taken(name)) << name;
  }
}

TEST(Names, GivesEveryTensorAVariableOfItsOwn) {
  const ir::Program program = named({"x", "end", "end_", "row", "load_x"});
  EXPECT_EQ(variable_of(program, program.tensors[0]), "x");
  EXPECT_EQ(variable_of(program, program.tensors[1]), "end__");
  EXPECT_EQ(variable_of(program, program.tensors[2]), "end_");
  EXPECT_EQ(variable_of(program, program.tensors[3]), "row_");
  EXPECT_EQ(variable_of(program, program.tensors[4]), "load_x_");
}

}  // namespace
}  // namespace ke::x86
