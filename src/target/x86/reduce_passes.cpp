// SPDX-License-Identifier: Apache-2.0
#include "target/x86/reduce_passes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"

namespace ke::x86 {

using ir::DType;
using ir::FusedStage;

RowPasses::RowPasses(PrintContext& context, const ReducePlan& plan)
    : context_(context), kernel_(context.kernel), plan_(plan) {
  row_variables_ = axis_variables(context, kernel_.rows);
  for (const FusedStage& stage : kernel_.stages) {
    variables_.push_back(axis_variables(context, axes_of(kernel_, stage)));
  }
}

void RowPasses::print_row_axes(target::CodeWriter& out) const {
  int64_t below = plan_.rows;
  for (size_t k = 0; k < kernel_.rows.size(); ++k) {
    below /= kernel_.rows[k].extent;
    std::string text = below == 1 ? "row" : fmt::format("row / {}", below);
    if (k > 0) text += fmt::format(" % {}", kernel_.rows[k].extent);
    out.line(fmt::format("[[maybe_unused]] const int64_t {} = {};", row_variables_[k], text));
  }
}

std::string RowPasses::result_name(size_t s) const {
  return context_.tensor(stage(s).output).name + "_acc";
}

DType RowPasses::result_dtype(size_t s) const {
  if (is_position(stage(s).reduce)) return accumulator_dtype(stage(s));
  return total_dtype(stage(s), plan_.unroll * lane_of(s).width);
}

std::string RowPasses::position_name(size_t s) const {
  return context_.tensor(stage(s).output).name + "_at";
}

RowPasses::Lane RowPasses::lane_of(size_t s) const {
  Lane lane;
  lane.axis = plan_.lane_axis[s];
  KE_ASSERT(lane.axis >= 0);
  const auto k = static_cast<size_t>(lane.axis);
  lane.variable = variables_[s][k];
  lane.extent = axes_of(kernel_, stage(s))[k].extent;
  lane.width = lane.extent >= plan_.lanes ? plan_.lanes : 1;
  return lane;
}

std::vector<AxisBinding> RowPasses::bindings(size_t s, int lane_axis) const {
  std::vector<AxisBinding> result;
  for (size_t k = 0; k < variables_[s].size(); ++k) {
    result.push_back({variables_[s][k], static_cast<int>(k) == lane_axis});
  }
  return result;
}

void RowPasses::hold_values(VectorPrinter& printer) const {
  for (const ir::TensorId id : row_values(kernel_)) {
    printer.hold(id, {context_.tensor(id).name + "_row", false});
  }
}

// Loops over the inner axes that are not the lanes; returns how many were opened.
int RowPasses::open_loops(target::CodeWriter& out, size_t s, int lane_axis,
                          const PassRange& range) const {
  const std::vector<ir::Axis> axes = axes_of(kernel_, stage(s));
  const size_t outermost = kernel_.rows.size();
  int opened = 0;
  for (size_t k = outermost; k < axes.size(); ++k) {
    if (static_cast<int>(k) == lane_axis) continue;
    const bool part = k == outermost && !range.whole();
    out.open(fmt::format("for (int64_t {0} = {1}; {0} < {2}; ++{0})", variables_[s][k],
                         part ? range.first : "0",
                         part ? range.last : std::to_string(axes[k].extent)));
    ++opened;
  }
  return opened;
}

void RowPasses::print_bounds(target::CodeWriter& out, const Lane& lane,
                             const PassRange& range) const {
  const bool part = lane.axis == static_cast<int>(kernel_.rows.size()) && !range.whole();
  if (part) {
    out.line(fmt::format("const int64_t first = {}, last = {};", range.first, range.last));
  } else {
    out.line(fmt::format("constexpr int64_t first = 0, last = {};", lane.extent));
  }
}

// `const auto name = [&](int64_t i) { … return value; };`, the body at one point or vector.
void RowPasses::print_term(target::CodeWriter& out, size_t s, const Lane& lane, int width,
                           std::string_view name) {
  VectorPrinter printer(context_, width, bindings(s, width > 1 ? lane.axis : -1));
  hold_values(printer);
  const DType dtype = accumulator_dtype(stage(s));
  Value value = printer.print_cast(printer.print(stage(s).body), dtype);
  if (width > 1) value = printer.as_vector(value);
  if (plan_.kept && plan_.kept->reduction == s) {
    const FusedStage& holder = stage(plan_.kept->map);
    printer.store(holder.output, holder.store, value);
  }
  out.lines(printer.invariant());
  out.open(
      fmt::format("const auto {} = [&]([[maybe_unused]] int64_t {}) "
                  "__attribute__((always_inline))",
                  name, lane.variable));
  out.lines(printer.statements());
  out.line(fmt::format("return {};", value.text));
  out.close(";");
}

// Several accumulators over the vectors up to `end`, added to `total` as a tree.
void RowPasses::print_vector_loop(target::CodeWriter& out, size_t s, const Lane& lane) {
  const DType dtype = accumulator_dtype(stage(s));
  const std::string type = vector_type(context_, dtype, lane.width);
  const Value zero{identity_of(stage(s).reduce, dtype), dtype, false};
  const std::string start = splat_value(context_, zero, lane.width).text;
  const std::string& i = lane.variable;
  const auto join = [&](const std::string& a, const std::string& b) {
    return combined(context_, stage(s), lane.width, a, b);
  };
  std::vector<std::string> names;
  for (int64_t u = 0; u < plan_.unroll; ++u) {
    names.push_back(fmt::format("partial{}", u));
    out.line(fmt::format("{} {} = {};", type, names.back(), start));
  }
  const int64_t step = plan_.unroll * lane.width;
  out.open(fmt::format("for (; {0} + {1} <= end; {0} += {1})", i, step));
  for (int64_t u = 0; u < plan_.unroll; ++u) {
    const std::string at = u == 0 ? i : fmt::format("{} + {}", i, u * lane.width);
    const std::string& name = names[static_cast<size_t>(u)];
    out.line(fmt::format("{} = {};", name, join(name, fmt::format("term({})", at))));
  }
  out.close();
  if (plan_.unroll > 1) {
    out.open(fmt::format("for (; {0} + {1} <= end; {0} += {1})", i, lane.width));
    out.line(fmt::format("partial0 = {};", join("partial0", fmt::format("term({})", i))));
    out.close();
  }
  while (names.size() > 1) {  // halve
    const size_t half = names.size() / 2;
    for (size_t u = 0; u < half; ++u) {
      out.line(fmt::format("{} = {};", names[u], join(names[u], names[u + half])));
    }
    names.resize(half);
  }
  const Value joining =
      cast_value(context_, {"partial0", dtype, true}, result_dtype(s), lane.width);
  out.line(fmt::format("total = {};", join("total", joining.text)));
}

// The vectors of [first, last), in runs where the sum is long.
void RowPasses::print_vectors(target::CodeWriter& out, size_t s, const Lane& lane) {
  const int64_t run = kRun * plan_.unroll * lane.width;
  const bool runs = lane.extent > run && is_floating(accumulator_dtype(stage(s))) &&
                    stage(s).reduce == ir::ReduceOp::sum;
  if (runs) {
    const std::string& i = lane.variable;
    out.line("// Short runs: a large term swallows what follows it.");
    out.open(fmt::format("while ({} + {} <= last)", i, lane.width));
    out.line(fmt::format("const int64_t end = {0} + {1} < last ? {0} + {1} : last;", i, run));
  } else {
    out.open("");
    out.line("const int64_t end = last;");
  }
  print_vector_loop(out, s, lane);
  out.close();
}

void RowPasses::print_reduction(target::CodeWriter& out, size_t s, const PassRange& range) {
  if (is_position(stage(s).reduce)) return print_positions(out, s, range);
  const Lane lane = lane_of(s);
  const DType dtype = result_dtype(s);
  const std::string identity = identity_of(stage(s).reduce, dtype);
  const std::string& i = lane.variable;
  out.line(fmt::format("{} {} = {};", target::compute_type(dtype), result_name(s), identity));
  out.open("");
  if (lane.width > 1) {
    const std::string start = splat_value(context_, {identity, dtype, false}, lane.width).text;
    out.line(fmt::format("{} total = {};", vector_type(context_, dtype, lane.width), start));
  }
  const int opened = open_loops(out, s, lane.axis, range);
  print_bounds(out, lane, range);
  const bool rest = lane.width == 1 || lane.extent % lane.width != 0;
  if (lane.width > 1) print_term(out, s, lane, lane.width, "term");
  if (rest) print_term(out, s, lane, 1, "single");
  out.line(fmt::format("int64_t {} = first;", i));
  if (lane.width > 1) print_vectors(out, s, lane);
  if (rest) {
    out.open(fmt::format("for (; {0} < last; ++{0})", i));
    out.line(
        fmt::format("{0} = {1};", result_name(s),
                    combined(context_, stage(s), 1, result_name(s), fmt::format("single({})", i))));
    out.close();
  }
  for (int k = 0; k < opened; ++k) out.close();
  if (lane.width > 1) {
    const std::string lanes = across_lanes(context_, stage(s), lane.width, {"total", dtype, true});
    out.line(fmt::format("{0} = {1};", result_name(s),
                         combined(context_, stage(s), 1, result_name(s), lanes)));
  }
  out.close();
}

// --- argmax and argmin --------------------------------------------------------------------------

// The row-major position over the inner axes, from their variables.
std::string RowPasses::flat_position(size_t s) const {
  const std::vector<ir::Axis> axes = axes_of(kernel_, stage(s));
  std::string text;
  int64_t below = product_of(stage(s).inner);
  for (size_t k = kernel_.rows.size(); k < axes.size(); ++k) {
    below /= axes[k].extent;
    text += (text.empty() ? "" : " + ") + variables_[s][k] +
            (below == 1 ? "" : fmt::format(" * {}", below));
  }
  return text;
}

void RowPasses::print_position_lanes(target::CodeWriter& out, size_t s, const Lane& lane) {
  out.line("const auto value = term(" + lane.variable + ");");
  out.line(fmt::format("const auto better = {};", replaces(stage(s), "value", "best", true)));
  out.line("best = better ? value : best;");
  const bool wide = bytes_of(accumulator_dtype(stage(s))) == 8;
  out.line(fmt::format("where = better ? ({})({}) + lanes : where;", wide ? "int64_t" : "int32_t",
                       flat_position(s)));
}

// The first extreme among the lanes, joined with the scalar one in result and position.
void RowPasses::merge_lanes(target::CodeWriter& out, size_t s, int width) const {
  const std::string top = result_name(s), at = position_name(s);
  out.open(fmt::format("for (int lane = 0; lane < {}; ++lane)", width));
  out.line("const auto value = best[lane];");
  out.line(fmt::format("const bool same = value == {0} || (value != value && {0} != {0});", top));
  out.open(fmt::format("if ({} || (same && where[lane] < {}))",
                       replaces(stage(s), "value", top, false), at));
  out.line(fmt::format("{} = value;", top));
  out.line(fmt::format("{} = where[lane];", at));
  out.close();
  out.close();
}

void RowPasses::print_positions(target::CodeWriter& out, size_t s, const PassRange& range) {
  Lane lane = lane_of(s);
  const DType dtype = accumulator_dtype(stage(s));
  const bool vectors =
      bytes_of(dtype) >= 4 && lane.width > 1 && product_of(stage(s).inner) < (int64_t{1} << 31);
  if (!vectors) lane.width = 1;
  const std::string& i = lane.variable;
  const std::string start = range.whole() ? "0" : range.first;
  const std::string identity = identity_of(stage(s).reduce, dtype);
  out.line(fmt::format("{} {} = {};", target::compute_type(dtype), result_name(s), identity));
  out.line(fmt::format("int64_t {} = {};", position_name(s), start));
  out.open("");
  if (vectors) {
    const DType index = bytes_of(dtype) == 8 ? DType::int64 : DType::int32;
    const std::string positions = vector_type(context_, index, lane.width);
    context_.helpers.insert("iota:" + positions);
    out.line(fmt::format("{} best = {};", vector_type(context_, dtype, lane.width),
                         splat_value(context_, {identity, dtype, false}, lane.width).text));
    out.line(fmt::format("const {0} lanes = lane_of_{0};", positions));
    out.line(
        fmt::format("{} where = ({})({}) + lanes;", positions, target::compute_type(index), start));
  }
  const int opened = open_loops(out, s, lane.axis, range);
  print_bounds(out, lane, range);
  out.line(fmt::format("int64_t {} = first;", i));
  if (vectors) {
    print_term(out, s, lane, lane.width, "term");
    out.open(fmt::format("for (; {0} + {1} <= last; {0} += {1})", i, lane.width));
    print_position_lanes(out, s, lane);
    out.close();
  }
  print_term(out, s, lane, 1, "single");
  out.open(fmt::format("for (; {0} < last; ++{0})", i));
  out.line(fmt::format("const auto value = single({});", i));
  out.open(fmt::format("if ({})", replaces(stage(s), "value", result_name(s), false)));
  out.line(fmt::format("{} = value;", result_name(s)));
  out.line(fmt::format("{} = {};", position_name(s), flat_position(s)));
  out.close();
  out.close();
  for (int k = 0; k < opened; ++k) out.close();
  if (vectors) merge_lanes(out, s, lane.width);
  out.close();
}

// --- Values of a row, and maps ------------------------------------------------------------------

void RowPasses::keep_value(target::CodeWriter& out, size_t s, const Value& value, bool store) {
  const ir::TensorId id = stage(s).output;
  const Value cast = cast_value(context_, value, context_.tensor(id).dtype, 1);
  const std::string name = context_.tensor(id).name + "_row";
  out.line(fmt::format("[[maybe_unused]] const {} {} = {};", target::compute_type(cast.dtype), name,
                       cast.text));
  if (!store || is_internal(kernel_, id)) return;
  VectorPrinter printer(context_, 1, bindings(s, -1));
  printer.store(id, stage(s).store, {name, cast.dtype, false});
  out.lines(printer.statements());
}

void RowPasses::print_result(target::CodeWriter& out, size_t s, bool store) {
  const bool position = is_position(stage(s).reduce);
  const Value value{position ? position_name(s) : result_name(s),
                    position ? DType::int64 : result_dtype(s), false};
  keep_value(out, s, value, store);
}

void RowPasses::print_row_value(target::CodeWriter& out, size_t s, bool store) {
  VectorPrinter printer(context_, 1, bindings(s, -1));
  hold_values(printer);
  const ir::Expr& body = *stage(s).body;
  const bool product = body.kind == ir::Expr::Kind::binary && body.binary == ir::BinaryOp::mul;
  Value value = printer.print(stage(s).body);
  if (product) value = VectorPrinter::rounded(value);
  out.lines(printer.statements());
  keep_value(out, s, value, store);
}

Result<void> RowPasses::print_map(target::CodeWriter& out, size_t s, const PassRange& range) {
  if (is_internal(kernel_, stage(s).output)) {
    return Error{
        Errc::unavailable,
        fmt::format("kernel {} keeps more than one value a row in registers", kernel_.name)};
  }
  const Lane lane = lane_of(s);
  const std::string& i = lane.variable;
  out.open("");
  const int opened = open_loops(out, s, lane.axis, range);
  print_bounds(out, lane, range);
  out.line(fmt::format("int64_t {} = first;", i));
  if (lane.width > 1) {
    VectorPrinter printer(context_, lane.width, bindings(s, lane.axis));
    hold_values(printer);
    printer.store(stage(s).output, stage(s).store, printer.print(stage(s).body),
                  plan_.streaming ? StoreKind::streaming : StoreKind::plain);
    out.lines(printer.invariant());
    if (plan_.unroll > 1) out.line("#pragma GCC unroll 2");
    out.open(fmt::format("for (; {0} + {1} <= last; {0} += {1})", i, lane.width));
    out.lines(printer.statements());
    out.close();
  }
  if (lane.width == 1 || lane.extent % lane.width != 0) {
    VectorPrinter printer(context_, 1, bindings(s, -1));
    hold_values(printer);
    printer.store(stage(s).output, stage(s).store, printer.print(stage(s).body));
    out.open(fmt::format("for (; {0} < last; ++{0})", i));
    out.lines(printer.statements());
    out.close();
  }
  for (int k = 0; k < opened; ++k) out.close();
  out.close();
  return {};
}

}  // namespace ke::x86
