// SPDX-License-Identifier: Apache-2.0
//
// Index simplification. Reshapes compose to (i * K + j) / K and % K; over known axis ranges nearly
// all of it folds away. int64 arithmetic is kept as a sum of coefficient * atom, where an atom is
// an axis, a floor_div, a mod or anything opaque. Range reasoning never assumes a range it cannot
// bound.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/assert.hpp"
#include "ir/expr.hpp"

namespace ke::ir {
namespace {

constexpr int64_t kRangeMax = int64_t{1} << 60;  // beyond it a range counts as unknown

struct Range {
  int64_t low = 0, high = 0;  // inclusive
};

struct Term {
  int64_t coefficient = 0;
  ExprPtr atom;
};

struct Sum {
  int64_t base = 0;
  std::vector<Term> terms;  // distinct atoms, nonzero coefficients
};

class Simplifier {
 public:
  explicit Simplifier(const std::vector<int64_t>& extents) : extents_(extents) {}

  ExprPtr simplify(const ExprPtr& e) {
    const auto found = done_.find(e.get());
    if (found != done_.end()) return found->second.result;
    ExprPtr result = simplify_new(e);
    done_.emplace(e.get(), Entry{e, result});
    return result;
  }

 private:
  struct Entry {
    ExprPtr key;  // keeps the address alive
    ExprPtr result;
  };

  ExprPtr simplify_new(const ExprPtr& e) {
    if (e->operands.empty()) return is_single_valued(*e) ? index_constant(0) : e;
    std::vector<ExprPtr> operands;
    bool changed = false;
    for (const ExprPtr& operand : e->operands) {
      operands.push_back(simplify(operand));
      changed |= operands.back() != operand;
    }
    if (e->kind == Expr::Kind::binary && e->operands[0]->dtype == DType::int64) {
      return simplify_int64(e->binary, operands[0], operands[1]);
    }
    return changed ? with_operands(*e, std::move(operands)) : e;
  }

  bool is_single_valued(const Expr& e) const {
    return e.kind == Expr::Kind::axis && static_cast<size_t>(e.axis) < extents_.size() &&
           extents_[static_cast<size_t>(e.axis)] == 1;
  }

  ExprPtr simplify_int64(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
    switch (op) {
      case BinaryOp::add:
      case BinaryOp::sub:
      case BinaryOp::mul:
        return build(sum_of(*binary(op, a, b), binary(op, a, b)));
      case BinaryOp::floor_div:
        return divide(a, b);
      case BinaryOp::mod:
        return modulo(a, b);
      case BinaryOp::eq:
      case BinaryOp::ne:
      case BinaryOp::lt:
      case BinaryOp::le:
      case BinaryOp::gt:
      case BinaryOp::ge:
        return decide(op, a, b);
      case BinaryOp::maximum:
      case BinaryOp::minimum:
        return extreme(op, a, b);
      case BinaryOp::div:
      case BinaryOp::fmod:
      case BinaryOp::pow:
      case BinaryOp::atan2:
      case BinaryOp::copysign:
      case BinaryOp::logical_and:
      case BinaryOp::logical_or:
      case BinaryOp::logical_xor:
      case BinaryOp::bit_and:
      case BinaryOp::bit_or:
      case BinaryOp::bit_xor:
      case BinaryOp::shift_left:
      case BinaryOp::shift_right:
        break;
    }
    return binary(op, a, b);
  }

  // --- Sums -------------------------------------------------------------------------------------
  static void add_term(Sum& sum, int64_t coefficient, const ExprPtr& atom) {
    for (auto term = sum.terms.begin(); term != sum.terms.end(); ++term) {
      if (!same(*term->atom, *atom)) continue;
      term->coefficient += coefficient;
      if (term->coefficient == 0) sum.terms.erase(term);
      return;
    }
    if (coefficient != 0) sum.terms.push_back({coefficient, atom});
  }

