// SPDX-License-Identifier: Apache-2.0
//
// Printing of reduce kernels. One function walks a row in all passes; with a split, one function a
// pass. A row beyond the last is the last one again, so that all threads of a block meet at
// barriers; what they store is the same.
#include <fmt/format.h>

#include <algorithm>

#include "target/access.hpp"
#include "target/cuda/elements.hpp"
#include "target/cuda/reduce_plan.hpp"

namespace ke::cuda {
namespace {

using ir::FusedKernel;
using ir::FusedStage;
using target::CodeWriter;

constexpr int64_t kAlignment = 256;
constexpr int64_t kPlace = 16;  // bytes of any accumulator

class ReducePrinter {
 public:
  ReducePrinter(PrintContext& context, const ReducePlan& plan)
      : context_(context), kernel_(context.kernel), plan_(plan) {
    for (const FusedStage& stage : kernel_.stages) {
      const std::vector<ir::Axis> axes = target::axes_of(kernel_, stage);
      const std::vector<std::string> names = axis_variables(context, axes);
      std::vector<AxisBinding>& bound = axes_.emplace_back();
      for (size_t k = 0; k < axes.size(); ++k) bound.push_back({names[k], axes[k].extent});
      results_.emplace_back();
    }
    if (plan_.columns) {
      lane_extent_ = kernel_.rows[static_cast<size_t>(plan_.row_axis)].extent;
      tiles_ = (lane_extent_ + plan_.lanes - 1) / plan_.lanes;
      blocks_ = plan_.rows / std::max<int64_t>(lane_extent_, 1) * tiles_;
    } else {
      blocks_ = (plan_.rows + plan_.rows_a_block() - 1) / plan_.rows_a_block() * plan_.cluster;
    }
  }

  Result<KernelCode> run() {
    TRY(check_reads());
    kept_ = kept_loads(context_, plan_);
    if (plan_.split > 1) {
      print_split();
    } else {
      print_whole();
    }
    code_.functions = out_.take();
    code_.schedule = words();
    return std::move(code_);
  }

 private:
  // --- What is printed ---------------------------------------------------------------------------

  std::string words() const {
    std::string text =
        plan_.columns ? fmt::format(
                            "Schedule: {} neighbouring threads take neighbouring rows, {} times as "
                            "many share them",
                            plan_.lanes, plan_.members)
                      : fmt::format("Schedule: {} threads a row, {} rows a block", plan_.members,
                                    plan_.rows_a_block());
    const int64_t width = *std::max_element(plan_.width.begin(), plan_.width.end());
    if (plan_.cluster > 1) text += fmt::format(", {} blocks a row", plan_.cluster);
    if (!kept_.empty()) text += ", which keep it in registers";
    if (width > 1) text += fmt::format(", {} neighbours at once", width);
    if (plan_.split > 1) text += fmt::format("; {} parts a row, a launch a pass", plan_.split);
    return text + ".";
  }

  // A value of the row is at hand for its own row alone.
  Result<void> check_reads() const {
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      if (kind_of(kernel_.stages[s]) == StageKind::map) continue;
      for (size_t later = s + 1; later < kernel_.stages.size(); ++later) {
        if (!reads_elsewhere(kernel_.stages[later], kernel_.stages[s])) continue;
        return Error{Errc::unavailable,
                     fmt::format("kernel {} reads {} at another row than it was written at",
                                 kernel_.name, context_.tensor(kernel_.stages[s].output).name)};
      }
    }
    return {};
  }

  bool is_read_later(size_t s) const {
    for (size_t later = s + 1; later < kernel_.stages.size(); ++later) {
      if (reads(kernel_.stages[later], kernel_.stages[s].output)) return true;
    }
    return false;
  }

  void print_whole() {
    open_function(kernel_.name, 1);
    for (const LoadArray& kept : kept_) print_kept(kept);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) print_stage(s, true);
    // The others may still read what this block brought to a join.
    if (plan_.cluster > 1) out_.line("ke_cluster_sync();");
    out_.close();
  }

