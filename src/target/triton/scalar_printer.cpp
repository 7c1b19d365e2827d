// SPDX-License-Identifier: Apache-2.0
#include "target/triton/scalar_printer.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/assert.hpp"
#include "target/c_printer.hpp"
#include "target/triton/python.hpp"
#include "target/triton/scalar_ops.hpp"

namespace ke::triton {
namespace {

using ir::DType;
using ir::Expr;
using ir::ExprPtr;
using Kind = ir::Expr::Kind;

constexpr size_t kLongestInline = 48;

bool is_atom_text(std::string_view text) {
  return text.find_first_of(" ([") == std::string_view::npos;
}

std::string_view outer_parentheses_gone(std::string_view text) {
  if (text.size() < 2 || text.front() != '(') return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

// Whether the value of an index expression is at least zero, as far as its form shows.
bool is_not_negative(const Expr& expr) {
  if (expr.kind == Kind::constant) return expr.int_value >= 0;
  if (expr.kind == Kind::axis) return true;
  if (expr.kind != Kind::binary) return false;
  const bool keeps = expr.binary == ir::BinaryOp::add || expr.binary == ir::BinaryOp::mul ||
                     expr.binary == ir::BinaryOp::floor_div || expr.binary == ir::BinaryOp::mod ||
                     expr.binary == ir::BinaryOp::div || expr.binary == ir::BinaryOp::maximum ||
                     expr.binary == ir::BinaryOp::minimum;
  return keeps && is_not_negative(*expr.operands[0]) && is_not_negative(*expr.operands[1]);
}

}  // namespace

DType compute_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

std::string type_text(DType dtype) {
  return dtype == DType::boolean ? "tl.int1" : fmt::format("tl.{}", enum_name(dtype));
}

std::string constant_text(const Expr& constant) {
  if (constant.dtype == DType::boolean) return bool_text(constant.int_value != 0);
  if (!ir::is_floating(constant.dtype)) return fmt::format("{}", constant.int_value);
  const bool narrow = constant.dtype != DType::float64;
  return float_text(narrow ? static_cast<double>(static_cast<float>(constant.float_value))
                           : constant.float_value);
}

void ScalarPrinter::set_axes(std::vector<AxisBlock> axes, Tile tile) {
  axes_ = std::move(axes);
  tile_ = std::move(tile);
  frames_.assign(1, {});
  names_.clear();
}

void ScalarPrinter::line(const std::string& text) {
  out_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n";
}

std::string ScalarPrinter::fresh(std::string_view stem) {
  return fmt::format("{}{}", stem, next_++);
}

std::string ScalarPrinter::named(const std::string& text, std::string_view stem) {
  const auto found = names_.find(text);
  if (found != names_.end()) return found->second;
  const std::string name = fresh(stem);
  line(fmt::format("{} = {}", name, outer_parentheses_gone(text)));
  return names_[text] = name;
}

std::string ScalarPrinter::print(const ExprPtr& expr) {
  kept_.push_back(expr);
  return emit(expr, false);
}

std::string ScalarPrinter::emit(const ExprPtr& expr, bool as_index) {
  const bool bare = expr->kind == Kind::constant || expr->kind == Kind::axis;
  if (bare) return make(expr, as_index);
  if (!as_index) {
    for (size_t k = frames_.size(); k-- > 0;) {
      const auto found = frames_[k].known.find(expr.get());
      if (found != frames_[k].known.end()) return found->second;
    }
  }
  std::string text = make(expr, as_index);
  const bool index_text = as_index && text.size() <= kLongestInline;
  if (!is_atom_text(text) && !index_text) text = named(text, as_index ? "index" : "t");
  if (!as_index) frames_.back().known[expr.get()] = text;
  return text;
}

std::string ScalarPrinter::make(const ExprPtr& expr, bool as_index) {
  switch (expr->kind) {
    case Kind::constant: {
      const std::string text = constant_text(*expr);
      return text.front() == '-' ? "(" + text + ")" : text;
    }
    case Kind::axis: {
      const std::string& variable = axes_[static_cast<size_t>(expr->axis)].variable;
      return as_index ? variable : named(variable + ".to(tl.int64)", "t");
    }
    case Kind::load:
      return make_load(*expr);
    case Kind::unary: {
      const DType dtype = expr->operands[0]->dtype;
      const std::string text = unary_text(expr->unary, dtype, emit(expr->operands[0], as_index));
      if (text.empty()) why_not_ = fmt::format("{} has no form", enum_name(expr->unary));
      return text;
    }
    case Kind::binary: {
      const Expr &a = *expr->operands[0], &b = *expr->operands[1];
      const bool plain = a.dtype == DType::int64 && is_not_negative(a) && is_not_negative(b);
      std::string sides[2];
      for (size_t side = 0; side < 2; ++side) {
        sides[side] = emit(expr->operands[side], as_index);
        // Functions of ours take blocks alone.
        const bool bare = expr->operands[side]->kind == Kind::constant;
        if (bare && !plain && !ir::is_floating(a.dtype)) {
          sides[side] = fmt::format("tl.full([], {}, {})", sides[side], type_text(a.dtype));
        }
      }
      const std::string text = binary_text(expr->binary, a.dtype, sides[0], sides[1], plain);
      if (text.empty()) {
        why_not_ = fmt::format("{} of {} has no form", enum_name(expr->binary), enum_name(a.dtype));
      }
      return text;
    }
    case Kind::select:
      return make_select(*expr, as_index);
    case Kind::cast:
      return make_cast(*expr);
  }
  KE_ASSERT(false);
}

std::string ScalarPrinter::make_cast(const Expr& expr) {
  const Expr& from = *expr.operands[0];
  std::string a = emit(expr.operands[0], false);
  if (from.kind == Kind::constant)
    a = fmt::format("tl.full([], {}, {})", a, type_text(compute_dtype(from.dtype)));
  if (expr.dtype == DType::boolean) return fmt::format("({} != 0)", a);
  const std::string to = fmt::format("{}.to({})", a, type_text(expr.dtype));
  const bool half = compute_dtype(expr.dtype) != expr.dtype;  // rounded, then computed with
  if (half)
    return compute_dtype(from.dtype) == from.dtype || from.dtype != expr.dtype
               ? to + ".to(tl.float32)"
               : a;
  return compute_dtype(from.dtype) == expr.dtype ? a : to;
}

std::string ScalarPrinter::guard() const {
  std::string text;
  for (const Frame& frame : frames_) {
    if (frame.guard.empty()) continue;
    text += (text.empty() ? "" : " & ") + frame.guard;
  }
  return text;
}

std::set<int> ScalarPrinter::dimensions_of(const Expr& expr) const {
  std::set<int> found;
  if (expr.kind == Kind::axis) return {axes_[static_cast<size_t>(expr.axis)].dimension};
  for (const ExprPtr& operand : expr.operands) found.merge(dimensions_of(*operand));
  if (expr.kind == Kind::load && held_.contains(expr.tensor)) found.insert(0);
  return found;
}

std::set<int> ScalarPrinter::dimensions_of(const std::vector<ExprPtr>& indices) const {
  std::set<int> found;
  for (const ExprPtr& index : indices) found.merge(dimensions_of(*index));
  return found;
}

std::string ScalarPrinter::mask_of(const std::set<int>& dimensions) const {
  std::string text;
  for (const int d : dimensions) {
    const std::string& mask = tile_.masks[static_cast<size_t>(d)];
    if (!mask.empty()) text += (text.empty() ? "" : " & ") + mask;
  }
  return text;
}

std::string ScalarPrinter::offset(ir::TensorId tensor, const std::vector<ExprPtr>& indices) {
  const target::Address address = target::address_of(program_.tensor(tensor), indices);
  std::string text;
  for (const target::Address::Term& term : address.terms) {
    kept_.push_back(term.factor);
    const int64_t size = std::abs(term.coefficient);
    const std::string factor = emit(term.factor, true);
    const std::string_view sign = term.coefficient < 0 ? (text.empty() ? "-" : " - ")
                                  : text.empty()       ? ""
                                                       : " + ";
    text += fmt::format("{}{}", sign, factor);
    if (size != 1) text += fmt::format(" * {}", size);
  }
  if (address.base != 0 || text.empty()) {
    text += fmt::format("{}{}",
                        text.empty()       ? ""
                        : address.base < 0 ? " - "
                                           : " + ",
                        text.empty() ? address.base : std::abs(address.base));
  }
  return text;
}

std::string ScalarPrinter::make_load(const Expr& expr) {
  const auto held = held_.find(expr.tensor);
  if (held != held_.end()) return held->second;
  const ir::Tensor& tensor = program_.tensor(expr.tensor);
  std::string at = offset(expr.tensor, expr.operands);
  // An axis of stride 0 is no part of the address, and a single address takes no mask.
  std::set<int> dimensions;
  for (const auto& term : target::address_of(tensor, expr.operands).terms) {
    dimensions.merge(dimensions_of(*term.factor));
  }
  std::string mask;
  if (const std::string guarded = guard(); !guarded.empty()) {
    for (const Frame& frame : frames_) {
      for (const int d : frame.dimensions) {
        if (dimensions.insert(d).second) at += " + " + tile_.zeros[static_cast<size_t>(d)];
      }
    }
    mask = guarded;
  }
  const std::string existing = mask_of(dimensions);
  if (!existing.empty()) mask += (mask.empty() ? "" : " & ") + existing;
  const std::string masked = mask.empty() ? "" : fmt::format(", mask={}, other=0", mask);
  const std::string text = fmt::format("tl.load({} + {}{})", pointers_.at(expr.tensor), at, masked);
  const bool half = compute_dtype(tensor.dtype) != tensor.dtype;
  return half ? text + ".to(tl.float32)" : text;
}

std::string ScalarPrinter::make_select(const Expr& expr, bool as_index) {
  const std::string condition = emit(expr.operands[0], as_index);
  std::string sides[2];
  for (size_t side = 0; side < 2; ++side) {
    frames_.emplace_back();
    if (target::contains_load(*expr.operands[side + 1])) {
      frames_.back().guard = fmt::format("({} {} 0)", condition, side == 0 ? "!=" : "==");
      frames_.back().dimensions = dimensions_of(*expr.operands[0]);
    }
    sides[side] = emit(expr.operands[side + 1], as_index);
    if (!is_atom_text(sides[side])) sides[side] = named(sides[side], "t");
    frames_.pop_back();
    if (expr.operands[side + 1]->kind == Kind::constant && !as_index) {
      sides[side] =
          fmt::format("tl.full([], {}, {})", sides[side], type_text(compute_dtype(expr.dtype)));
    }
  }
  return fmt::format("tl.where({}, {}, {})", condition, sides[0], sides[1]);
}

void ScalarPrinter::store(ir::TensorId tensor, const std::vector<ExprPtr>& indices,
                          const std::string& value, const std::string& zeros) {
  std::string at = offset(tensor, indices);
  std::set<int> dimensions = dimensions_of(indices);
  if (dimensions.empty()) {  // one element, and a block can only be stored to a block
    at += " + " + zeros;
    dimensions.insert(0);
  }
  const std::string mask = mask_of(dimensions);
  line(fmt::format("tl.store({} + {}, {}{})", pointers_.at(tensor), at, value,
                   mask.empty() ? "" : ", mask=" + mask));
}

}  // namespace ke::triton
