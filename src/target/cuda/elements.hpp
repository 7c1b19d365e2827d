// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring elements along one axis, handled by one thread: wide loads, an unrolled loop over
// the elements, wide stores. What is not contiguous along the axis, or lies under a choice, is
// loaded element by element.
//
//   ElementLoop loop(context, out, axes, lane_axis, 4);   // declares nothing of the axes
//   loop.prepare(body); loop.prepare_store(tensor, indices);
//   loop.open();
//   loop.store(tensor, indices, loop.element().print(body));
//   loop.close();
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "target/cuda/scalar_printer.hpp"

namespace ke::cuda {

// The most neighbours, a power of two up to 16, that every contiguous access of the stages along
// the axis allows: aligned whenever the first neighbour's position is a multiple of them, and at
// most 32 bytes of each tensor. 1 when no access is contiguous.
int64_t widest_group(const ir::Program& program, const std::vector<ir::FusedStage>& stages,
                     int lane_axis);

// Whether `width` neighbours of tensor[indices] along the axis are one aligned piece of memory.
bool is_wide(const ir::Tensor& tensor, const std::vector<ir::ExprPtr>& indices, int lane_axis,
             int64_t width);

// Every load of the expression that happens whatever it chooses.
std::vector<ir::ExprPtr> certain_loads(const ir::ExprPtr& expr);

// Registers for the same load of several groups of neighbours, a group for each value of turnIndex.
// They are loaded before the first is used: memory answers such loads together.
struct LoadArray {
  ir::ExprPtr load;
  std::string name;
  int64_t width = 1;
};
// Whether a thread may make the load before anything that the kernel computes, `width` neighbours
// along the lane axis at once.
bool is_early(const PrintContext& context, const ir::Expr& load, int lane_axis, int64_t width);
void declare_array(const PrintContext& context, target::CodeWriter& out, const LoadArray& array,
                   int64_t turns);
// Loads the group of turnIndex, whose coordinates have been declared.
void fill_array(PrintContext& context, target::CodeWriter& out, const LoadArray& array,
                std::vector<AxisBinding> axes, int lane_axis);
// 32-bit words of one group.
int64_t words_of(const PrintContext& context, const ir::Expr& load, int64_t width);

class ElementLoop {
 public:
  // `axes` name the element's own variables. With a width beyond 1 the loop declares the lane
  // axis's variable from first_variable(), which the caller has declared.
  ElementLoop(PrintContext& context, target::CodeWriter& out, std::vector<AxisBinding> axes,
              int lane_axis, int64_t width);

  static std::string first_variable(const AxisBinding& axis, int64_t width) {
    return width > 1 ? axis.variable + "First" : axis.variable;
  }

  void hold(ir::TensorId tensor, const std::string& text);
  void hold(const LoadArray& array);  // of which turnIndex's group is at hand
  void prepare(const ir::ExprPtr& body);
  void prepare_store(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices);
  void open();
  ScalarPrinter& element() { return *element_; }
  void store(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices, const Value& value);
  void close();

 private:
  void load(const ir::ExprPtr& expr);
  std::string declare(ir::TensorId tensor);

  PrintContext& context_;
  target::CodeWriter& out_;
  std::vector<AxisBinding> axes_;
  int lane_axis_;
  int64_t width_;
  std::unique_ptr<ScalarPrinter> first_, element_;  // addresses of the group, and one element
  std::vector<ir::TensorId> held_;
  std::vector<ir::ExprPtr> loaded_;
  struct WideStore {
    ir::TensorId tensor;
    std::vector<ir::ExprPtr> indices;
    std::string buffer;
  };
  std::vector<WideStore> stores_;
};

}  // namespace ke::cuda