  void print_split() {
    int64_t bytes = 0;
    for (const FusedStage& stage : kernel_.stages) {
      partials_.push_back(bytes);
      if (kind_of(stage) != StageKind::reduction) continue;
      const int64_t own = plan_.rows * plan_.split * accumulator_bytes(stage);
      bytes += (own + kAlignment - 1) / kAlignment * kAlignment;
    }
    code_.scratch_bytes = bytes;
    bool stores_values = false;
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const bool walks = kind_of(kernel_.stages[s]) != StageKind::row_value;
      const bool map = kind_of(kernel_.stages[s]) == StageKind::map;
      stores_values |= !map && !is_internal(kernel_, kernel_.stages[s].output);
      if (!walks) continue;
      open_function(fmt::format("{}_pass{}", kernel_.name, s), plan_.split);
      for (size_t before = 0; before < s; ++before) print_value_again(before, false);
      print_stage(s, false);
      out_.close();
      out_.line("");
    }
    if (!stores_values) return;
    open_function(kernel_.name + "_values", 1);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) print_value_again(s, true);
    out_.close();
  }

  // The head, the row and the member of it that a thread is.
  void open_function(const std::string& name, int64_t parts) {
    const bool scratch = code_.scratch_bytes > 0;
    out_.open(function_head(context_, name, plan_.block, scratch, false, plan_.cluster));
    for (std::string& result : results_) result.clear();
    if (plan_.columns) {
      print_column_rows();
    } else {
      print_shared_rows();
    }
    if (parts > 1) out_.line("const int partIndex = (int)blockIdx.y;");
    code_.launches.push_back({name, blocks_, parts, plan_.block, room_bytes()});
  }

  void print_shared_rows() {
    const int64_t per_block = plan_.rows_a_block();
    if (plan_.cluster > 1) {
      out_.line(fmt::format("const int memberIndex = ke_cluster_rank() * {} + (int)threadIdx.x;",
                            plan_.members));
      out_.line(fmt::format("const int rowIndex = (int)blockIdx.x / {};", plan_.cluster));
      return print_coordinates(kernel_.rows, "rowIndex", -1);
    }
    const std::string_view type = plan_.rows + per_block <= INT32_MAX ? "int" : "int64_t";
    const std::string group =
        per_block == 1 ? "" : fmt::format(" + (int)threadIdx.x / {}", plan_.members);
    const std::string block = per_block == 1 ? fmt::format("({})blockIdx.x", type)
                                             : fmt::format("({})blockIdx.x * {}", type, per_block);
    out_.line(fmt::format("const int memberIndex = (int)threadIdx.x % {};", plan_.members));
    if (plan_.rows % per_block == 0) {
      out_.line(fmt::format("const {} rowIndex = {}{};", type, block, group));
    } else {
      out_.line(fmt::format("const {} wantedRow = {}{};", type, block, group));
      out_.line(fmt::format("const {0} rowIndex = wantedRow < {1} ? wantedRow : {2};", type,
                            plan_.rows, plan_.rows - 1));
    }
    print_coordinates(kernel_.rows, "rowIndex", -1);
  }

  void print_column_rows() {
    const auto axis = static_cast<size_t>(plan_.row_axis);
    const std::string& column = axes_[0][axis].variable;
    out_.line(fmt::format("const int memberIndex = (int)threadIdx.x / {};", plan_.lanes));
    const std::string_view type = index_type(axes_[0][axis]);
    const std::string tile = blocks_ == tiles_ ? std::string("(int)blockIdx.x")
                                               : fmt::format("(int)blockIdx.x % {}", tiles_);
    const std::string wanted =
        fmt::format("({0})({1}) * {2} + (int)threadIdx.x % {2}", type, tile, plan_.lanes);
    if (lane_extent_ % plan_.lanes == 0) {
      out_.line(fmt::format("const {} {} = {};", type, column, wanted));
    } else {
      out_.line(fmt::format("const {} wantedColumn = {};", type, wanted));
      out_.line(fmt::format("const {0} {1} = wantedColumn < {2} ? wantedColumn : {3};", type,
                            column, lane_extent_, lane_extent_ - 1));
    }
    if (kernel_.rows.size() > 1) {
      out_.line(fmt::format("const int outerIndex = (int)blockIdx.x / {};", tiles_));
      print_coordinates(kernel_.rows, "outerIndex", plan_.row_axis);
    }
    if (plan_.split > 1) {  // partial results lie by row
      std::string row = "0";
      for (size_t k = 0; k < kernel_.rows.size(); ++k) {
        row = k == 0 ? fmt::format("(int64_t){}", axes_[0][k].variable)
                     : fmt::format("({}) * {} + {}", row, kernel_.rows[k].extent,
                                   axes_[0][k].variable);
      }
      out_.line(fmt::format("const int64_t rowIndex = {};", row));
    }
  }

  // Row axes from a flat index; `without` is not part of it.
  void print_coordinates(const std::vector<ir::Axis>& axes, const std::string& flat, int without) {
    int64_t below = 1;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (static_cast<int>(k) != without) below *= std::max<int64_t>(axes[k].extent, 1);
    }
    bool outermost = true;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (static_cast<int>(k) == without) continue;
      below /= std::max<int64_t>(axes[k].extent, 1);
      std::string text = below == 1 ? flat : fmt::format("{} / {}", flat, below);
      if (!outermost) text += fmt::format(" % {}", axes[k].extent);
      outermost = false;
      out_.line(
          fmt::format("const {} {} = {};", index_type(axes_[0][k]), axes_[0][k].variable, text));
    }
  }

  // Shared memory for joins: the largest value, one a warp or one a thread; then a place for each
  // join of a cluster.
  int64_t room_bytes() const {
    if (plan_.cluster == 1) return block_room_bytes();
    return cluster_room(kernel_.stages.size());
  }

  int64_t cluster_room(size_t s) const {
    int64_t bytes = (block_room_bytes() + kPlace - 1) / kPlace * kPlace;
    for (size_t before = 0; before < s; ++before) {
      bytes += kind_of(kernel_.stages[before]) == StageKind::reduction ? kPlace : 0;
    }
    return bytes;
  }

  int64_t block_room_bytes() const {
    const bool needs = plan_.columns ? plan_.members > 1 : plan_.members > 32;
    if (!needs) return 0;
    const int64_t values = plan_.columns ? plan_.block : plan_.block / 32;
    int64_t bytes = 0;
    for (const FusedStage& stage : kernel_.stages) {
      if (kind_of(stage) == StageKind::reduction) {
        bytes = std::max(bytes, values * accumulator_bytes(stage));
      }
    }
    return bytes;
  }

  // --- Stages ------------------------------------------------------------------------------------

  void print_stage(size_t s, bool whole) {
    switch (kind_of(kernel_.stages[s])) {
      case StageKind::reduction: {
        print_terms(s);
        print_join(s);
        if (whole) return keep_result(s, true);
        out_.open("if (memberIndex == 0)");
        out_.line(fmt::format("{}[rowIndex * {} + partIndex] = {};", partial_of(s), plan_.split,
                              accumulator_of(s)));
        out_.close();
        return;
      }
      case StageKind::row_value:
        return print_row_value(s, true);
      case StageKind::map:
        print_map(s);
        // Others of the row read what this thread wrote.
        if (whole && is_read_later(s)) {
          out_.line(plan_.cluster > 1 ? "ke_cluster_sync();" : "__syncthreads();");
        }
        return;
    }
  }

  // A value of the row in a launch after the one that reduced it: partial results join again.
  void print_value_again(size_t s, bool store) {
    const StageKind kind = kind_of(kernel_.stages[s]);
    if (kind == StageKind::map) return;
    if (kind == StageKind::row_value) return print_row_value(s, store);
    const Accumulator accumulator = open_accumulator(s, plan_.split / plan_.members);
    out_.open(fmt::format("for (int otherPart = memberIndex; otherPart < {}; otherPart += {})",
                          plan_.split, plan_.members));
    print_addition(s, accumulator,
                   fmt::format("{}[rowIndex * {} + otherPart]", partial_of(s), plan_.split));
    out_.close();
    close_accumulator(s, accumulator);
    print_join(s);
    keep_result(s, store);
  }

  std::string accumulator_of(size_t s) const { return fmt::format("totalOf{}", s); }

  std::string partial_of(size_t s) const {
    return fmt::format("(({}*)(scratchRoom + {}))", accumulator_type(kernel_.stages[s]),
                       partials_[s]);
  }

  void hold_values(size_t s, const auto& hold) const {
    for (size_t before = 0; before < s; ++before) {
      if (!results_[before].empty()) hold(kernel_.stages[before].output, results_[before]);
    }
  }

  // Groups of neighbours in one pass over a row.
  int64_t groups_of(size_t s) const {
    return target::product_of(kernel_.stages[s].inner) / plan_.width[s];
  }

  // Coordinates of the inner axes from `group`, the lane axis innermost.
  void print_inner(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const size_t rows = kernel_.rows.size();
    const int lane = plan_.lane_axis[s];
    std::vector<size_t> order;
    for (size_t k = rows; k < axes_[s].size(); ++k) {
      if (static_cast<int>(k) != lane) order.push_back(k);
    }
    if (lane >= 0) order.push_back(static_cast<size_t>(lane));
    int64_t below = std::max<int64_t>(groups_of(s), 1);
    for (size_t i = 0; i < order.size(); ++i) {
      const AxisBinding& axis = axes_[s][order[i]];
      const bool is_lane = static_cast<int>(order[i]) == lane;
      const int64_t width = is_lane ? plan_.width[s] : 1;
      const int64_t extent = stage.inner[order[i] - rows].extent / width;
      below /= std::max<int64_t>(extent, 1);
      std::string text = below == 1 ? "groupIndex" : fmt::format("groupIndex / {}", below);
      if (i > 0) text += fmt::format(" % {}", extent);
      const std::string name = is_lane ? ElementLoop::first_variable(axis, width) : axis.variable;
      out_.line(fmt::format("const {} {} = {};", index_type(axis), name,
                            width == 1             ? text
                            : text == "groupIndex" ? fmt::format("groupIndex * {}", width)
                                                   : fmt::format("({}) * {}", text, width)));
    }
  }

  // The position among the reduction's terms, row-major.
  std::string flat_position(size_t s) const {
    const FusedStage& stage = kernel_.stages[s];
    std::string text;
    for (size_t k = 0; k < stage.inner.size(); ++k) {
      const std::string& axis = axes_[s][kernel_.rows.size() + k].variable;
      text = k == 0 ? fmt::format("(int64_t){}", axis)
                    : fmt::format("({}) * {} + {}", text, stage.inner[k].extent, axis);
    }
    return text.empty() ? "0" : text;
  }

  struct Bounds {
    std::string first, last;
    int64_t count = 0;  // at most
  };

  Bounds bounds_of(size_t s) const {
    const int64_t groups = groups_of(s);
    if (plan_.split == 1) return {"memberIndex", std::to_string(groups), groups};
    const int64_t part = (groups + plan_.split - 1) / plan_.split;
    return {fmt::format("partIndex * {} + memberIndex", part),
            fmt::format("(partIndex + 1) * {0} < {1} ? (partIndex + 1) * {0} : {1}", part, groups),
            part};
  }

  static std::string_view count_type(int64_t count) {
    return count < INT32_MAX - (1 << 20) ? "int" : "int64_t";
  }

  std::vector<LoadArray> kept_of(size_t s) const {
    std::vector<LoadArray> made;
    for (const LoadArray& kept : kept_) {
      if (makes_load(kernel_.stages[s], *kept.load)) made.push_back(kept);
    }
    return made;
  }

  void open_turns(int64_t turns, std::string_view type, const std::string& first) {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)", turns));
    out_.line(
        fmt::format("const {} groupIndex = {} + turnIndex * {};", type, first, plan_.walkers()));
  }

  // All turns of a thread over a row that registers keep: they have no index that is not known
  // when the loop is unrolled.
  void open_kept_turns(size_t s) {
    open_turns(turns_of(kernel_, plan_, s), "int", "memberIndex");
    if (groups_of(s) % plan_.walkers() != 0) {
      out_.line(fmt::format("if (groupIndex >= {}) break;", groups_of(s)));
    }
    print_inner(s);
  }

  // Loads what several passes need.
  void print_kept(const LoadArray& kept) {
    size_t s = 0;
    while (!makes_load(kernel_.stages[s], *kept.load)) ++s;
    declare_array(context_, out_, kept, turns_of(kernel_, plan_, s));
    open_kept_turns(s);
    fill_array(context_, out_, kept, axes_[s], plan_.lane_axis[s]);
    out_.close();
  }

  // The groups of this thread from `first` up to `last`: `body` prints what is done with one, whose
  // coordinates have been declared, with the loads at hand.
  template <class Body>
  void walk(size_t s, const std::string& first, const std::string& last, const Body& body) {
    const std::vector<LoadArray> kept = kept_of(s);
    if (!kept.empty()) {
      open_kept_turns(s);
      body(kept);
      return out_.close();
    }
    const std::string_view type = count_type(groups_of(s));
    const int64_t count = bounds_of(s).count, turns = early_turns(plan_, count);
    const std::vector<LoadArray> early = early_loads(context_, plan_, s, turns);
    if (early.empty()) {
      out_.open(fmt::format("for ({} groupIndex = {}; groupIndex < {}; groupIndex += {})", type,
                            first, last, plan_.walkers()));
      print_inner(s);
      body(early);
      return out_.close();
    }
    const std::string next = fmt::format("firstGroup{}", s);
    const int64_t stride = turns * plan_.walkers();
    out_.line(fmt::format("{} {} = {};", type, next, first));
    out_.open(fmt::format("for (; {0} + {1} < {2}; {0} += {3})", next, stride - plan_.walkers(),
                          last, stride));
    for (const LoadArray& array : early) declare_array(context_, out_, array, turns);
    open_turns(turns, type, next);
    print_inner(s);
    for (const LoadArray& array : early) {
      fill_array(context_, out_, array, axes_[s], plan_.lane_axis[s]);
    }
    out_.close();
    open_turns(turns, type, next);
    print_inner(s);
    body(early);
    out_.close();
    out_.close();
    if (count % stride == 0 && groups_of(s) % count == 0) return;
    out_.open(fmt::format("for (; {0} < {1}; {0} += {2})", next, last, plan_.walkers()));
    out_.line(fmt::format("const {} groupIndex = {};", type, next));
    print_inner(s);
    body({});
    out_.close();
  }

  // What this thread adds `count` values to, at most.
  Accumulator open_accumulator(size_t s, int64_t count) {
    const FusedStage& stage = kernel_.stages[s];
    const Accumulator accumulator = accumulator_for(stage, accumulator_of(s), count);
    out_.line(fmt::format("{} {} = {};", accumulator.type, accumulator.name, accumulator.identity));
    return accumulator;
  }

  void close_accumulator(size_t s, const Accumulator& accumulator) {
    if (!accumulator.keeps_lost) return;
    out_.line(fmt::format("{} {} = ke_value({});", accumulator_type(kernel_.stages[s]),
                          accumulator_of(s), accumulator.name));
  }

  void print_addition(size_t s, const Accumulator& to, const std::string& term) {
    out_.line(fmt::format("{} = {};", to.name, added(kernel_.stages[s], to, term)));
  }

  // Every term of this thread into its accumulator.
  void print_terms(size_t s) {
    const Bounds bounds = bounds_of(s);
    const int64_t walkers = plan_.walkers();
    const Accumulator accumulator =
        open_accumulator(s, (bounds.count + walkers - 1) / walkers * plan_.width[s]);
    std::string last = bounds.last;
    if (plan_.split > 1) {
      last = fmt::format("lastGroup{}", s);
      out_.line(fmt::format("const {} {} = {};", count_type(groups_of(s)), last, bounds.last));
    }
    print_term_loop(s, bounds.first, last, accumulator);
    close_accumulator(s, accumulator);
  }

  void print_term_loop(size_t s, const std::string& first, const std::string& last,
                       const Accumulator& accumulator) {
    const FusedStage& stage = kernel_.stages[s];
    // Neighbours of a ke_sum are added up first, which costs less than one by one.
    const bool group = accumulator.keeps_lost && plan_.width[s] > 1;
    const Accumulator to =
        group ? accumulator_for(stage, fmt::format("groupOf{}", s), 1) : accumulator;
    walk(s, first, last, [&](const std::vector<LoadArray>& at_hand) {
      ElementLoop loop(context_, out_, axes_[s], plan_.lane_axis[s], plan_.width[s]);
      hold_values(s, [&](ir::TensorId id, const std::string& text) { loop.hold(id, text); });
      for (const LoadArray& array : at_hand) loop.hold(array);
      loop.prepare(stage.body);
      if (group) out_.line(fmt::format("{} {} = {};", to.type, to.name, to.identity));
      loop.open();
      ScalarPrinter& element = loop.element();
      Value term = element.print(stage.body);
      term = element.print_cast(term, accumulator_dtype(stage));
      if (is_position(stage.reduce)) {
        term.text =
            fmt::format("{}{{{}, {}}}", accumulator_type(stage), term.text, flat_position(s));
      }
      print_addition(s, to, term.text);
      loop.close();
      if (group) print_addition(s, accumulator, to.name);
    });
  }

  // The members' accumulators become one, which all of them have.
  void print_join(size_t s) {
    if (plan_.walkers() == 1) return;
    const FusedStage& stage = kernel_.stages[s];
    const std::string type = accumulator_type(stage), accumulator = accumulator_of(s);
    const std::string lambda =
        fmt::format("[]({0} a, {0} b) {{ return ({0})({1}); }}", type, joined(stage, "a", "b"));
    const std::string function =
        plan_.columns ? fmt::format("ke_join_column<{}, {}>", plan_.members, plan_.lanes)
                      : fmt::format("ke_join<{}>", plan_.members);
    out_.line(fmt::format("{0} = {1}({0}, ke_shared(), {2});", accumulator, function, lambda));
    if (plan_.cluster == 1) return;
    out_.line(fmt::format("{0} = ke_join_cluster<{1}>({0}, ke_shared() + {2}, {3});", accumulator,
                          plan_.cluster, cluster_room(s), lambda));
  }

  // The accumulator as the tensor's element, for the stages to come.
  void keep_result(size_t s, bool store) {
    const FusedStage& stage = kernel_.stages[s];
    ScalarPrinter printer(context_, out_, axes_[s]);
    const bool position = is_position(stage.reduce);
    Value value{accumulator_of(s) + (position ? ".position" : ""),
                position ? ir::DType::int64 : accumulator_dtype(stage)};
    finish_value(s, printer, value, store);
  }

  void print_row_value(size_t s, bool store) {
    ScalarPrinter printer(context_, out_, axes_[s]);
    hold_values(s, [&](ir::TensorId id, const std::string& text) { printer.hold(id, text); });
    finish_value(s, printer, printer.print(kernel_.stages[s].body), store);
  }

  void finish_value(size_t s, ScalarPrinter& printer, const Value& computed, bool store) {
    const FusedStage& stage = kernel_.stages[s];
    const ir::DType dtype = context_.tensor(stage.output).dtype;
    Value value = printer.print_cast(computed, dtype);
    const std::string name = context_.fresh(context_.tensor(stage.output).name + "Row");
    out_.line(fmt::format("const {} {} = {};", target::compute_type(dtype), name, value.text));
    value.text = name;
    value.dtype = dtype;
    value.narrow = false;
    results_[s] = name;
    if (!store || is_internal(kernel_, stage.output)) return;
    out_.open("if (memberIndex == 0)");
    printer.store(stage.output, stage.store, value);
    out_.close();
  }

  void print_map(size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const Bounds bounds = bounds_of(s);
    std::string last = bounds.last;
    if (plan_.split > 1) {
      last = fmt::format("lastGroup{}", s);
      out_.line(fmt::format("const {} {} = {};", count_type(groups_of(s)), last, bounds.last));
    }
    walk(s, bounds.first, last, [&](const std::vector<LoadArray>& at_hand) {
      ElementLoop loop(context_, out_, axes_[s], plan_.lane_axis[s], plan_.width[s]);
      hold_values(s, [&](ir::TensorId id, const std::string& text) { loop.hold(id, text); });
      for (const LoadArray& array : at_hand) loop.hold(array);
      loop.prepare(stage.body);
      loop.prepare_store(stage.output, stage.store);
      loop.open();
      loop.store(stage.output, stage.store, loop.element().print(stage.body));
      loop.close();
    });
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  const ReducePlan& plan_;
  std::vector<std::vector<AxisBinding>> axes_;  // one a stage: rows, then inner
  std::vector<std::string> results_;            // variables of the values of the row so far
  std::vector<LoadArray> kept_;                 // loads of several passes
  std::vector<int64_t> partials_;               // offsets in scratch
  int64_t lane_extent_ = 1, tiles_ = 1, blocks_ = 1;
  CodeWriter out_;
  KernelCode code_;
};

}  // namespace

Result<KernelCode> print_reduce_kernel(PrintContext& context, const ReducePlan& plan) {
  return ReducePrinter(context, plan).run();
}

}  // namespace ke::cuda
