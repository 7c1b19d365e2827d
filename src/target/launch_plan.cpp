// SPDX-License-Identifier: Apache-2.0
//
// Evaluation; the parser is in launch_parse.cpp.
#include "target/launch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ke::target {
namespace {

using Op = LaunchStep::Op;
using Kind = LaunchArgument::Kind;

Error refused(std::string message) { return {Errc::invalid, std::move(message)}; }

Result<int64_t> count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      return refused("the elements of a tensor cannot be counted in 64 bits");
    }
  }
  return count;
}

Result<int64_t> shape_value(const LaunchStep& step, const LaunchShapes& shapes) {
  const bool input = step.op <= Op::input_extent;
  const auto& tensors = input ? shapes.inputs : shapes.outputs;
  if (step.value >= static_cast<int64_t>(tensors.size())) {
    return refused(fmt::format("there is no tensor {}{}; there are {}", input ? "in" : "out",
                               step.value, tensors.size()));
  }
  const std::vector<int64_t>& shape = tensors[static_cast<size_t>(step.value)];
  if (step.op == Op::input_size || step.op == Op::output_size) return count_of(shape);
  const auto rank = static_cast<int64_t>(shape.size());
  if (step.op == Op::input_ndim || step.op == Op::output_ndim) return rank;
  if (step.dimension >= rank) {
    return refused(fmt::format("{}{} has {} dimensions, so there is no [{}]", input ? "in" : "out",
                               step.value, rank, step.dimension));
  }
  return shape[static_cast<size_t>(step.dimension)];
}

Result<int64_t> arithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  if (op == Op::add && !__builtin_add_overflow(a, b, &result)) return result;
  if (op == Op::sub && !__builtin_sub_overflow(a, b, &result)) return result;
  if (op == Op::mul && !__builtin_mul_overflow(a, b, &result)) return result;
  if (op == Op::add || op == Op::sub || op == Op::mul) {
    return refused("a value does not fit 64 bits");
  }
  if (b <= 0) return refused(fmt::format("a division by {}: divisors are positive", b));
  if (op == Op::div) return a / b;
  if (op == Op::mod) return a % b;
  return a / b + (a % b > 0 ? 1 : 0);
}

Result<int64_t> apply(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::eq:
      return a == b ? 1 : 0;
    case Op::ne:
      return a != b ? 1 : 0;
    case Op::lt:
      return a < b ? 1 : 0;
    case Op::le:
      return a <= b ? 1 : 0;
    case Op::gt:
      return a > b ? 1 : 0;
    case Op::ge:
      return a >= b ? 1 : 0;
    case Op::logical_and:
      return a != 0 && b != 0 ? 1 : 0;
    case Op::logical_or:
      return a != 0 || b != 0 ? 1 : 0;
    case Op::min:
      return std::min(a, b);
    case Op::max:
      return std::max(a, b);
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::mod:
    case Op::ceil_div:
      return arithmetic(op, a, b);
    case Op::number:
    case Op::input_size:
    case Op::input_ndim:
    case Op::input_extent:
    case Op::output_size:
    case Op::output_ndim:
    case Op::output_extent:
      break;
  }
  return refused("an expression is damaged");
}

Result<int64_t> evaluate(const LaunchExpression& expression, const LaunchShapes& shapes) {
  std::vector<int64_t> stack;
  for (const LaunchStep& step : expression) {
    if (step.op == Op::number) {
      stack.push_back(step.value);
    } else if (step.op <= Op::output_extent) {
      stack.push_back(TRY(shape_value(step, shapes)));
    } else {
      if (stack.size() < 2) return refused("an expression is damaged");
      const int64_t b = stack.back();
      stack.pop_back();
      stack.back() = TRY(apply(step.op, stack.back(), b));
    }
  }
  if (stack.size() != 1) return refused("an expression is damaged");
  return stack.back();
}

// What one line asks for, checked against what a device takes.
class LinePlanner {
 public:
  LinePlanner(const LaunchShapes& shapes, const LaunchLimits& limits, int64_t scratch_bytes)
      : shapes_(shapes), limits_(limits), scratch_bytes_(scratch_bytes) {}

