// SPDX-License-Identifier: Apache-2.0
//
// Makers and walks of scalar expressions. Makers fold what is exact for every value: operations on
// constants, x * 1, and (for int64, where it is exact) the identities of index arithmetic.
#include "ir/expr.hpp"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "base/assert.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

bool is_constant(const ExprPtr& e) { return e->kind == Expr::Kind::constant; }
bool is_integer(const ExprPtr& e, int64_t value) {
  return is_constant(e) && !is_floating(e->dtype) && e->int_value == value;
}
bool is_one(const ExprPtr& e) {
  return is_constant(e) && (is_floating(e->dtype) ? e->float_value == 1.0 : e->int_value == 1);
}

// Half arithmetic happens in float32 and is rounded by casts alone, so a half constant can hold no
// intermediate result: operations on them are left alone.
bool folds(DType dtype) { return dtype != DType::float16 && dtype != DType::bfloat16; }

Scalar scalar_of(const Expr& e) { return {.real = e.float_value, .integer = e.int_value}; }

ExprPtr from_scalar(DType dtype, Scalar value) {
  auto e = std::make_shared<Expr>();
  e->kind = Expr::Kind::constant;
  e->dtype = dtype;
  if (is_floating(dtype)) e->float_value = value.real;
  if (!is_floating(dtype)) e->int_value = value.integer;
  return e;
}

ExprPtr make_node(Expr::Kind kind, DType dtype, std::vector<ExprPtr> operands) {
  auto e = std::make_shared<Expr>();
  e->kind = kind;
  e->dtype = dtype;
  e->operands = std::move(operands);
  return e;
}

// (x op c1) op c2 with a constant on the right: the single constant that does both, or null.
ExprPtr merge_constants(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
  const bool associative = op == BinaryOp::add || op == BinaryOp::mul;
  if (!associative || a->kind != Expr::Kind::binary || a->binary != op) return nullptr;
  if (!is_constant(b) || !is_constant(a->operands[1])) return nullptr;
  return binary(op, a->operands[0], binary(op, a->operands[1], b));
}

// The identities of int64 arithmetic; null when none applies. Constants are already on the right.
ExprPtr fold_index(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
  if (op == BinaryOp::add && is_integer(b, 0)) return a;
  if (op == BinaryOp::sub && is_integer(b, 0)) return a;
  if (op == BinaryOp::mul && is_integer(b, 0)) return b;
  if (op == BinaryOp::sub && is_constant(b)) {
    const Scalar negated = evaluate(UnaryOp::neg, DType::int64, scalar_of(*b));
    return binary(BinaryOp::add, a, index_constant(negated.integer));
  }
  if (op == BinaryOp::floor_div && is_integer(b, 1)) return a;
  if (op == BinaryOp::mod && is_integer(b, 1)) return index_constant(0);
  return merge_constants(op, a, b);
}

ExprPtr fold_logical(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
  for (const auto& [known, other] : {std::pair{a, b}, std::pair{b, a}}) {
    if (!is_constant(known)) continue;
    const bool value = known->int_value != 0;
    if (op == BinaryOp::logical_and) return value ? other : known;
    if (op == BinaryOp::logical_or) return value ? known : other;
  }
  return nullptr;
}

bool commutes(BinaryOp op) { return op == BinaryOp::add || op == BinaryOp::mul; }

std::string print_constant(const Expr& e) {
  if (e.dtype == DType::int64) return fmt::format("{}", e.int_value);
  if (e.dtype == DType::boolean) return e.int_value ? "true" : "false";
  if (!is_floating(e.dtype)) return fmt::format("{}:{}", e.int_value, enum_name(e.dtype));
  if (std::isnan(e.float_value)) return fmt::format("nan:{}", enum_name(e.dtype));
  std::string digits = fmt::format("{}", e.float_value);
  if (std::isfinite(e.float_value) && digits.find_first_of(".e") == std::string::npos) {
    digits += ".0";
  }
  return fmt::format("{}:{}", digits, enum_name(e.dtype));
}

