// SPDX-License-Identifier: Apache-2.0
//
// Reductions with the lanes along a row axis: a task is a tile of that axis. Accumulators and
// values of the rows are arrays of one element a row of the tile, so that the reduced axes are
// outer loops and memory is walked contiguously.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/x86/reduce_plan.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {
namespace {

using ir::DType;
using ir::FusedKernel;
using ir::FusedStage;

// Sums of up to so many terms are one run, as losses have little room to add up in them.
constexpr int64_t kShort = 128;

// What an array of row values stores: 16-bit floats are kept as float.
DType kept_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

class TilePrinter {
 public:
  TilePrinter(PrintContext& context, const ReducePlan& plan)
      : context_(context), kernel_(context.kernel), plan_(plan) {
    row_variables_ = axis_variables(context, kernel_.rows);
    lane_ = row_variables_[static_cast<size_t>(plan.row_axis)];
    extent_ = kernel_.rows[static_cast<size_t>(plan.row_axis)].extent;
  }

  Result<KernelCode> run() {
    const ArgumentBlock block = argument_block(context_, false);
    out_.open(
        fmt::format("static void {}([[maybe_unused]] int64_t task, void* argument)", kernel_.name));
    out_.lines(block.unpack);
    print_tile();
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const FusedStage& stage = kernel_.stages[s];
      if (!stage.origin.empty()) out_.line("// " + stage.origin.substr(0, 90));
      switch (kind_of(stage)) {
        case StageKind::reduction:
          print_reduction(s);
          break;
        case StageKind::row_value:
          print_row_value(s);
          break;
        case StageKind::map:
          TRY(print_map(s));
          break;
      }
    }
    if (plan_.streaming) out_.line("__builtin_ia32_sfence();");
    out_.close();
    KernelCode code;
    code.functions = block.declaration + out_.take();
    code.launch =
        declare_arguments(block) +
        launch_tasks(context_, block, kernel_.name, std::to_string(plan_.tasks), plan_.parallel);
    code.helpers = context_.helpers;
    code.schedule = fmt::format(
        "Schedule: vectors of {} rows along {}, accumulators in arrays of {} rows; {} tasks {}.{}",
        plan_.lanes, kernel_.rows[static_cast<size_t>(plan_.row_axis)].name, plan_.tile,
        plan_.tasks, plan_.parallel ? "over the threads" : "on one thread",
        plan_.streaming ? " Stores pass the caches by." : "");
    return code;
  }

 private:
  void print_tile() {
    out_.line(fmt::format("constexpr int64_t kTile = {}, kTiles = {}, kExtent = {};", plan_.tile,
                          plan_.tiles, extent_));
    out_.line("const int64_t first = task % kTiles * kTile;");
    out_.line(extent_ % plan_.tile == 0
                  ? "const int64_t last = first + kTile;"
                  : "const int64_t last = first + kTile < kExtent ? first + kTile : kExtent;");
    out_.line("[[maybe_unused]] const int64_t outer = task / kTiles;");
    int64_t below = plan_.outer;
    bool outermost = true;
    for (size_t k = 0; k < kernel_.rows.size(); ++k) {
      if (static_cast<int>(k) == plan_.row_axis) continue;
      below /= kernel_.rows[k].extent;
      std::string text = below == 1 ? "outer" : fmt::format("outer / {}", below);
      if (!outermost) text += fmt::format(" % {}", kernel_.rows[k].extent);
      out_.line(fmt::format("const int64_t {} = {};", row_variables_[k], text));
      outermost = false;
    }
  }

  std::string name_of(size_t s) const { return context_.tensor(kernel_.stages[s].output).name; }

  std::vector<AxisBinding> bindings(const FusedStage& stage, bool vector) const {
    std::vector<AxisBinding> result;
    const std::vector<std::string> names = axis_variables(context_, axes_of(kernel_, stage));
    for (size_t k = 0; k < names.size(); ++k) {
      result.push_back({names[k], vector && static_cast<int>(k) == plan_.row_axis});
    }
    return result;
  }

