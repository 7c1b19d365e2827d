// SPDX-License-Identifier: Apache-2.0
//
// How device code is launched, as comments of its source say it (the judge launches, no code of the
// candidate does). A source may be anybody's, so this reads hostile text: everything is bounded,
// and a refusal is one sentence that names the line.
//
//   // ke:case in0[0] == 16 && in0[1] == 1024         optional: what follows is for these shapes
//   // ke:scratch 4 * in0.size                        optional: bytes, 256-byte aligned
//   // ke:launch NAME grid=(ceil_div(n, 256), 1, 1) block=(256) shared=1024
//                args=(in0, out0, scratch+0, n)       all on one line
//
// Integer expressions: + - * / % == != < <= > >= && || ( ), min, max, ceil_div of two; in0.size
// (elements), in0.ndim, in0[1] (an extent), out0 alike, n (elements of the first output). Arguments
// are tensors, scratch with an offset in bytes, or integers, handed over in 64 bits of which a
// narrower parameter takes the low ones. A launch whose grid has a zero is left out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ke::target {

struct LaunchLimits {
  size_t lines_max = 4096;  // of all kinds
  size_t line_bytes_max = 8192;
  size_t arguments_max = 128;
  int64_t grid_x_max = INT32_MAX, grid_yz_max = 65535;
  int64_t block_threads_max = 1024, block_z_max = 64;
  int64_t shared_bytes_max = 227 << 10;  // of Hopper
  int64_t scratch_bytes_max = int64_t{1} << 40;
};

struct LaunchShapes {
  std::vector<std::vector<int64_t>> inputs, outputs;
};

struct LaunchArgument {
  enum class Kind : uint8_t { input, output, scratch, integer };
  Kind kind = Kind::integer;
  int64_t value = 0;  // which tensor, the offset in bytes, or the integer
  bool operator==(const LaunchArgument&) const = default;
};

struct Launch {
  std::string kernel;  // as in extern "C" __global__ void kernel(…)
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic
  std::vector<LaunchArgument> arguments;
};

struct LaunchPlan {
  int64_t scratch_bytes = 0;
  std::vector<Launch> launches;  // in order, each after the one before
};

// What one instruction of an expression in postfix order does.
struct LaunchStep {
  enum class Op : uint8_t {
    number,
    input_size,
    input_ndim,
    input_extent,
    output_size,
    output_ndim,
    output_extent,
    add,
    sub,
    mul,
    div,
    mod,
    eq,
    ne,
    lt,
    le,
    gt,
    ge,
    logical_and,
    logical_or,
    min,
    max,
    ceil_div
  };
  Op op = Op::number;
  int64_t value = 0;      // the number, or which tensor
  int64_t dimension = 0;  // of an extent
};
using LaunchExpression = std::vector<LaunchStep>;

struct LaunchLine {
  struct Argument {
    LaunchArgument::Kind kind = LaunchArgument::Kind::integer;
    int64_t tensor = 0;
    LaunchExpression expression;  // of an integer or an offset
  };
  int number = 0;  // of the line in the source
  std::string kernel;
  std::vector<LaunchExpression> grid, block;
  LaunchExpression shared;
  std::vector<Argument> arguments;
};

// The lines for one case of shapes.
struct LaunchSection {
  LaunchExpression condition;  // empty: always
  LaunchExpression scratch;    // empty: none
  std::vector<LaunchLine> launches;
};

struct LaunchScript {
  std::vector<LaunchSection> sections;
  std::vector<std::string> kernels() const;  // every name once, sorted
};

// Errc::invalid, with the line's number, when a line is not as above or there is none.
Result<LaunchScript> parse_launch_lines(std::string_view source, const LaunchLimits& limits = {});

// What is launched for tensors of these shapes. Errc::invalid when no case is theirs, a name has no
// tensor, or a value is beyond what a device takes.
Result<LaunchPlan> plan_launches(const LaunchScript& script, const LaunchShapes& shapes,
                                 const LaunchLimits& limits = {});

}  // namespace ke::target
