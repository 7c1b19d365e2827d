// SPDX-License-Identifier: Apache-2.0
//
// For tests of targets: scans of every kind, in both directions and along every axis, with what is
// computed on the way in and out. The greedy plan makes one kernel of each.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "ir/random_program.hpp"
#include "target/conformance.hpp"

namespace ke::target {

struct ScanProgram {
  std::string name, text;
};

inline std::string scan_text(std::string_view dtype, std::string_view shape, std::string_view axes,
                             std::string_view scan, std::string_view body) {
  return fmt::format(
      "tensor %0 x: {0}[{1}] input\ntensor %1 y: {0}[{1}] output\ninputs %0\n"
      "stage %1[{2}] = scan {3}: {4}  # scan\noutputs %1\n",
      dtype, shape, axes, scan, body);
}

// Rows of this length, and columns.
inline std::vector<ScanProgram> scan_programs(int length) {
  const std::string rows = fmt::format("5, {}", length), axes = fmt::format("i=5, j={}", length);
  const std::string flipped = fmt::format("sub({}, i1)", length - 1);
  std::vector<ScanProgram> all;
  for (const char* op : {"sum", "product", "maximum", "minimum"}) {
    all.push_back({op, scan_text("float32", rows, axes, fmt::format("{}[j] in float32", op),
                                 "load %0[i0, i1]")});
  }
  all.push_back({"double", scan_text("float64", rows, axes, "sum[j] in float64",
                                     "load %0[i0, i1]")});
  all.push_back({"half", scan_text("float16", rows, axes, "sum[j] in float32",
                                   "cast(float32, load %0[i0, i1])")});
  all.push_back({"integers", scan_text("int64", rows, axes, "sum[j] in int64", "load %0[i0, i1]")});
  all.push_back({"bytes", scan_text("int8", rows, axes, "product[j] in int8", "load %0[i0, i1]")});
  all.push_back({"any", scan_text("boolean", rows, axes, "maximum[j] in boolean",
                                  "load %0[i0, i1]")});
  all.push_back({"exclusive", scan_text("float32", rows, axes, "sum[j] in float32",
                                        "select(ge(i1, 1), load %0[i0, sub(i1, 1)], "
                                        "0.0:float32)")});
  all.push_back({"of a flipped row", scan_text("float32", rows, axes, "sum[j] in float32",
                                               fmt::format("load %0[i0, {}]", flipped))});
  all.push_back({"columns", scan_text("float32", fmt::format("3, {}, 37", length),
                                      fmt::format("n=3, i={}, j=37", length), "sum[i] in float32",
                                      "load %0[i0, i1, i2]")});
  for (const char* op : {"sum", "product"}) {  // backwards, and a map of what is scanned
    all.push_back({fmt::format("backwards {}", op),
                   fmt::format("tensor %0 x: float32[5, {0}] input\n"
                               "tensor %1 m: boolean[5, {0}] input\n"
                               "tensor %2 s: float32[5, {0}] intermediate\n"
                               "tensor %3 t: float32[5, {0}] output\n"
                               "tensor %4 y: float32[5, {0}] output\ninputs %0, %1\n"
                               "stage %2[i=5, j={0}] = scan {1}[j] in float32: mul(load %0[i0, {2}]"
                               ", cast(float32, load %1[i0, {2}]))  # scan\n"
                               "stage %3[i=5, j={0}] = map: load %2[i0, {2}]  # flip\n"
                               "stage %4[i=5, j={0}] = map: tanh(add(load %3[i0, i1], load "
                               "%0[i0, i1]))  # tanh\noutputs %3, %4\n",
                               length, op, flipped)});
  }
  return all;
}

// Each program under each schedule.
inline std::vector<ConformanceCase> scan_cases(const std::vector<int>& lengths,
                                               const std::vector<ir::Schedule>& schedules) {
  std::vector<ConformanceCase> cases;
  Rng rng(5);
  for (const int length : lengths) {
    for (const ScanProgram& one : scan_programs(length)) {
      const auto program = ir::parse_program(one.text);
      EXPECT_TRUE(program) << one.name << ": " << program.error().to_string();
      if (!program) continue;
      EXPECT_TRUE(ir::verify(*program)) << one.name;
      ir::Plan plan = ir::fuse_greedily(*program);
      EXPECT_EQ(plan.kernels.size(), 1u) << one.name;
      for (const ir::Schedule& schedule : schedules) {
        std::string words;
        for (const auto& [name, value] : schedule) words += fmt::format(" {}={}", name, value);
        plan.kernels[0].schedule = schedule;
        cases.push_back({fmt::format("{} of {}{}", one.name, length, words), *program, plan,
                         ir::random_inputs(*program, rng)});
      }
    }
  }
  return cases;
}

}  // namespace ke::target