  // Sums hold small coefficients only (an overflow makes the whole expression opaque), so plain
  // int64 arithmetic on them is safe.
  static bool add_scaled(Sum& sum, const Sum& other, int64_t factor) {
    auto fits = [](int64_t a, int64_t b) {
      int64_t product = 0;
      return !__builtin_mul_overflow(a, b, &product) && product < kRangeMax && product > -kRangeMax;
    };
    if (!fits(other.base, factor)) return false;
    for (const Term& term : other.terms) {
      if (!fits(term.coefficient, factor)) return false;
    }
    sum.base += other.base * factor;
    for (const Term& term : other.terms) add_term(sum, term.coefficient * factor, term.atom);
    return std::abs(sum.base) < kRangeMax;
  }

  static Sum sum_of(const Expr& e, const ExprPtr& whole) {
    Sum sum;
    if (!collect(e, whole, 1, sum)) {
      sum = {};
      add_term(sum, 1, whole);
    }
    return sum;
  }

  static bool collect(const Expr& e, const ExprPtr& whole, int64_t factor, Sum& sum) {
    if (e.kind == Expr::Kind::constant) return add_scaled(sum, {e.int_value, {}}, factor);
    if (e.kind == Expr::Kind::binary && e.binary <= BinaryOp::mul) {
      const ExprPtr &a = e.operands[0], &b = e.operands[1];
      if (e.binary != BinaryOp::mul) {
        const int64_t sign = e.binary == BinaryOp::add ? 1 : -1;
        return collect(*a, a, factor, sum) && collect(*b, b, sign * factor, sum);
      }
      if (b->kind == Expr::Kind::constant) {
        int64_t scaled = 0;
        if (__builtin_mul_overflow(factor, b->int_value, &scaled)) return false;
        return collect(*a, a, scaled, sum);
      }
    }
    return add_scaled(sum, {0, {{1, whole}}}, factor);
  }

  // a * (x / a) + x % a is x: views that split and merge an axis again.
  void recombine(Sum& sum) {
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      const ExprPtr rest = sum.terms[i].atom;
      if (!is_binary(*rest, BinaryOp::mod)) continue;
      const ExprPtr quotient = divide(rest->operands[0], rest->operands[1]);
      int64_t wanted = 0;
      if (__builtin_mul_overflow(sum.terms[i].coefficient, rest->operands[1]->int_value, &wanted)) {
        continue;
      }
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        if (sum.terms[j].coefficient != wanted || !same(*sum.terms[j].atom, *quotient)) continue;
        const int64_t factor = sum.terms[i].coefficient;
        sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
        const ExprPtr& whole = rest->operands[0];
        if (add_scaled(sum, sum_of(*whole, whole), factor)) return recombine(sum);
        return;
      }
    }
  }

  ExprPtr build(Sum sum) {
    recombine(sum);
    ExprPtr result;
    for (const Term& term : sum.terms) {
      const bool negative = term.coefficient < 0 && result;
      const int64_t factor = negative ? -term.coefficient : term.coefficient;
      const ExprPtr scaled = binary(BinaryOp::mul, term.atom, index_constant(factor));
      result = result ? binary(negative ? BinaryOp::sub : BinaryOp::add, result, scaled) : scaled;
    }
    if (!result) return index_constant(sum.base);
    return binary(BinaryOp::add, result, index_constant(sum.base));
  }

  // --- Ranges -----------------------------------------------------------------------------------
  std::optional<Range> range_of(const ExprPtr& e) const {
    if (e->dtype != DType::int64) return std::nullopt;
    if (e->kind == Expr::Kind::constant) return bounded(e->int_value, e->int_value);
    if (e->kind == Expr::Kind::axis) {
      const auto position = static_cast<size_t>(e->axis);
      if (position >= extents_.size() || extents_[position] < 1) return std::nullopt;
      return bounded(0, extents_[position] - 1);
    }
    if (e->kind == Expr::Kind::select) {
      const auto a = range_of(e->operands[1]), b = range_of(e->operands[2]);
      if (!a || !b) return std::nullopt;
      return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
    }
    if (e->kind != Expr::Kind::binary) return std::nullopt;
    return range_of_binary(*e);
  }