  Result<Launch> run(const LaunchLine& line) const {
    Launch launch;
    launch.kernel = line.kernel;
    for (size_t d = 0; d < line.grid.size(); ++d) {
      const int64_t most = d == 0 ? limits_.grid_x_max : limits_.grid_yz_max;
      launch.grid[d] = TRY(within(line.grid[d], "grid", 0, most));
    }
    for (size_t d = 0; d < line.block.size(); ++d) {
      const int64_t most = d == 2 ? limits_.block_z_max : limits_.block_threads_max;
      launch.block[d] = TRY(within(line.block[d], "block", 1, most));
    }
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > limits_.block_threads_max) {
      return refused(fmt::format("a block of {} threads: at most {} are possible", threads,
                                 limits_.block_threads_max));
    }
    if (!line.shared.empty()) {
      launch.shared_bytes = TRY(within(line.shared, "shared", 0, limits_.shared_bytes_max));
    }
    for (const LaunchLine::Argument& argument : line.arguments) {
      launch.arguments.push_back(TRY(argument_of(argument)));
    }
    return launch;
  }

 private:
  Result<int64_t> within(const LaunchExpression& expression, std::string_view what, int64_t least,
                         int64_t most) const {
    const int64_t value = TRY(evaluate(expression, shapes_));
    if (value >= least && value <= most) return value;
    return refused(fmt::format("{} of {}: it must be {} to {}", what, value, least, most));
  }

  Result<LaunchArgument> argument_of(const LaunchLine::Argument& argument) const {
    const auto tensor = [&](std::string_view what, size_t count) -> Result<LaunchArgument> {
      if (argument.tensor < static_cast<int64_t>(count)) {
        return LaunchArgument{argument.kind, argument.tensor};
      }
      return refused(
          fmt::format("there is no tensor {}{}; there are {}", what, argument.tensor, count));
    };
    switch (argument.kind) {
      case Kind::input:
        return tensor("in", shapes_.inputs.size());
      case Kind::output:
        return tensor("out", shapes_.outputs.size());
      case Kind::scratch:
        return LaunchArgument{
            Kind::scratch, TRY(within(argument.expression, "scratch offset", 0, scratch_bytes_))};
      case Kind::integer:
        break;
    }
    return LaunchArgument{Kind::integer, TRY(evaluate(argument.expression, shapes_))};
  }

  const LaunchShapes& shapes_;
  const LaunchLimits& limits_;
  int64_t scratch_bytes_;
};

Result<LaunchPlan> plan_section(const LaunchSection& section, const LaunchShapes& shapes,
                                const LaunchLimits& limits) {
  LaunchPlan plan;
  if (!section.scratch.empty()) {
    plan.scratch_bytes = TRY(evaluate(section.scratch, shapes));
    if (plan.scratch_bytes < 0 || plan.scratch_bytes > limits.scratch_bytes_max) {
      return refused(fmt::format("scratch of {} bytes: it must be 0 to {}", plan.scratch_bytes,
                                 limits.scratch_bytes_max));
    }
  }
  const LinePlanner planner(shapes, limits, plan.scratch_bytes);
  for (const LaunchLine& line : section.launches) {
    Launch launch = TRY(planner.run(line).context(fmt::format("line {}", line.number)));
    if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) continue;
    plan.launches.push_back(std::move(launch));
  }
  return plan;
}

}  // namespace

std::vector<std::string> LaunchScript::kernels() const {
  std::vector<std::string> names;
  for (const LaunchSection& section : sections) {
    for (const LaunchLine& line : section.launches) names.push_back(line.kernel);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<LaunchPlan> plan_launches(const LaunchScript& script, const LaunchShapes& shapes,
                                 const LaunchLimits& limits) {
  for (const LaunchSection& section : script.sections) {
    if (!section.condition.empty() && TRY(evaluate(section.condition, shapes)) == 0) continue;
    return plan_section(section, shapes, limits);
  }
  return refused("no `// ke:case` line is for tensors of these shapes");
}

}  // namespace ke::target