  // Loads of row values that the stage reads, at the head of a loop over the lanes.
  void hold_values(target::CodeWriter& out, VectorPrinter& printer, const FusedStage& stage,
                   int width) {
    for (const ir::TensorId id : row_values(kernel_)) {
      const ir::Tensor& tensor = context_.tensor(id);
      if (!reads(stage, id)) continue;
      const std::string name = tensor.name + (width > 1 ? "_lanes" : "_one");
      printer.hold(id, {name, width > 1});
      const std::string at = fmt::format("{}_row + ({} - first)", tensor.name, lane_);
      const DType kept = kept_dtype(tensor.dtype);
      out.line(fmt::format("const {} {} = {};", vector_type(context_, tensor.dtype, width), name,
                           load_text(kept, width, at)));
    }
  }

  std::string load_text(DType dtype, int width, const std::string& at) {
    if (width == 1) return "*(" + at + ")";
    const std::string type = memory_type(dtype, width);
    context_.helpers.insert("load:" + type);
    return fmt::format("load_{}({})", type, at);
  }

  std::string store_text(DType dtype, int width, const std::string& at, const std::string& value) {
    if (width == 1) return fmt::format("*({}) = {};", at, value);
    const std::string type = memory_type(dtype, width);
    context_.helpers.insert("store:" + type);
    return fmt::format("store_{}({}, {});", type, at, value);
  }

  void declare_array(DType dtype, const std::string& name) {
    out_.line(fmt::format("alignas(64) {} {}[kTile];", target::storage_type(dtype), name));
  }

  int open_inner(const FusedStage& stage) {
    const std::vector<std::string> names = axis_variables(context_, axes_of(kernel_, stage));
    for (size_t k = 0; k < stage.inner.size(); ++k) {
      open_loop(names[kernel_.rows.size() + k], "0", std::to_string(stage.inner[k].extent));
    }
    return static_cast<int>(stage.inner.size());
  }

  void close(int count) {
    for (int k = 0; k < count; ++k) out_.close();
  }

  // `body(width)` prints what one step of the loop over the tile does: vectors, then single rows.
  template <class Body>
  void print_tile_loop(const Body& body) {
    out_.line(fmt::format("int64_t {} = first;", lane_));
    out_.line("#pragma GCC unroll 4");
    out_.open(fmt::format("for (; {0} + {1} <= last; {0} += {1})", lane_, plan_.lanes));
    target::CodeWriter vector;
    body(vector, plan_.lanes);
    out_.lines(vector.text());
    out_.close();
    if (extent_ % plan_.lanes == 0 && plan_.tile % plan_.lanes == 0) return;
    out_.open(fmt::format("for (; {0} < last; ++{0})", lane_));
    target::CodeWriter single;
    body(single, 1);
    out_.lines(single.text());
    out_.close();
  }

  Value print_body(target::CodeWriter& out, const FusedStage& stage, int width, DType dtype) {
    VectorPrinter printer(context_, width, bindings(stage, width > 1));
    hold_values(out, printer, stage, width);
    Value value = printer.print(stage.body);
    value = printer.print_cast(value, dtype);
    if (width > 1) value = printer.as_vector(value);
    out.lines(printer.invariant());
    out.lines(printer.statements());
    return value;
  }

  void fill(const std::string& array, const std::string& value) {
    out_.line(fmt::format("for (int64_t i = 0; i < kTile; ++i) {}[i] = {};", array, value));
  }

  void print_reduction(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    if (is_position(stage.reduce)) return print_positions(s);
    const DType dtype = accumulator_dtype(stage);
    const DType total = total_dtype(stage, kShort / kRun);
    const std::string acc = name_of(s) + "_acc";
    declare_array(total, acc);
    fill(acc, identity_of(stage.reduce, total));
    const int64_t count = product_of(stage.inner);
    if (stage.reduce == ir::ReduceOp::sum && is_floating(dtype) && count > kShort) {
      print_sum_in_runs(s, acc);
    } else {
      const int opened = open_inner(stage);
      print_accumulation(stage, acc, dtype);
      close(opened);
    }
    finish_value(s, acc, total);
  }

  void print_accumulation(const FusedStage& stage, const std::string& acc, DType dtype) {
    print_tile_loop([&](target::CodeWriter& out, int width) {
      const Value value = print_body(out, stage, width, dtype);
      const std::string at = fmt::format("{} + ({} - first)", acc, lane_);
      const std::string sum =
          combined(context_, stage, width, load_text(dtype, width, at), value.text);
      out.line(store_text(dtype, width, at, sum));
    });
  }

