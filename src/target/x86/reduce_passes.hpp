// SPDX-License-Identifier: Apache-2.0
//
// Passes over one row with the lanes along an inner axis: a reduction, a map, or a value of the
// row. Shared by the layouts that keep rows whole and that split them.
#pragma once

#include <string>
#include <vector>

#include "target/x86/reduce_plan.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {

// The part of the outermost inner axis that a pass covers; empty texts mean all of it.
struct PassRange {
  std::string first, last;
  bool whole() const { return first.empty(); }
};

class RowPasses {
 public:
  RowPasses(PrintContext& context, const ReducePlan& plan);

  // Prints the rows' coordinates from a flat `row`.
  void print_row_axes(target::CodeWriter& out) const;

  // A reduction. Leaves its accumulator in `result_name(s)` (and `position_name(s)` for argmax).
  void print_reduction(target::CodeWriter& out, size_t s, const PassRange& range);
  // Makes the row's value from the accumulator, under the name that later stages read.
  void print_result(target::CodeWriter& out, size_t s, bool store);
  void print_row_value(target::CodeWriter& out, size_t s, bool store);
  Result<void> print_map(target::CodeWriter& out, size_t s, const PassRange& range);

  std::string result_name(size_t s) const;
  ir::DType result_dtype(size_t s) const;  // of what result_name(s) holds
  std::string position_name(size_t s) const;
  const ir::FusedStage& stage(size_t s) const { return kernel_.stages[s]; }

 private:
  struct Lane {
    int axis = -1;
    std::string variable;
    int64_t extent = 1;
    int width = 1;  // 1: no vectors
  };

  Lane lane_of(size_t s) const;
  std::vector<AxisBinding> bindings(size_t s, int lane_axis) const;
  void hold_values(VectorPrinter& printer) const;
  int open_loops(target::CodeWriter& out, size_t s, int lane_axis, const PassRange& range) const;
  void print_bounds(target::CodeWriter& out, const Lane& lane, const PassRange& range) const;
  std::string flat_position(size_t s) const;
  void print_term(target::CodeWriter& out, size_t s, const Lane& lane, int width,
                  std::string_view name);
  void print_vectors(target::CodeWriter& out, size_t s, const Lane& lane);
  void print_vector_loop(target::CodeWriter& out, size_t s, const Lane& lane);
  void print_positions(target::CodeWriter& out, size_t s, const PassRange& range);
  void print_position_lanes(target::CodeWriter& out, size_t s, const Lane& lane);
  void merge_lanes(target::CodeWriter& out, size_t s, int width) const;
  void keep_value(target::CodeWriter& out, size_t s, const Value& value, bool store);

  PrintContext& context_;
  const ir::FusedKernel& kernel_;
  const ReducePlan& plan_;
  std::vector<std::string> row_variables_;
  std::vector<std::vector<std::string>> variables_;  // one a stage: rows, then inner
};

}  // namespace ke::x86
