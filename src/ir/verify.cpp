// SPDX-License-Identifier: Apache-2.0
//
// The invariants of a program. Each refusal is one sentence that names the tensor or the stage.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/program.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

constexpr int kDepthMax = 2000;                   // of an expression
constexpr int64_t kExtentMax = int64_t{1} << 40;  // elements of a tensor, iterations of a stage

template <class... Args>
Error refuse(fmt::format_string<Args...> format, Args&&... args) {
  return {Errc::invalid, fmt::format(format, std::forward<Args>(args)...)};
}

bool product_fits(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(product, std::max<int64_t>(extent, 1), &product) ||
        product > kExtentMax) {
      return false;
    }
  }
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  Result<void> run() {
    TRY(check_tensors());
    TRY(check_inputs());
    available_.assign(program_.tensors.size(), false);
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      const Role role = program_.tensors[i].role;
      available_[i] = role == Role::input || role == Role::constant;
    }
    for (size_t i = 0; i < program_.stages.size(); ++i) TRY(check_stage(program_.stages[i], i));
    return check_outputs();
  }

 private:
  bool declared(TensorId id) const {
    return id.index >= 0 && static_cast<size_t>(id.index) < program_.tensors.size();
  }
  const std::string& name_of(TensorId id) const { return program_.tensor(id).name; }

  Result<void> check_tensors() {
    std::unordered_set<std::string_view> names;
    for (const Tensor& tensor : program_.tensors) {
      if (!is_identifier(tensor.name)) return refuse("a tensor's name is no identifier");
      if (!names.insert(tensor.name).second)
        return refuse("two tensors are called {}", tensor.name);
      if (!product_fits(tensor.shape)) {
        return refuse("tensor {} has a negative or too large extent", tensor.name);
      }
      TRY(check_layout(tensor));
    }
    return {};
  }

  Result<void> check_layout(const Tensor& tensor) {
    if (tensor.strides.size() != tensor.shape.size()) {
      return refuse("tensor {} has {} strides for {} dimensions", tensor.name,
                    tensor.strides.size(), tensor.shape.size());
    }
    const bool contiguous = tensor.strides == contiguous_strides(tensor.shape);
    if (tensor.role != Role::input && !contiguous) {
      return refuse("tensor {} is no input and has strides of its own", tensor.name);
    }
    int64_t span = 1;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t reach = 0;
      if (tensor.strides[i] < 0 ||
          __builtin_mul_overflow(tensor.strides[i], std::max<int64_t>(tensor.shape[i] - 1, 0),
                                 &reach) ||
          __builtin_add_overflow(span, reach, &span) || span > kExtentMax) {
        return refuse("tensor {} has a negative or too large stride", tensor.name);
      }
    }
    const size_t values =
        tensor.role == Role::constant ? static_cast<size_t>(tensor.elements()) : 0;
    if (tensor.values.size() != values) {
      return refuse("tensor {} lists {} values instead of {}", tensor.name, tensor.values.size(),
                    values);
    }
    return {};
  }

  Result<void> check_inputs() {
    std::unordered_set<int> listed;
    for (TensorId id : program_.inputs) {
      if (!declared(id)) return refuse("input %{} is not declared", id.index);
      if (program_.tensor(id).role != Role::input) {
        return refuse("tensor {} is listed as an input without being one", name_of(id));
      }
      if (!listed.insert(id.index).second) return refuse("input {} is listed twice", name_of(id));
    }
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      if (program_.tensors[i].role == Role::input && !listed.contains(static_cast<int>(i))) {
        return refuse("tensor {} is an input that is not listed", program_.tensors[i].name);
      }
    }
    return {};
  }

  Result<void> check_outputs() {
    std::unordered_set<int> listed;
    for (TensorId id : program_.outputs) {
      if (!declared(id)) return refuse("output %{} is not declared", id.index);
      if (program_.tensor(id).role == Role::intermediate) {
        return refuse("tensor {} is listed as an output without being one", name_of(id));
      }
      if (!available_[static_cast<size_t>(id.index)]) {
        return refuse("output {} is computed by no stage", name_of(id));
      }
      listed.insert(id.index);
    }
    for (size_t i = 0; i < program_.tensors.size(); ++i) {
      if (program_.tensors[i].role == Role::output && !listed.contains(static_cast<int>(i))) {
        return refuse("tensor {} is an output that is not listed", program_.tensors[i].name);
      }
    }
    return {};
  }

  // --- Stages -----------------------------------------------------------------------------------
  Result<void> check_stage(const Stage& stage, size_t index) {
    if (!declared(stage.output)) return refuse("stage {} writes an undeclared tensor", index);
    const Tensor& output = program_.tensor(stage.output);
    where_ = output.name;
    if (output.role == Role::input || output.role == Role::constant) {
      return refuse("stage {} writes an input or a constant", where_);
    }
    if (available_[static_cast<size_t>(stage.output.index)]) {
      return refuse("stage {} writes a tensor that is already written", where_);
    }
    TRY(check_axes(stage, output));
    TRY(check_reduction(stage, output));
    if (stage.origin.find_first_of("\n\r#") != std::string::npos || stage.origin.starts_with(' ')) {
      return refuse("stage {} has an origin that does not fit a line", where_);
    }
    if (!stage.body) return refuse("stage {} has no body", where_);
    axis_count_ = stage.axis_count();
    checked_.clear();
    TRY(check_expr(stage.body, 0));
    available_[static_cast<size_t>(stage.output.index)] = true;
    return {};
  }

  Result<void> check_axes(const Stage& stage, const Tensor& output) {
    std::vector<int64_t> parallel, all;
    std::unordered_set<std::string_view> names;
    for (const auto* axes : {&stage.parallel, &stage.reduction}) {
      for (const Axis& axis : *axes) {
        if (!is_identifier(axis.name)) return refuse("stage {} has a nameless axis", where_);
        if (!names.insert(axis.name).second) {
          return refuse("stage {} has two axes called {}", where_, axis.name);
        }
        all.push_back(axis.extent);
      }
    }
    for (const Axis& axis : stage.parallel) parallel.push_back(axis.extent);
    if (parallel != output.shape) {
      return refuse("stage {} has parallel extents that differ from its output's shape", where_);
    }
    if (!product_fits(all)) return refuse("stage {} has a negative or too large extent", where_);
    return {};
  }

  Result<void> check_reduction(const Stage& stage, const Tensor& output) {
    if (stage.is_scan()) TRY(check_scan(stage));
    if (!stage.is_scan() && stage.is_map() != stage.reduction.empty()) {
      return refuse("stage {} must have reduction axes exactly when it reduces", where_);
    }
    if (stage.is_map() || !stage.body) return {};
    const DType body = stage.body->dtype;
    const bool empty = std::any_of(stage.reduction.begin(), stage.reduction.end(),
                                   [](const Axis& axis) { return axis.extent == 0; });
    const bool extreme = stage.reduce >= ReduceOp::maximum && stage.reduce <= ReduceOp::argmin;
    if (extreme && empty && output.elements() > 0) {
      return refuse("stage {} takes an extreme of nothing", where_);
    }
    const bool position = stage.reduce == ReduceOp::argmax || stage.reduce == ReduceOp::argmin;
    if (position && output.dtype != DType::int64) {
      return refuse("stage {} must yield int64, as every argmax and argmin does", where_);
    }
    const bool logical = stage.reduce == ReduceOp::any || stage.reduce == ReduceOp::all;
    if (logical && (output.dtype != DType::boolean || body != DType::boolean)) {
      return refuse("stage {} must take and yield boolean, as every any and all does", where_);
    }
    const bool plain = stage.reduce == ReduceOp::maximum || stage.reduce == ReduceOp::minimum;
    if (plain && stage.accumulator != body) {
      return refuse("stage {} must accumulate in its body's dtype", where_);
    }
    const bool sum = stage.reduce == ReduceOp::sum || stage.reduce == ReduceOp::product;
    if (sum && (stage.accumulator == DType::boolean ||
                (is_floating(body) && !is_floating(stage.accumulator)))) {
      return refuse("stage {} accumulates in a dtype that cannot hold its body", where_);
    }
    return {};
  }

  Result<void> check_scan(const Stage& stage) {
    if (static_cast<size_t>(stage.scan) >= stage.parallel.size()) {
      return refuse("stage {} scans along an axis that it does not have", where_);
    }
    if (!stage.reduction.empty()) return refuse("stage {} both scans and reduces", where_);
    if (stage.reduce < ReduceOp::sum || stage.reduce > ReduceOp::minimum) {
      return refuse("stage {} scans with something other than a sum, product or extreme", where_);
    }
    return {};
  }

  // --- Expressions ------------------------------------------------------------------------------
  Result<void> check_expr(const ExprPtr& e, int depth) {
    if (depth > kDepthMax) return refuse("stage {} nests its body too deeply", where_);
    if (!checked_.insert(e.get()).second) return {};
    for (const ExprPtr& operand : e->operands) {
      if (!operand) return refuse("stage {} lacks an operand", where_);
      TRY(check_expr(operand, depth + 1));
    }
    return check_node(*e);
  }

  Result<void> check_node(const Expr& e) {
    static constexpr size_t kOperands[] = {0, 0, 0, 1, 2, 3, 1};
    const auto kind = static_cast<size_t>(e.kind);
    if (kind >= std::size(kOperands)) return refuse("stage {} has an unknown expression", where_);
    if (e.kind != Expr::Kind::load && e.operands.size() != kOperands[kind]) {
      return refuse("stage {} has {} operands where {} belong", where_, e.operands.size(),
                    kOperands[kind]);
    }
    if (e.kind == Expr::Kind::load) return check_load(e);
    if (e.kind == Expr::Kind::axis && (e.axis < 0 || e.axis >= axis_count_)) {
      return refuse("stage {} uses axis i{} of {}", where_, e.axis, axis_count_);
    }
    if (e.dtype != natural_dtype(e)) {
      return refuse("stage {} has an expression of a wrong dtype: {}", where_, summary(e));
    }
    return check_operands(e);
  }

  Result<void> check_operands(const Expr& e) {
    if (e.kind == Expr::Kind::unary && !accepts(e.unary, e.operands[0]->dtype)) {
      return refuse("stage {} applies {} to {}", where_, enum_name(e.unary),
                    enum_name(e.operands[0]->dtype));
    }
    if (e.kind == Expr::Kind::binary) {
      const DType a = e.operands[0]->dtype, b = e.operands[1]->dtype;
      if (a != b) {
        return refuse("stage {} mixes {} and {} in {}", where_, enum_name(a), enum_name(b),
                      enum_name(e.binary));
      }
      if (!accepts(e.binary, a)) {
        return refuse("stage {} applies {} to {}", where_, enum_name(e.binary), enum_name(a));
      }
    }
    if (e.kind == Expr::Kind::select) {
      if (e.operands[0]->dtype != DType::boolean) {
        return refuse("stage {} selects by something that is not boolean", where_);
      }
      if (e.operands[1]->dtype != e.operands[2]->dtype) {
        return refuse("stage {} mixes {} and {} in select", where_, enum_name(e.operands[1]->dtype),
                      enum_name(e.operands[2]->dtype));
      }
    }
    return {};
  }

  static DType natural_dtype(const Expr& e) {
    switch (e.kind) {
      case Expr::Kind::axis:
        return DType::int64;
      case Expr::Kind::unary:
        return result_dtype(e.unary, e.operands[0]->dtype);
      case Expr::Kind::binary:
        return result_dtype(e.binary, e.operands[0]->dtype);
      case Expr::Kind::select:
        return e.operands[1]->dtype;
      case Expr::Kind::constant:
      case Expr::Kind::cast:
      case Expr::Kind::load:
        break;
    }
    return e.dtype;
  }

  Result<void> check_load(const Expr& e) {
    if (!declared(e.tensor)) return refuse("stage {} loads an undeclared tensor", where_);
    const Tensor& tensor = program_.tensor(e.tensor);
    if (!available_[static_cast<size_t>(e.tensor.index)]) {
      return refuse("stage {} loads {} before it is computed", where_, tensor.name);
    }
    if (e.dtype != tensor.dtype) {
      return refuse("stage {} loads {} as {}", where_, tensor.name, enum_name(e.dtype));
    }
    if (e.operands.size() != tensor.shape.size()) {
      return refuse("stage {} loads {} with {} indices for {} dimensions", where_, tensor.name,
                    e.operands.size(), tensor.shape.size());
    }
    for (const ExprPtr& index : e.operands) {
      if (index->dtype != DType::int64) {
        return refuse("stage {} indexes {} by {}", where_, tensor.name, enum_name(index->dtype));
      }
    }
    return {};
  }

  static std::string_view summary(const Expr& e) {
    return e.kind == Expr::Kind::binary  ? enum_name(e.binary)
           : e.kind == Expr::Kind::unary ? enum_name(e.unary)
                                         : "a select or an axis";
  }

  const Program& program_;
  std::vector<bool> available_;  // a tensor: whether a stage may load it now
  std::string where_;            // the current stage's output
  int axis_count_ = 0;
  std::unordered_set<const Expr*> checked_;
};

}  // namespace

bool is_identifier(std::string_view name) {
  auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  if (name.empty() || !lower(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; });
}

Result<void> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace ke::ir