  void open_loop(const std::string& variable, const std::string& first, const std::string& last) {
    out_.open(fmt::format("for (int64_t {0} = {1}; {0} < {2}; ++{0})", variable, first, last));
  }

  // Long sums are added up in runs, and the runs to the total.
  void print_sum_in_runs(size_t s, const std::string& acc) {
    const FusedStage& stage = kernel_.stages[s];
    const std::vector<std::string> names = axis_variables(context_, axes_of(kernel_, stage));
    // Steps along one axis make a run: axes within it are walked whole, axes around it run by run.
    size_t cut = stage.inner.size() - 1;
    int64_t within = 1;
    for (; cut > 0 && within * stage.inner[cut].extent <= kRun; --cut) {
      within *= stage.inner[cut].extent;
    }
    const int64_t extent = stage.inner[cut].extent, longest = std::max<int64_t>(1, kRun / within);
    const int64_t runs = (extent + longest - 1) / longest, step = (extent + runs - 1) / runs;
    const DType dtype = accumulator_dtype(stage);
    const std::string run = name_of(s) + "_run";
    declare_array(dtype, run);
    const auto variable = [&](size_t k) { return names[kernel_.rows.size() + k]; };
    for (size_t k = 0; k < cut; ++k) {
      open_loop(variable(k), "0", std::to_string(stage.inner[k].extent));
    }
    out_.open(fmt::format("for (int64_t begin = 0; begin < {}; begin += {})", extent, step));
    out_.line(
        fmt::format("const int64_t end = begin + {0} < {1} ? begin + {0} : {1};", step, extent));
    fill(run, identity_of(stage.reduce, dtype));
    open_loop(variable(cut), "begin", "end");
    for (size_t k = cut + 1; k < stage.inner.size(); ++k) {
      open_loop(variable(k), "0", std::to_string(stage.inner[k].extent));
    }
    print_accumulation(stage, run, dtype);
    close(static_cast<int>(stage.inner.size() - cut));
    out_.line(fmt::format("for (int64_t i = 0; i < kTile; ++i) {}[i] += {}[i];", acc, run));
    close(static_cast<int>(cut) + 1);
  }

  // The accumulator as a value of the tensor's dtype: under its final name, stored if asked for.
  void finish_value(size_t s, const std::string& acc, DType dtype) {
    const FusedStage& stage = kernel_.stages[s];
    const ir::Tensor& tensor = context_.tensor(stage.output);
    const std::string name = tensor.name + "_row";
    const bool same = tensor.dtype == dtype;
    if (same) {
      out_.line(fmt::format("[[maybe_unused]] {}* const {} = {};", target::storage_type(dtype),
                            name, acc));
    } else {
      declare_array(kept_dtype(tensor.dtype), name);
      out_.open(fmt::format("for (int64_t i = 0; i < last - first; ++i)"));
      const Value element{fmt::format("{}[i]", acc), dtype, false};
      out_.line(
          fmt::format("{}[i] = {};", name, cast_value(context_, element, tensor.dtype, 1).text));
      out_.close();
    }
    if (is_internal(kernel_, stage.output)) return;
    print_block([&] {
      print_tile_loop([&](target::CodeWriter& out, int width) {
        VectorPrinter printer(context_, width, bindings(stage, width > 1));
        const std::string at = fmt::format("{} + ({} - first)", name, lane_);
        const DType kept = kept_dtype(tensor.dtype);
        const std::string value = context_.fresh("value_");
        out.line(fmt::format("const {} {} = {};", vector_type(context_, tensor.dtype, width), value,
                             load_text(kept, width, at)));
        printer.store(stage.output, stage.store, {value, tensor.dtype, width > 1});
        out.lines(printer.invariant());
        out.lines(printer.statements());
      });
    });
  }

  template <class Print>
  void print_block(const Print& print) {
    out_.open("");
    print();
    out_.close();
  }

