// SPDX-License-Identifier: Apache-2.0
//
// One node of the graph as a call of the framework's operator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace ke::triton {

struct CallContext {
  std::function<std::string(ir::ValueId)> name_of;  // the variable that holds a value
  std::string device;                               // an expression for where new tensors go
  std::vector<bool> used;      // of the node's results, in order: whether anybody reads them
  bool channels_last = false;  // images and filters of convolutions are brought into that format
};

// The right-hand side: one tensor when `results` is 1, else a sequence of so many.
struct CallText {
  std::string text;
  bool only_first = false;  // gives the first result alone, as a tensor
};
CallText library_call(const ir::Graph& graph, const ir::Node& node, const CallContext& context);

// Whether the operator gives a list even of one tensor.
bool gives_list(const ir::Node& node);

}  // namespace ke::triton