  std::optional<Range> range_of_binary(const Expr& e) const {
    const ExprPtr& b = e.operands[1];
    if (e.binary == BinaryOp::mod && is_positive_constant(*b)) return Range{0, b->int_value - 1};
    const auto left = range_of(e.operands[0]), right = range_of(b);
    if (!left || !right) return std::nullopt;
    if (e.binary == BinaryOp::add) return bounded(left->low + right->low, left->high + right->high);
    if (e.binary == BinaryOp::sub) return bounded(left->low - right->high, left->high - right->low);
    if (e.binary == BinaryOp::maximum) {
      return Range{std::max(left->low, right->low), std::max(left->high, right->high)};
    }
    if (e.binary == BinaryOp::minimum) {
      return Range{std::min(left->low, right->low), std::min(left->high, right->high)};
    }
    if (b->kind != Expr::Kind::constant) return std::nullopt;
    if (e.binary == BinaryOp::mul) return scaled(*left, b->int_value);
    if (e.binary == BinaryOp::floor_div && b->int_value > 0) {
      return Range{floored(left->low, b->int_value), floored(left->high, b->int_value)};
    }
    return std::nullopt;
  }

  static std::optional<Range> bounded(int64_t low, int64_t high) {
    if (low <= -kRangeMax || high >= kRangeMax) return std::nullopt;
    return Range{low, high};
  }

  static std::optional<Range> scaled(Range range, int64_t factor) {
    int64_t a = 0, b = 0;
    if (__builtin_mul_overflow(range.low, factor, &a)) return std::nullopt;
    if (__builtin_mul_overflow(range.high, factor, &b)) return std::nullopt;
    return bounded(std::min(a, b), std::max(a, b));
  }

  std::optional<Range> range_of(const Sum& sum) const {
    std::optional<Range> total = bounded(sum.base, sum.base);
    for (const Term& term : sum.terms) {
      const auto atom = range_of(term.atom);
      const auto part = atom ? scaled(*atom, term.coefficient) : std::nullopt;
      if (!part || !total) return std::nullopt;
      total = bounded(total->low + part->low, total->high + part->high);
    }
    return total;
  }

  // --- Division and remainder
  // ---------------------------------------------------------------------
  static int64_t floored(int64_t a, int64_t b) { return a / b - (a % b < 0); }
  static bool is_binary(const Expr& e, BinaryOp op) {
    return e.kind == Expr::Kind::binary && e.binary == op &&
           e.operands[1]->kind == Expr::Kind::constant;
  }
  static bool is_positive_constant(const Expr& e) {
    return e.kind == Expr::Kind::constant && e.dtype == DType::int64 && e.int_value > 0;
  }

  // Splits sum into divisor * whole + rest, where rest's coefficients lie in [0, divisor) and whole
  // and rest have known ranges, so that nothing can wrap. False when a range is unknown.
  bool split(const Sum& sum, int64_t divisor, Sum& whole, Sum& rest) const {
    if (!range_of(sum)) return false;
    for (const Term& term : sum.terms) {
      // Coefficients that do not divide keep their sign: i - 1 stays i - 1, not i + (divisor - 1).
      if (term.coefficient % divisor == 0) {
        add_term(whole, term.coefficient / divisor, term.atom);
      } else {
        add_term(rest, term.coefficient, term.atom);
      }
    }
    whole.base = floored(sum.base, divisor);
    rest.base = sum.base - whole.base * divisor;
    const auto left_over = range_of(rest);
    // Prefer the base that puts the rest into [0, divisor).
    if (left_over && floored(left_over->low, divisor) == floored(left_over->high, divisor)) {
      const int64_t shift = floored(left_over->low, divisor);
      whole.base += shift;
      rest.base -= shift * divisor;
    }
    return range_of(whole) && range_of(rest);
  }

  bool lies_in(const Sum& sum, int64_t divisor) const {
    const auto range = range_of(sum);
    return range && range->low >= 0 && range->high < divisor;
  }

  ExprPtr divide(const ExprPtr& a, const ExprPtr& b) {
    if (!is_positive_constant(*b)) return binary(BinaryOp::floor_div, a, b);
    int64_t divisor = b->int_value;
    Sum whole, rest;
    if (!split(sum_of(*a, a), divisor, whole, rest)) return binary(BinaryOp::floor_div, a, b);
    if (!lies_in(rest, divisor)) {
      reduce_common_factor(rest, divisor);
      const ExprPtr quotient = divide_atom(build(rest), divisor);
      if (!add_scaled(whole, sum_of(*quotient, quotient), 1)) {
        return binary(BinaryOp::floor_div, a, b);
      }
    }
    return build(whole);
  }