std::string print_list(const std::vector<ExprPtr>& items) {
  std::string text;
  for (const ExprPtr& item : items) text += (text.empty() ? "" : ", ") + print(*item);
  return text;
}

class Substitution {
 public:
  explicit Substitution(const std::vector<ExprPtr>& replacements) : replacements_(replacements) {}

  ExprPtr apply(const ExprPtr& e) {
    if (e->kind == Expr::Kind::constant) return e;
    if (e->kind == Expr::Kind::axis) {
      const auto position = static_cast<size_t>(e->axis);
      const bool replaced = position < replacements_.size() && replacements_[position];
      return replaced ? replacements_[position] : e;
    }
    const auto found = done_.find(e.get());
    if (found != done_.end()) return found->second;
    ExprPtr result = rebuild(e);
    done_.emplace(e.get(), result);
    return result;
  }

 private:
  ExprPtr rebuild(const ExprPtr& e) {
    std::vector<ExprPtr> operands;
    bool changed = false;
    for (const ExprPtr& operand : e->operands) {
      operands.push_back(apply(operand));
      changed |= operands.back() != operand;
    }
    return changed ? with_operands(*e, std::move(operands)) : e;
  }

  const std::vector<ExprPtr>& replacements_;
  std::unordered_map<const Expr*, ExprPtr> done_;
};

}  // namespace

ExprPtr constant(DType dtype, double value) {
  return from_scalar(dtype, convert(DType::float64, dtype, {.real = value, .integer = 0}));
}

ExprPtr constant_int(DType dtype, int64_t value) {
  return from_scalar(dtype, convert(DType::int64, dtype, {.real = 0, .integer = value}));
}

ExprPtr index_constant(int64_t value) { return constant_int(DType::int64, value); }

ExprPtr axis(int position) {
  KE_ASSERT(position >= 0);
  auto e = std::make_shared<Expr>();
  e->kind = Expr::Kind::axis;
  e->dtype = DType::int64;
  e->axis = position;
  return e;
}

ExprPtr load(TensorId tensor, DType dtype, std::vector<ExprPtr> indices) {
  auto e = std::make_shared<Expr>();
  e->kind = Expr::Kind::load;
  e->dtype = dtype;
  e->tensor = tensor;
  e->operands = std::move(indices);
  return e;
}

ExprPtr unary(UnaryOp op, ExprPtr a) {
  KE_ASSERT(a && accepts(op, a->dtype));
  const DType dtype = result_dtype(op, a->dtype);
  if (is_constant(a) && folds(dtype)) {
    return from_scalar(dtype, evaluate(op, a->dtype, scalar_of(*a)));
  }
  auto e = std::make_shared<Expr>();
  e->kind = Expr::Kind::unary;
  e->dtype = dtype;
  e->unary = op;
  e->operands = {std::move(a)};
  return e;
}

ExprPtr binary(BinaryOp op, ExprPtr a, ExprPtr b) {
  KE_ASSERT(a && b && a->dtype == b->dtype && accepts(op, a->dtype));
  const DType operand = a->dtype;
  const DType dtype = result_dtype(op, operand);
  if (is_constant(a) && is_constant(b) && folds(dtype)) {
    return from_scalar(dtype, evaluate(op, operand, scalar_of(*a), scalar_of(*b)));
  }
  if (is_constant(a) && !is_constant(b) && commutes(op)) std::swap(a, b);
  if ((op == BinaryOp::mul || op == BinaryOp::div) && is_one(b)) return a;
  if (operand == DType::int64) {
    if (ExprPtr folded = fold_index(op, a, b)) return folded;
  }
  if (operand == DType::boolean) {
    if (ExprPtr folded = fold_logical(op, a, b)) return folded;
  }
  auto e = std::make_shared<Expr>();
  e->kind = Expr::Kind::binary;
  e->dtype = dtype;
  e->binary = op;
  e->operands = {std::move(a), std::move(b)};
  return e;
}