  void print_row_value(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const ir::Tensor& tensor = context_.tensor(stage.output);
    const std::string name = tensor.name + "_row";
    declare_array(kept_dtype(tensor.dtype), name);
    const bool store = !is_internal(kernel_, stage.output);
    print_block([&] {
      print_tile_loop([&](target::CodeWriter& out, int width) {
        VectorPrinter printer(context_, width, bindings(stage, width > 1));
        hold_values(out, printer, stage, width);
        Value value = printer.print_cast(printer.print(stage.body), tensor.dtype);
        if (width > 1) value = printer.as_vector(value);
        if (store) printer.store(stage.output, stage.store, value);
        out.lines(printer.invariant());
        out.lines(printer.statements());
        const std::string at = fmt::format("{} + ({} - first)", name, lane_);
        out.line(store_text(kept_dtype(tensor.dtype), width, at, value.text));
      });
    });
  }

  Result<void> print_map(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    if (is_internal(kernel_, stage.output)) {
      return Error{
          Errc::unavailable,
          fmt::format("kernel {} keeps more than one value a row in registers", kernel_.name)};
    }
    const int opened = open_inner(stage);
    print_tile_loop([&](target::CodeWriter& out, int width) {
      VectorPrinter printer(context_, width, bindings(stage, width > 1));
      hold_values(out, printer, stage, width);
      const bool streaming = plan_.streaming && width > 1;
      printer.store(stage.output, stage.store, printer.print(stage.body),
                    streaming ? StoreKind::streaming : StoreKind::plain);
      out.lines(printer.invariant());
      out.lines(printer.statements());
    });
    close(opened);
    return {};
  }

  // argmax and argmin: one row after the other inside the loop over positions, in plain code that
  // the compiler vectorises.
  void print_positions(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const DType dtype = accumulator_dtype(stage);
    const std::string best = name_of(s) + "_acc", at = name_of(s) + "_at";
    const bool narrow = product_of(stage.inner) < (int64_t{1} << 31) && bytes_of(dtype) == 4;
    const DType index = narrow ? DType::int32 : DType::int64;
    declare_array(dtype, best);
    declare_array(index, at);
    fill(best, identity_of(stage.reduce, dtype));
    fill(at, "0");
    out_.open("");
    out_.line(fmt::format("{} position = 0;", target::compute_type(index)));
    const int opened = open_inner(stage);
    print_tile_loop([&](target::CodeWriter& out, int width) {
      const bool vector = width > 1 && bytes_of(dtype) >= 4;
      if (width > 1 && !vector) {
        out.line("break;  // narrow types go one by one");
        return;
      }
      print_position_step(out, stage, best, at, index, width);
    });
    if (bytes_of(dtype) < 4 && extent_ % plan_.lanes == 0 && plan_.tile % plan_.lanes == 0) {
      out_.open(fmt::format("for (; {0} < last; ++{0})", lane_));
      target::CodeWriter single;
      print_position_step(single, stage, best, at, index, 1);
      out_.lines(single.text());
      out_.close();
    }
    out_.line("++position;");
    close(opened);
    out_.close();
    finish_value(s, at, index);
  }

  void print_position_step(target::CodeWriter& out, const FusedStage& stage,
                           const std::string& best, const std::string& at, DType index, int width) {
    const DType dtype = accumulator_dtype(stage);
    const Value value = print_body(out, stage, width, dtype);
    const std::string best_at = fmt::format("{} + ({} - first)", best, lane_);
    const std::string where_at = fmt::format("{} + ({} - first)", at, lane_);
    out.line(fmt::format("const auto value = {};", value.text));
    out.line(fmt::format("const auto top = {};", load_text(dtype, width, best_at)));
    out.line(fmt::format("const auto better = {};", replaces(stage, "value", "top", width > 1)));
    out.line(store_text(dtype, width, best_at, "better ? value : top"));
    const std::string where = load_text(index, width, where_at);
    const std::string position =
        width > 1 ? splat_value(context_, {"position", index, false}, width).text : "position";
    out.line(store_text(index, width, where_at, fmt::format("better ? {} : {}", position, where)));
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  const ReducePlan& plan_;
  std::vector<std::string> row_variables_;
  std::string lane_;  // the variable of the lane axis
  int64_t extent_ = 0;
  target::CodeWriter out_;
};

}  // namespace

Result<KernelCode> print_row_lanes(PrintContext& context, const ReducePlan& plan) {
  return TilePrinter(context, plan).run();
}

}  // namespace ke::x86