  // (g * x + c) / (g * d) is (x + c / g) / d for any integer x.
  static void reduce_common_factor(Sum& sum, int64_t& divisor) {
    int64_t factor = divisor;
    for (const Term& term : sum.terms) factor = std::gcd(factor, term.coefficient);
    if (factor <= 1) return;
    for (Term& term : sum.terms) term.coefficient /= factor;
    sum.base = floored(sum.base, factor);
    divisor /= factor;
  }

  ExprPtr divide_atom(const ExprPtr& a, int64_t divisor) {
    const ExprPtr b = index_constant(divisor);
    if (is_binary(*a, BinaryOp::floor_div) && is_positive_constant(*a->operands[1])) {
      int64_t product = 0;
      if (!__builtin_mul_overflow(a->operands[1]->int_value, divisor, &product)) {
        return divide(a->operands[0], index_constant(product));
      }
    }
    if (is_binary(*a, BinaryOp::mod) && is_positive_constant(*a->operands[1]) &&
        a->operands[1]->int_value % divisor == 0) {
      const int64_t outer = a->operands[1]->int_value / divisor;
      return modulo(divide(a->operands[0], b), index_constant(outer));
    }
    return binary(BinaryOp::floor_div, a, b);
  }

  ExprPtr modulo(const ExprPtr& a, const ExprPtr& b) {
    if (!is_positive_constant(*b)) return binary(BinaryOp::mod, a, b);
    const int64_t divisor = b->int_value;
    Sum whole, rest;
    if (!split(sum_of(*a, a), divisor, whole, rest)) return binary(BinaryOp::mod, a, b);
    if (lies_in(rest, divisor)) return build(rest);
    const ExprPtr inner = build(rest);
    if (is_binary(*inner, BinaryOp::mod) && is_positive_constant(*inner->operands[1]) &&
        inner->operands[1]->int_value % divisor == 0) {
      return modulo(inner->operands[0], b);
    }
    return binary(BinaryOp::mod, inner, b);
  }

  // --- Comparisons ------------------------------------------------------------------------------
  ExprPtr decide(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
    Sum difference = sum_of(*a, a);
    const bool summed = add_scaled(difference, sum_of(*b, b), -1);
    // Both sides need ranges of their own: otherwise the difference could have wrapped.
    const auto range = range_of(a) && range_of(b) && summed ? range_of(difference) : std::nullopt;
    if (!range) return binary(op, a, b);
    auto known = [](bool value) { return constant_int(DType::boolean, value); };
    const bool always_less = range->high < 0, never_less = range->low >= 0;
    const bool always_more = range->low > 0, never_more = range->high <= 0;
    if (op == BinaryOp::lt && (always_less || never_less)) return known(always_less);
    if (op == BinaryOp::ge && (always_less || never_less)) return known(never_less);
    if (op == BinaryOp::gt && (always_more || never_more)) return known(always_more);
    if (op == BinaryOp::le && (always_more || never_more)) return known(never_more);
    const bool always_equal = range->low == 0 && range->high == 0;
    const bool never_equal = always_less || always_more;
    if (op == BinaryOp::eq && (always_equal || never_equal)) return known(always_equal);
    if (op == BinaryOp::ne && (always_equal || never_equal)) return known(never_equal);
    return binary(op, a, b);
  }

  ExprPtr extreme(BinaryOp op, const ExprPtr& a, const ExprPtr& b) {
    const auto left = range_of(a), right = range_of(b);
    if (!left || !right) return binary(op, a, b);
    const bool left_greater = left->low >= right->high, right_greater = right->low >= left->high;
    if (left_greater) return op == BinaryOp::maximum ? a : b;
    if (right_greater) return op == BinaryOp::maximum ? b : a;
    return binary(op, a, b);
  }

  const std::vector<int64_t>& extents_;
  std::unordered_map<const Expr*, Entry> done_;
};

}  // namespace

ExprPtr simplify_index(const ExprPtr& expr, const std::vector<int64_t>& extents) {
  return Simplifier(extents).simplify(expr);
}

}  // namespace ke::ir