ExprPtr select(ExprPtr condition, ExprPtr then_value, ExprPtr else_value) {
  KE_ASSERT(condition && condition->dtype == DType::boolean);
  KE_ASSERT(then_value && else_value && then_value->dtype == else_value->dtype);
  if (is_constant(condition)) return condition->int_value ? then_value : else_value;
  const DType dtype = then_value->dtype;
  return make_node(Expr::Kind::select, dtype,
                   {std::move(condition), std::move(then_value), std::move(else_value)});
}

ExprPtr cast(DType dtype, ExprPtr a) {
  KE_ASSERT(a != nullptr);
  if (a->dtype == dtype) return a;
  if (is_constant(a)) return from_scalar(dtype, convert(a->dtype, dtype, scalar_of(*a)));
  return make_node(Expr::Kind::cast, dtype, {std::move(a)});
}

ExprPtr with_operands(const Expr& e, std::vector<ExprPtr> operands) {
  KE_ASSERT(operands.size() == e.operands.size());
  switch (e.kind) {
    case Expr::Kind::constant:
    case Expr::Kind::axis:
      return std::make_shared<Expr>(e);
    case Expr::Kind::load:
      return load(e.tensor, e.dtype, std::move(operands));
    case Expr::Kind::unary:
      return unary(e.unary, operands[0]);
    case Expr::Kind::binary:
      return binary(e.binary, operands[0], operands[1]);
    case Expr::Kind::select:
      return select(operands[0], operands[1], operands[2]);
    case Expr::Kind::cast:
      return cast(e.dtype, operands[0]);
  }
  KE_ASSERT(false && "unknown expression kind");
}

bool same(const Expr& a, const Expr& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.dtype != b.dtype || a.operands.size() != b.operands.size())
    return false;
  switch (a.kind) {
    case Expr::Kind::constant:
      if (!is_floating(a.dtype)) return a.int_value == b.int_value;
      if (std::isnan(a.float_value)) return std::isnan(b.float_value);
      return a.float_value == b.float_value &&
             std::signbit(a.float_value) == std::signbit(b.float_value);
    case Expr::Kind::axis:
      return a.axis == b.axis;
    case Expr::Kind::load:
      if (a.tensor != b.tensor) return false;
      break;
    case Expr::Kind::unary:
      if (a.unary != b.unary) return false;
      break;
    case Expr::Kind::binary:
      if (a.binary != b.binary) return false;
      break;
    case Expr::Kind::select:
    case Expr::Kind::cast:
      break;
  }
  for (size_t i = 0; i < a.operands.size(); ++i) {
    if (!same(*a.operands[i], *b.operands[i])) return false;
  }
  return true;
}

std::string print(const Expr& e) {
  switch (e.kind) {
    case Expr::Kind::constant:
      return print_constant(e);
    case Expr::Kind::axis:
      return fmt::format("i{}", e.axis);
    case Expr::Kind::load:
      return fmt::format("load %{}[{}]", e.tensor.index, print_list(e.operands));
    case Expr::Kind::unary:
      return fmt::format("{}({})", enum_name(e.unary), print_list(e.operands));
    case Expr::Kind::binary:
      return fmt::format("{}({})", enum_name(e.binary), print_list(e.operands));
    case Expr::Kind::select:
      return fmt::format("select({})", print_list(e.operands));
    case Expr::Kind::cast:
      return fmt::format("cast({}, {})", enum_name(e.dtype), print_list(e.operands));
  }
  KE_ASSERT(false && "unknown expression kind");
}

ExprPtr substitute_axes(const ExprPtr& expr, const std::vector<ExprPtr>& replacements) {
  return Substitution(replacements).apply(expr);
}

}  // namespace ke::ir
