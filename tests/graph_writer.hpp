// SPDX-License-Identifier: Apache-2.0
//
// Writes graphs of ATen operations call by call, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "ir/lower/shapes.hpp"

namespace ke::testing_support {

class GraphWriter {
 public:
  ir::ValueId input(std::string name, std::vector<int64_t> shape,
                    ir::DType dtype = ir::DType::float32) {
    const ir::ValueId id = declare(std::move(name), std::move(shape), dtype);
    graph_.inputs.push_back({id, ir::InputKind::argument});
    return id;
  }

  ir::ValueId declare(std::string name, std::vector<int64_t> shape,
                      ir::DType dtype = ir::DType::float32) {
    std::vector<int64_t> strides = ir::contiguous_strides(shape);
    ir::Value value;
    value.name = std::move(name);
    value.dtype = dtype;
    value.shape = std::move(shape);
    value.strides = std::move(strides);
    graph_.values.push_back(std::move(value));
    return ir::ValueId{static_cast<int>(graph_.values.size()) - 1};
  }

  ir::ValueId call(std::string op, std::vector<ir::Arg> args, std::vector<int64_t> shape,
                   ir::DType dtype = ir::DType::float32, std::vector<ir::NamedArg> kwargs = {}) {
    std::string name = op.substr(5, op.find('.', 5) - 5);
    const ir::ValueId id = declare(std::move(name), std::move(shape), dtype);
    graph_.nodes.push_back({std::move(op), std::move(args), std::move(kwargs), {id}, 0});
    return id;
  }

  // The work of the last call, as the oracle would count it.
  void costs(int64_t flops) { graph_.nodes.back().flops = flops; }

  void also_returns(ir::ValueId id) { graph_.nodes.back().results.push_back(id); }

  ir::Graph returning(std::vector<ir::ValueId> outputs) {
    graph_.outputs = std::move(outputs);
    return graph_;
  }

 private:
  ir::Graph graph_;
};

inline ir::Arg list(std::vector<int64_t> numbers) {
  std::vector<ir::Arg> items;
  for (const int64_t number : numbers) items.push_back(ir::Arg{number});
  return ir::Arg{std::move(items)};
}
inline ir::Arg integer(int64_t number) { return ir::Arg{number}; }

}  // namespace ke::testing_support
