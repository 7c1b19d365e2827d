// SPDX-License-Identifier: Apache-2.0
//
// A map kernel takes BLOCK elements of the flattened rows a program. A reduce kernel takes a tile
// of ROWS rows by BLOCK inner elements: where BLOCK holds all of them the row stays in registers,
// else every stage walks the row in a loop. Reductions that follow each other share a walk. A scan
// kernel walks the row once: each block is scanned and meets what is carried from those before it.
#include "target/triton/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "target/access.hpp"
#include "target/scan_shape.hpp"
#include "target/schedule.hpp"
#include "target/triton/python.hpp"
#include "target/triton/reductions.hpp"
#include "target/triton/scalar_printer.hpp"

namespace ke::triton {
namespace {

using ir::Axis;
using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;
using ir::ReduceOp;
using ir::TensorId;

constexpr int64_t kWholeRowMax = 16384;
constexpr int64_t kScanBlock = 4096;
constexpr int64_t kInt32Max = INT32_MAX;
constexpr int64_t kProgramsMin = 64;     // fewer leave most of a device idle
constexpr int64_t kSerialMax = 1 << 16;  // elements of a row that one program walks then
// Blocks that are added up one after the other. Of more, what rounding takes is kept: a term beside
// which others are small (the square of one outlier in a row) would swallow all that follow it.
constexpr int64_t kRun = 16;

int64_t power_above(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

std::vector<int64_t> powers(int64_t low, int64_t high) {
  std::vector<int64_t> values;
  for (int64_t v = low; v <= high; v *= 2) values.push_back(v);
  return values;
}

int64_t inner_extent(const FusedKernel& kernel) {
  int64_t extent = 1;
  for (const FusedStage& stage : kernel.stages) {
    extent = std::max(extent, target::product_of(stage.inner));
  }
  return extent;
}

// Whether neighbours in memory are neighbours along the rows rather than along the inner axes.
bool rows_are_contiguous(const Program& program, const FusedKernel& kernel) {
  double rows = 0, inner = 0;
  for (const FusedStage& stage : kernel.stages) {
    const int count = static_cast<int>(kernel.rows.size() + stage.inner.size());
    const std::vector<double> scores = target::lane_scores(program, stage, count);
    for (size_t axis = 0; axis < scores.size(); ++axis) {
      (axis < kernel.rows.size() ? rows : inner) += scores[axis];
    }
  }
  return rows > inner;
}

bool is_wide(const Program& program, const FusedKernel& kernel) {
  const auto large = [&](TensorId id) { return program.tensor(id).elements() * 2 > kInt32Max; };
  return std::any_of(kernel.reads.begin(), kernel.reads.end(), large) ||
         std::any_of(kernel.writes.begin(), kernel.writes.end(), large);
}

int64_t warps_for(int64_t elements) {
  return std::clamp<int64_t>(power_above(elements / 512), 1, 16);
}

class KernelPrinter {
 public:
  // `backwards`: a scan runs from the end of its axis.
  KernelPrinter(const Program& program, const FusedKernel& kernel, const std::string& name,
                bool backwards)
      : program_(program),
        kernel_(kernel),
        backwards_(backwards),
        choices_(kernel_choices(program, kernel)),
        wide_(is_wide(program, kernel)),
        name_(name),
        scalars_(program, pointers(), body_) {}

  Result<KernelText> print() {
    TRY(check());
    block_ = target::chosen(kernel_, choices_, "block");
    text_.warps = target::chosen(kernel_, choices_, "warps");
    if (kernel_.skeleton == ir::Skeleton::map) {
      map();
    } else {
      TRY(open_rows());
      kernel_.skeleton == ir::Skeleton::scan ? scan() : reduce();
    }
    if (!scalars_.why_not().empty()) return Error{Errc::unavailable, scalars_.why_not()};
    std::vector<std::string> parameters;
    for (const TensorId id : parameters_of(kernel_)) parameters.push_back(pointer(id));
    const bool tiled = kernel_.skeleton != ir::Skeleton::map;
    text_.function = fmt::format("\n@triton.jit\ndef {}({}, {}BLOCK: tl.constexpr):\n{}", name_,
                                 joined(parameters), tiled ? "ROWS: tl.constexpr, " : "", body_);
    return std::move(text_);
  }

 private:
  std::string pointer(TensorId id) const { return program_.tensor(id).name + "_ptr"; }

  std::map<TensorId, std::string> pointers() const {
    std::map<TensorId, std::string> found;
    for (const TensorId id : parameters_of(kernel_)) found[id] = pointer(id);
    return found;
  }

  Result<void> check() const {
    const auto refuse = [](std::string_view why) {
      return Error{Errc::unavailable, std::string(why)};
    };
    if (kernel_.skeleton == ir::Skeleton::contract) return refuse("products are the library's");
    for (const TensorId id : kernel_.reads) {
      if (program_.tensor(id).role == ir::Role::constant) return refuse("it reads a constant");
    }
    std::set<TensorId> whole;  // written so far, more than a value a row
    for (const FusedStage& stage : kernel_.stages) {
      for (const TensorId id : ir_loads(stage)) {
        if (!whole.contains(id) || kernel_.skeleton == ir::Skeleton::scan) continue;
        return refuse("a stage reads what another one of its kernel wrote");
      }
      for (const FusedStage& earlier : kernel_.stages) {
        if (&earlier == &stage) break;
        if (reads_elsewhere(stage, earlier))
          return refuse("it reads at another point than it wrote");
      }
      const bool row_value = stage.reduce != ReduceOp::none || stage.inner.empty();
      if (!row_value) whole.insert(stage.output);
      if (stage.reduce == ReduceOp::argmax || stage.reduce == ReduceOp::argmin) {
        return refuse("positions of extremes are the library's");
      }
      const bool extreme = stage.reduce == ReduceOp::maximum || stage.reduce == ReduceOp::minimum;
      if (extreme && !ir::is_floating(stage.body->dtype)) return refuse("extremes of integers");
      if (target::product_of(stage.inner) == 0) return refuse("it reduces nothing");
    }
    if (target::product_of(kernel_.rows) == 0) return refuse("it computes nothing");
    return {};
  }

  static bool reads_elsewhere(const FusedStage& stage, const FusedStage& earlier) {
    bool found = false;
    ir::walk(stage.body, [&](const ir::Expr& expr) {
      if (expr.kind != ir::Expr::Kind::load || expr.tensor != earlier.output) return;
      const auto alike = [](const ir::ExprPtr& a, const ir::ExprPtr& b) {
        return ir::same(*a, *b);
      };
      found = found || !std::ranges::equal(expr.operands, earlier.store, alike);
    });
    return found;
  }

  static std::set<TensorId> ir_loads(const FusedStage& stage) {
    std::set<TensorId> found;
    ir::walk(stage.body, [&](const ir::Expr& expr) {
      if (expr.kind == ir::Expr::Kind::load) found.insert(expr.tensor);
    });
    return found;
  }

  bool is_written(TensorId id) const {
    return std::find(kernel_.writes.begin(), kernel_.writes.end(), id) != kernel_.writes.end();
  }

  // Variables of the axes from one flat index over them.
  std::vector<AxisBlock> unflattened(const std::vector<Axis>& axes, const std::string& flat,
                                     const std::string& stem, int dimension) {
    std::vector<AxisBlock> blocks;
    int64_t below = target::product_of(axes);
    for (size_t a = 0; a < axes.size(); ++a) {
      const bool outermost = a == 0;
      below /= std::max<int64_t>(axes[a].extent, 1);
      std::string text = below == 1 ? flat : fmt::format("{} // {}", flat, below);
      if (!outermost) text += fmt::format(" % {}", axes[a].extent);
      if (text == flat) {
        blocks.push_back({flat, dimension});
        continue;
      }
      const std::string name = scalars_.fresh(stem);
      scalars_.line(fmt::format("{} = {}", name, text));
      blocks.push_back({name, dimension});
    }
    return blocks;
  }

  std::string start_of(std::string_view count) const {
    return fmt::format("tl.program_id(0){} * {}", wide_ ? ".to(tl.int64)" : "", count);
  }

  void map() {
    const int64_t total = target::product_of(kernel_.rows);
    scalars_.line(fmt::format("index = {} + tl.arange(0, BLOCK)", start_of("BLOCK")));
    const bool whole = total % block_ == 0;
    if (!whole) scalars_.line(fmt::format("mask = index < {}", total));
    const Tile tile{{whole ? "" : "mask"}, {"tl.zeros([BLOCK], tl.int32)"}};
    scalars_.set_axes({}, tile);
    scalars_.set_axes(unflattened(kernel_.rows, "index", "i", 0), tile);
    for (const FusedStage& stage : kernel_.stages) {
      std::string value = scalars_.print(stage.body);
      if (is_written(stage.output)) {
        scalars_.store(stage.output, stage.store, value, tile.zeros[0]);
      }
      const ir::DType dtype = program_.tensor(stage.output).dtype;
      if (compute_dtype(dtype) != dtype) {
        value =
            scalars_.name(fmt::format("tl.cast({}, {}).to(tl.float32)", value, type_text(dtype)));
      }
      scalars_.hold(stage.output, value);
    }
    text_.grid = fmt::format("({},)", (total + block_ - 1) / block_);
    text_.schedule = fmt::format("{} elements a program", block_);
    text_.constants = fmt::format("BLOCK={}", block_);
  }

  Result<void> open_rows() {
    rows_ = target::chosen(kernel_, choices_, "rows");
    const int64_t count = target::product_of(kernel_.rows);
    const int64_t programs = (count + rows_ - 1) / rows_;
    if (programs < kProgramsMin && inner_extent(kernel_) > kSerialMax) {
      return Error{Errc::unavailable, "too few rows to keep a device busy"};
    }
    scalars_.line(fmt::format("row = {} + tl.arange(0, ROWS)[:, None]", start_of("ROWS")));
    if (count % rows_ != 0) {
      row_mask_ = "row_mask";
      scalars_.line(fmt::format("row_mask = row < {}", count));
    }
    row_axes_ = unflattened(kernel_.rows, "row", "r", 0);
    text_.grid = fmt::format("({},)", programs);
    text_.schedule = fmt::format("{} rows by {} elements a program", rows_, block_);
    text_.constants = fmt::format("ROWS={}, BLOCK={}", rows_, block_);
    return {};
  }

  void reduce() {
    for (size_t s = 0; s < kernel_.stages.size();) {
      const size_t end = group_end(s);
      if (kernel_.stages[s].inner.empty()) {
        row_value(kernel_.stages[s]);
      } else {
        walk_group(s, end);
      }
      s = end;
    }
  }

  void scan() {
    const FusedStage& stage = kernel_.stages.front();
    const int64_t extent = stage.inner.front().extent;
    const ir::DType carried = target::carry_dtype(stage), inside = target::block_dtype(stage);
    const std::string identity(identity_of(stage.reduce, ir::is_floating(carried)));
    const std::string carry = scalars_.fresh("carry");
    scalars_.line(
        fmt::format("{} = tl.full([ROWS, 1], {}, {})", carry, identity, type_text(carried)));
    const int64_t blocks = (extent + block_ - 1) / block_;
    if (blocks > 1) {
      scalars_.line(fmt::format("for step in range(0, {}):", blocks));
      scalars_.set_indent(8);
    }
    const std::string step = backwards_ ? fmt::format("({} - step)", blocks - 1) : "step";
    open_inner(stage.inner, blocks > 1 ? step + " * BLOCK + " : "");
    std::string value = fmt::format("tl.cast({}, {})", scalars_.print(stage.body),
                                    type_text(target::scan_dtype(stage)));
    if (inside != target::scan_dtype(stage)) {
      value = fmt::format("tl.cast({}, {})", value, type_text(inside));
    }
    const std::string existing = scalars_.mask_of({0, 1});
    if (!existing.empty()) value = fmt::format("tl.where({}, {}, {})", existing, value, identity);
    const std::string block = scalars_.fresh("block"), here = scalars_.fresh("here");
    scalars_.line(fmt::format("{} = tl.full([ROWS, BLOCK], {}, {})", block, identity,
                              type_text(inside)));
    scalars_.line(fmt::format("{} = {}", block, combined(stage.reduce, block, value)));
    scalars_.line(fmt::format("{} = {}", here,
                              combined(stage.reduce,
                                       fmt::format("tl.cast({}, {})", carry, type_text(inside)),
                                       scanned(stage.reduce, block, backwards_))));
    scalars_.line(fmt::format("{} = {}", carry,
                              combined(stage.reduce, carry,
                                       fmt::format("tl.cast({}, {})",
                                                   collected(stage.reduce, block),
                                                   type_text(carried)))));
    store_scanned(here);
    scalars_.set_indent(4);
  }

  // What comes of a scan's values, each stored where somebody else reads it.
  void store_scanned(std::string value) {
    for (const FusedStage& stage : kernel_.stages) {
      if (!stage.scan) value = scalars_.print(stage.body);
      if (is_written(stage.output)) {
        scalars_.store(stage.output, stage.store, value, "tl.zeros([ROWS, BLOCK], tl.int32)");
      }
      const ir::DType dtype = program_.tensor(stage.output).dtype;
      value = fmt::format("tl.cast({}, {})", value, type_text(dtype));
      if (dtype == ir::DType::boolean) value = fmt::format("({} != 0)", value);
      if (compute_dtype(dtype) != dtype) {
        value = fmt::format("{}.to({})", value, type_text(compute_dtype(dtype)));
      }
      value = scalars_.name(value);
      scalars_.hold(stage.output, value);
    }
  }

  // Stages from s on that share a walk: over the same axes, none needs what another one collects.
  size_t group_end(size_t s) const {
    size_t end = s + 1;
    if (kernel_.stages[s].inner.empty()) return end;
    std::set<TensorId> collected_here;
    if (kernel_.stages[s].reduce != ReduceOp::none) collected_here.insert(kernel_.stages[s].output);
    for (; end < kernel_.stages.size(); ++end) {
      const FusedStage& next = kernel_.stages[end];
      if (!same_extents(next.inner, kernel_.stages[s].inner)) break;
      bool waits = false;
      for (const TensorId id : ir_loads(next)) waits = waits || collected_here.contains(id);
      if (waits) break;
      if (next.reduce != ReduceOp::none) collected_here.insert(next.output);
    }
    return end;
  }

  static bool same_extents(const std::vector<Axis>& a, const std::vector<Axis>& b) {
    return std::ranges::equal(a, b, {}, &Axis::extent, &Axis::extent);
  }

  static std::vector<std::string> zeros() {
    return {"tl.zeros([ROWS, 1], tl.int32)", "tl.zeros([1, BLOCK], tl.int32)"};
  }

  void use_rows_alone() {
    if (!inner_known_.empty()) return;  // the rows' variables are the first of those there
    scalars_.set_axes(row_axes_, {{row_mask_, ""}, zeros()});
  }

  void row_value(const FusedStage& stage) {
    use_rows_alone();
    finish_row(stage, scalars_.print(stage.body), compute_dtype(stage.body->dtype));
  }

  // A block of one value a row, in the tensor's compute type; rounded to the tensor's.
  std::string row_block(const FusedStage& stage, const std::string& value, ir::DType from) const {
    const ir::DType dtype = program_.tensor(stage.output).dtype;
    const bool collected_here = stage.reduce != ReduceOp::none;
    if (dtype == ir::DType::boolean) {
      return fmt::format("{}({} != 0)",
                         collected_here ? "" : "tl.full([ROWS, 1], True, tl.int1) & ", value);
    }
    std::string text = value;
    if (from != dtype) text = fmt::format("tl.cast({}, {})", value, type_text(dtype));
    const ir::DType computed = compute_dtype(dtype);
    if (computed != dtype) text += fmt::format(".to({})", type_text(computed));
    if (collected_here) return text;
    return fmt::format("tl.zeros([ROWS, 1], {}) + {}", type_text(computed), text);
  }

  // Stores where others read it, and holds it for later stages.
  void finish_row(const FusedStage& stage, const std::string& value, ir::DType from) {
    const std::string name = scalars_.fresh("row_value");
    scalars_.line(fmt::format("{} = {}", name, row_block(stage, value, from)));
    if (is_written(stage.output)) {
      scalars_.store(stage.output, stage.store, name, "tl.zeros([ROWS, 1], tl.int32)");
    }
    scalars_.hold(stage.output, name);
  }

  // The inner axes' variables, over a walk's position or over all at once.
  void open_inner(const std::vector<Axis>& inner, const std::string& from) {
    const int64_t extent = target::product_of(inner);
    scalars_.line(
        fmt::format("k = {}tl.arange(0, BLOCK)[None, :]{}", from, wide_ ? ".to(tl.int64)" : ""));
    std::string mask;
    if (extent % block_ != 0) {
      mask = "k_mask";
      scalars_.line(fmt::format("k_mask = k < {}", extent));
    }
    std::vector<AxisBlock> axes = row_axes_;
    for (AxisBlock& block : unflattened(inner, "k", "k", 1)) axes.push_back(std::move(block));
    scalars_.set_axes(std::move(axes), {{row_mask_, mask}, zeros()});
  }

  void walk_group(size_t begin, size_t end) {
    const std::vector<Axis>& inner = kernel_.stages[begin].inner;
    const int64_t extent = target::product_of(inner);
    const bool at_once = extent <= block_;
    std::vector<Accumulator> accumulators;
    for (size_t s = begin; s < end; ++s) accumulators.push_back(open_accumulator(s));
    if (at_once) {
      if (!same_extents(inner_known_, inner)) {
        open_inner(inner, "");
        inner_known_ = inner;
      }
    } else {
      inner_known_.clear();
      scalars_.line(fmt::format("for start in range(0, {}, BLOCK):", extent));
      scalars_.set_indent(8);
      open_inner(inner, "start + ");
    }
    for (size_t s = begin; s < end; ++s) {
      const FusedStage& stage = kernel_.stages[s];
      const std::string value = scalars_.print(stage.body);
      if (stage.reduce == ReduceOp::none) {
        scalars_.store(stage.output, stage.store, value, "tl.zeros([ROWS, BLOCK], tl.int32)");
      } else {
        accumulate(stage, accumulators[s - begin], value);
      }
    }
    if (!at_once) {
      scalars_.set_indent(4);
      use_rows_alone();
    }
    for (size_t s = begin; s < end; ++s) {
      const FusedStage& stage = kernel_.stages[s];
      if (stage.reduce == ReduceOp::none) continue;
      const Accumulator& accumulator = accumulators[s - begin];
      const std::string block = accumulator.lost.empty()
                                    ? accumulator.name
                                    : fmt::format("with_lost({}, {})", accumulator.name,
                                                  accumulator.lost);
      finish_row(stage, collected(stage.reduce, block), compute_dtype(stage.accumulator));
    }
  }

  static bool is_logical(const FusedStage& stage) {
    return stage.reduce == ReduceOp::any || stage.reduce == ReduceOp::all;
  }

  std::string accumulator_type(const FusedStage& stage) const {
    if (is_logical(stage)) return "tl.float32";
    return type_text(compute_dtype(stage.accumulator));
  }

  struct Accumulator {
    std::string name;
    std::string lost;  // what rounding took from a long sum; empty: not kept
  };

  Accumulator open_accumulator(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    if (stage.reduce == ReduceOp::none) return {};
    Accumulator result{scalars_.fresh("sum"), {}};
    const bool floating = ir::is_floating(stage.accumulator) || is_logical(stage);
    const auto open = [&](const std::string& name) {
      scalars_.line(fmt::format("{} = tl.full([ROWS, BLOCK], {}, {})", name,
                                identity_of(stage.reduce, floating), accumulator_type(stage)));
    };
    open(result.name);
    if (stage.reduce == ReduceOp::sum && floating &&
        target::product_of(stage.inner) > kRun * block_) {
      result.lost = scalars_.fresh("lost");
      open(result.lost);
    }
    return result;
  }

  void accumulate(const FusedStage& stage, const Accumulator& into, const std::string& value) {
    const std::string existing = scalars_.mask_of({0, 1});
    std::string text = value;
    if (is_logical(stage)) {
      text = fmt::format("tl.where({} != 0, 1.0, 0.0)", value);
    } else if (compute_dtype(stage.body->dtype) != compute_dtype(stage.accumulator)) {
      text = fmt::format("tl.cast({}, {})", value, accumulator_type(stage));
    }
    if (!existing.empty()) {
      const bool floating = ir::is_floating(stage.accumulator) || is_logical(stage);
      text =
          fmt::format("tl.where({}, {}, {})", existing, text, identity_of(stage.reduce, floating));
    }
    const std::string& name = into.name;
    if (into.lost.empty()) {
      scalars_.line(fmt::format("{} = {}", name, combined(stage.reduce, name, text)));
    } else {
      scalars_.line(fmt::format("{0}, {1} = added({0}, {1}, {2})", name, into.lost, text));
    }
  }

  const Program& program_;
  const FusedKernel& kernel_;
  bool backwards_;
  std::vector<ScheduleChoice> choices_;
  bool wide_;
  std::string name_, body_;
  ScalarPrinter scalars_;
  int64_t block_ = 1, rows_ = 1;
  std::string row_mask_;
  std::vector<AxisBlock> row_axes_;
  std::vector<Axis> inner_known_;  // whose variables are there
  KernelText text_;
};

}  // namespace

std::vector<ScheduleChoice> kernel_choices(const Program& program, const FusedKernel& kernel) {
  const int64_t rows = target::product_of(kernel.rows);
  if (kernel.skeleton == ir::Skeleton::map) {
    const int64_t block = rows >= (int64_t{1} << 20) ? 1024 : 256;
    return {{"block", powers(128, 4096), block, "elements a program"},
            {"warps", powers(1, 16), warps_for(block * 2), "warps a program"}};
  }
  const int64_t inner = inner_extent(kernel);
  const int64_t whole = power_above(inner);
  const bool across = rows_are_contiguous(program, kernel);
  const int64_t block = across                  ? std::min<int64_t>(whole, 32)
                        : kernel.skeleton == ir::Skeleton::scan ? std::min(whole, kScanBlock)
                        : whole <= kWholeRowMax ? whole
                                                : 4096;
  int64_t tile = across ? 64 : std::clamp<int64_t>(1024 / block, 1, 64);
  while (tile > 1 && (tile > power_above(rows) || rows / tile < 4 * kProgramsMin)) tile /= 2;
  std::vector<int64_t> blocks = powers(1, std::min<int64_t>(std::max(whole, block), kWholeRowMax));
  return {{"block", std::move(blocks), block, "elements of a row at once"},
          {"rows", powers(1, 64), tile, "rows a program"},
          {"warps", powers(1, 16), warps_for(block * tile), "warps a program"}};
}

std::vector<TensorId> parameters_of(const FusedKernel& kernel) {
  std::vector<TensorId> found;
  for (const auto* list : {&kernel.writes, &kernel.reads}) {
    for (const TensorId id : *list) {
      if (std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
    }
  }
  return found;
}

Result<KernelText> print_kernel(const Program& program, const FusedKernel& kernel,
                                const std::string& name) {
  if (kernel.skeleton != ir::Skeleton::scan) {
    return KernelPrinter(program, kernel, name, false).print();
  }
  const target::ScanShape shape = target::scan_shape(program, kernel);
  return KernelPrinter(program, shape.kernel, name, shape.backwards).print();
}

}  // namespace ke::triton
