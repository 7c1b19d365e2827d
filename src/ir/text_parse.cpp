// SPDX-License-Identifier: Apache-2.0
//
// Reads the text form of a program (text_print.cpp). The text is hostile: recursion, counts and
// numbers are bounded, makers are called only with operands they accept, and a broken text yields
// one sentence that names the line. What the text means is verify()'s business.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "ir/program.hpp"
#include "ir/scalar.hpp"

namespace ke::ir {
namespace {

constexpr int kNestingMax = 200;
constexpr int64_t kItemsMax = 1 << 20;  // tensors, stages, constant values, expression nodes
constexpr size_t kTextRankMax = 64;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Program> parse() {
    while (next_line()) {
      if (accept("tensor")) {
        TRY(parse_tensor());
      } else if (accept("inputs")) {
        program_.inputs = TRY(parse_ids());
      } else if (accept("stage")) {
        TRY(parse_stage());
      } else if (accept("outputs")) {
        program_.outputs = TRY(parse_ids());
      } else {
        return fail("a line starts with tensor, inputs, stage or outputs");
      }
      if (!at_end()) return fail("something follows the end of the line");
    }
    return std::move(program_);
  }

 private:
  // --- Characters -------------------------------------------------------------------------------
  bool next_line() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      rest_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      if (!at_end()) return true;
    }
    return false;
  }

  Error fail(std::string_view what) const {
    return {Errc::invalid, fmt::format("line {} of the program: {}", line_, what)};
  }

  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  // Takes the token when it comes next; a token of letters must end where the word ends.
  bool accept(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    const bool word = is_word(token.back());
    if (word && rest_.size() > token.size() && is_word(rest_[token.size()])) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  Result<void> expect(std::string_view token) {
    if (accept(token)) return {};
    return fail(fmt::format("'{}' is missing", token));
  }
  std::string_view peek_word() {
    skip_spaces();
    size_t length = 0;
    while (length < rest_.size() && is_word(rest_[length])) ++length;
    return rest_.substr(0, length);
  }
  Result<std::string> word() {
    const std::string_view found = peek_word();
    if (found.empty()) return fail("a name is missing");
    rest_.remove_prefix(found.size());
    return std::string(found);
  }
  template <class E>
  Result<E> name_of(std::string_view what) {
    const auto value = parse_enum<E>(TRY(word()));
    if (!value) return fail(fmt::format("unknown {}", what));
    return *value;
  }
  template <class Number>
  Result<Number> number() {
    skip_spaces();
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) return fail("a number is missing or out of range");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  Result<int> small_number() {
    const auto value = TRY(number<int64_t>());
    if (value < 0 || value > std::numeric_limits<int>::max()) return fail("an id is out of range");
    return static_cast<int>(value);
  }
  Result<void> count_item() {
    if (++items_ > kItemsMax) return fail("the program is too large");
    return {};
  }
  // Items separated by commas up to `close`, which is taken.
  template <class Item>
  Result<void> list(std::string_view close, const Item& item) {
    if (accept(close)) return {};
    do {
      TRY(count_item());
      TRY(item());
    } while (accept(","));
    return expect(close);
  }

  // --- Lines ------------------------------------------------------------------------------------
  Result<std::vector<int64_t>> parse_numbers() {
    std::vector<int64_t> numbers;
    TRY(expect("["));
    TRY(list("]", [&]() -> Result<void> {
      numbers.push_back(TRY(number<int64_t>()));
      return {};
    }));
    if (numbers.size() > kTextRankMax) return fail("a tensor has too many dimensions");
    return numbers;
  }

  Result<std::vector<TensorId>> parse_ids() {
    std::vector<TensorId> ids;
    while (!at_end()) {
      if (!ids.empty()) TRY(expect(","));
      TRY(count_item());
      ids.push_back(TRY(parse_id()));
    }
    return ids;
  }

  Result<TensorId> parse_id() {
    TRY(expect("%"));
    return TensorId{TRY(small_number())};
  }

  Result<void> parse_tensor() {
    TRY(count_item());
    const TensorId id = TRY(parse_id());
    if (static_cast<size_t>(id.index) != program_.tensors.size()) {
      return fail("tensors are not numbered in order");
    }
    Tensor tensor;
    tensor.name = TRY(word());
    TRY(expect(":"));
    tensor.dtype = TRY(name_of<DType>("dtype"));
    tensor.shape = TRY(parse_numbers());
    for (int64_t extent : tensor.shape) {
      if (extent < 0) return fail("a tensor has a negative extent");
    }
    tensor.strides = accept("strides") ? TRY(parse_numbers()) : contiguous_strides(tensor.shape);
    tensor.role = TRY(name_of<Role>("role"));
    if (tensor.role == Role::constant) {
      TRY(expect("{"));
      TRY(list("}", [&]() -> Result<void> {
        tensor.values.push_back(TRY(number<double>()));
        return {};
      }));
    }
    program_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<std::vector<Axis>> parse_axes() {
    std::vector<Axis> axes;
    TRY(expect("["));
    TRY(list("]", [&]() -> Result<void> {
      Axis axis;
      axis.name = TRY(word());
      TRY(expect("="));
      axis.extent = TRY(number<int64_t>());
      axes.push_back(std::move(axis));
      return {};
    }));
    if (axes.size() > kTextRankMax) return fail("a stage has too many axes");
    return axes;
  }

  Result<void> parse_stage() {
    TRY(count_item());
    Stage stage;
    stage.output = TRY(parse_id());
    stage.parallel = TRY(parse_axes());
    TRY(expect("="));
    if (!accept("map")) {
      const bool scans = accept("scan");
      stage.reduce = TRY(name_of<ReduceOp>("reduction"));
      if (stage.reduce == ReduceOp::none) return fail("unknown reduction");
      if (scans) stage.scan = TRY(parse_scan_axis(stage.parallel));
      if (!scans) stage.reduction = TRY(parse_axes());
    }
    if (accept("in")) stage.accumulator = TRY(name_of<DType>("dtype"));
    TRY(expect(":"));
    stage.body = TRY(parse_expr(0));
    if (accept("#")) {
      skip_spaces();
      stage.origin = std::string(rest_);
      rest_ = {};
    }
    program_.stages.push_back(std::move(stage));
    return {};
  }

  // "[n]": the position of the axis called n.
  Result<int> parse_scan_axis(const std::vector<Axis>& axes) {
    TRY(expect("["));
    const std::string name = TRY(word());
    TRY(expect("]"));
    const auto found = std::ranges::find(axes, name, &Axis::name);
    if (found == axes.end()) return fail("a scan runs along an axis that the stage does not have");
    return static_cast<int>(found - axes.begin());
  }

  // --- Expressions ------------------------------------------------------------------------------
  Result<ExprPtr> parse_expr(int depth) {
    TRY(count_item());
    if (depth > kNestingMax) return fail("an expression is nested too deeply");
    skip_spaces();
    const std::string_view next = peek_word();
    const bool digit = !next.empty() && next.front() >= '0' && next.front() <= '9';
    if (rest_.starts_with("-") || digit || next == "inf" || next == "nan") return parse_constant();
    if (accept("true")) return constant_int(DType::boolean, 1);
    if (accept("false")) return constant_int(DType::boolean, 0);
    if (accept("load")) return parse_load(depth);
    if (next.size() > 1 && next.front() == 'i' &&
        next.find_first_not_of("0123456789", 1) == std::string_view::npos) {
      rest_.remove_prefix(1);
      return axis(TRY(small_number()));
    }
    return parse_call(depth);
  }

  Result<ExprPtr> parse_constant() {
    const std::string_view start = rest_;
    const auto real = TRY(number<double>());
    if (accept(":")) {
      const auto dtype = TRY(name_of<DType>("dtype"));
      if (is_floating(dtype)) return constant(dtype, real);
      const std::string_view after = rest_;
      rest_ = start;
      const auto whole = TRY(number<int64_t>());
      TRY(expect(":"));
      rest_ = after;
      return constant_int(dtype, whole);
    }
    rest_ = start;
    return index_constant(TRY(number<int64_t>()));
  }

  Result<ExprPtr> parse_load(int depth) {
    const TensorId id = TRY(parse_id());
    if (static_cast<size_t>(id.index) >= program_.tensors.size()) {
      return fail(fmt::format("%{} is not declared", id.index));
    }
    TRY(expect("["));
    std::vector<ExprPtr> indices = TRY(parse_operands("]", depth));
    return load(id, program_.tensor(id).dtype, std::move(indices));
  }

  Result<std::vector<ExprPtr>> parse_operands(std::string_view close, int depth) {
    std::vector<ExprPtr> operands;
    TRY(list(close, [&]() -> Result<void> {
      operands.push_back(TRY(parse_expr(depth + 1)));
      return {};
    }));
    return operands;
  }

  Result<ExprPtr> parse_call(int depth) {
    const std::string name = TRY(word());
    TRY(expect("("));
    if (name == "cast") {
      const auto dtype = TRY(name_of<DType>("dtype"));
      TRY(expect(","));
      const ExprPtr operand = TRY(parse_expr(depth + 1));
      TRY(expect(")"));
      return cast(dtype, operand);
    }
    const std::vector<ExprPtr> operands = TRY(parse_operands(")", depth));
    if (name == "select") return make_select(operands);
    if (const auto op = parse_enum<UnaryOp>(name)) {
      if (operands.size() != 1 || !accepts(*op, operands[0]->dtype)) {
        return fail(fmt::format("{} cannot take these operands", name));
      }
      return unary(*op, operands[0]);
    }
    const auto op = parse_enum<BinaryOp>(name);
    if (!op) return fail(fmt::format("unknown operation '{}'", name.substr(0, 40)));
    if (operands.size() != 2 || operands[0]->dtype != operands[1]->dtype ||
        !accepts(*op, operands[0]->dtype)) {
      return fail(fmt::format("{} cannot take these operands", name));
    }
    return binary(*op, operands[0], operands[1]);
  }

  Result<ExprPtr> make_select(const std::vector<ExprPtr>& operands) {
    if (operands.size() != 3 || operands[0]->dtype != DType::boolean ||
        operands[1]->dtype != operands[2]->dtype) {
      return fail("select cannot take these operands");
    }
    return select(operands[0], operands[1], operands[2]);
  }

  std::string_view text_;  // what follows the current line
  std::string_view rest_;  // what follows in the current line
  int line_ = 0;
  int64_t items_ = 0;
  Program program_;
};

}  // namespace

Result<Program> parse_program(std::string_view text) { return Parser(text).parse(); }

}  // namespace ke::ir
