// SPDX-License-Identifier: Apache-2.0
#include "target/x86/profile.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "base/rng.hpp"

namespace ke::x86 {
namespace {

// A vector loop and its scalar remainder.
constexpr const char* kTwoLoops = R"(
kernel.so:     file format elf64-x86-64

Disassembly of section .text:

0000000000001000 <helper>:
    1000:	add    $0x1,%rax
    1004:	cmp    %rax,%rcx
    1007:	jne    1000 <helper>
    1009:	ret

0000000000001100 <(anonymous namespace)::body(long, void*)>:
    1100:	test   %rcx,%rcx
    1103:	jle    1181 <body+0x81>
    1160:	vmovups (%rdi,%rax,1),%ymm0
    1165:	vmovups (%rdx,%rax,1),%ymm2
    116a:	vfmadd132ps (%rsi,%rax,1),%ymm2,%ymm0
    1170:	vmovups %ymm0,-0x40(%rbp)
    1172:	vmovups 0x20(%rsp),%ymm1
    1175:	add    $0x20,%rax        # 2000 <table>
    1179:	cmp    %r8,%rax
    117c:	jne    1160 <body+0x60>
    1181:	vmovss (%rdi,%rax,1),%xmm0
    1186:	vmulss %xmm1,%xmm0,%xmm0
    118a:	vaddss %xmm1,%xmm0,%xmm0
    118e:	jne    1181 <body+0x81>
    1190:	ret
)";

TEST(X86Profile, FindsTheVectorLoopBesideItsRemainder) {
  const std::optional<HotLoop> loop = find_hot_loop(kTwoLoops);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->function, "(anonymous namespace)::body(long, void*)");
  ASSERT_EQ(loop->instructions.size(), 8u);
  EXPECT_EQ(loop->instructions.front(), "vmovups (%rdi,%rax,1),%ymm0");
  EXPECT_EQ(loop->instructions[5], "add    $0x20,%rax");
  EXPECT_EQ(loop->instructions.back(), "jne .Lloop");
  const LoopCounts counts = count(*loop);
  EXPECT_EQ(counts.vector, 1);
  EXPECT_EQ(counts.scalar, 0);
  EXPECT_EQ(counts.spills, 2);
}

TEST(X86Profile, PrefersTheMostDeeplyNestedLoop) {
  const std::optional<HotLoop> loop = find_hot_loop(
      "0000000000000010 <f>:\n"
      "    10:\tvaddps %ymm0,%ymm1,%ymm1\n"
      "    14:\tvaddps %ymm0,%ymm1,%ymm1\n"
      "    18:\tjne    10 <f>\n"
      "    20:\tmov    %rax,%rbx\n"
      "    24:\tvmulss %xmm0,%xmm1,%xmm1\n"
      "    28:\tjne    24 <f+0x14>\n"
      "    2c:\tjne    20 <f+0x10>\n");
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->instructions,
            (std::vector<std::string>{"vmulss %xmm0,%xmm1,%xmm1", "jne .Lloop"}));
}

TEST(X86Profile, FindsNothingWhereNothingIsComputed) {
  EXPECT_FALSE(find_hot_loop(""));
  EXPECT_FALSE(
      find_hot_loop("0000000000000010 <f>:\n    10:\tadd    $0x1,%rax\n    14:\tjne    10\n"));
  EXPECT_FALSE(find_hot_loop("no disassembly\n>:\n<>:\n    zz:\tjne\n    1:\tj\n"));
}

TEST(X86Profile, ReadsTheCompilersRemarks) {
  const std::vector<std::string> remarks = vectorisation_remarks(
      "/build/kernel.cpp:1:84: optimized: loop vectorized using 32 byte vectors\n"
      "In function 'f':\n"
      "/build/kernel.cpp:1:84: optimized: loop vectorized using 32 byte vectors\n"
      "/build/kernel.cpp:9:2: missed: couldn't vectorize loop\n");
  EXPECT_EQ(remarks, (std::vector<std::string>{
                         "kernel.cpp:1:84: optimized: loop vectorized using 32 byte vectors",
                         "kernel.cpp:9:2: missed: couldn't vectorize loop"}));
}

TEST(X86Profile, ReadsThePipelineModel) {
  const PipelineEstimate estimate = read_pipeline_model(
      "Iterations:        100\nTotal Cycles:      212\n\nThroughput Bottlenecks: \n"
      "  Resource Pressure       [ 12.00% ]\n  Data Dependencies:      [ 78.30% ]\n",
      100);
  EXPECT_DOUBLE_EQ(*estimate.cycles_per_iteration, 2.12);
  EXPECT_EQ(*estimate.bottleneck, "data dependencies");
  const PipelineEstimate none = read_pipeline_model("error: something\n", 100);
  EXPECT_FALSE(none.cycles_per_iteration);
  EXPECT_FALSE(none.bottleneck);
}

// Answers by the name of the program; what it does not know is not installed.
class CannedTools final : public ToolRunner {
 public:
  std::map<std::string, std::string> outputs;
  std::string loop;
  Result<void> write(std::string_view, std::string_view contents) override {
    loop = contents;
    return {};
  }
  Result<std::string> run(const std::vector<std::string>& command) override {
    const auto found = outputs.find(command.front());
    if (found != outputs.end()) return found->second;
    return Error{Errc::unavailable, fmt::format("{} is not installed", command.front())};
  }
};

TEST(X86Profile, WhatIsMissingSaysWhy) {
  const BuildRecipe recipe{{"g++", "{source}"}, "kernel.cpp", "kernel.so"};
  CannedTools tools;
  EXPECT_EQ(profile(recipe, tools).missing.at("compiler_remarks"), "g++ is not installed");
  tools.outputs["g++"] = "kernel.cpp:1:84: optimized: loop vectorized\n";
  const KernelProfile remarks = profile(recipe, tools);
  EXPECT_EQ(remarks.compiler_remarks.size(), 1u);
  EXPECT_EQ(remarks.missing.at("spills"), "objdump is not installed");
  EXPECT_FALSE(remarks.spills);
  tools.outputs["objdump"] = kTwoLoops;
  const KernelProfile counted = profile(recipe, tools);
  EXPECT_EQ(counted.spills, 2);
  EXPECT_EQ(counted.missing.size(), 1u);
  EXPECT_EQ(counted.missing.at("cycles_per_iteration"), "llvm-mca is not installed");
  EXPECT_TRUE(tools.loop.starts_with(".Lloop:\n\tvmovups"));
  tools.outputs["llvm-mca"] = "Total Cycles: 300\n";
  const KernelProfile whole = profile(recipe, tools);
  EXPECT_TRUE(whole.missing.empty());
  EXPECT_DOUBLE_EQ(*whole.cycles_per_iteration, 3);
}

TEST(X86Profile, SurvivesWhateverToolsPrint) {
  Rng rng(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text = kTwoLoops;
    for (int64_t i = rng.below(30); i >= 0; --i) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.chance(0.3)) {
        text.erase(at, static_cast<size_t>(rng.below(40)));
      } else {
        text[at] = "\n\t :<>#j0f%-,"[rng.below(13)];
      }
      if (text.empty()) text = "x";
    }
    if (const auto loop = find_hot_loop(text)) {
      EXPECT_FALSE(loop->instructions.empty());
    }
    (void)vectorisation_remarks(text);
    (void)read_pipeline_model(text, 100);
  }
}

}  // namespace
}  // namespace ke::x86
