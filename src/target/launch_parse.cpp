// SPDX-License-Identifier: Apache-2.0
//
// The parser of launch lines: one pass over each line, recursion bounded by kDepthMax.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "target/launch_plan.hpp"

namespace ke::target {
namespace {

using Op = LaunchStep::Op;
using Kind = LaunchArgument::Kind;

constexpr int kDepthMax = 32;
constexpr size_t kStepsMax = 1024;   // of one expression
constexpr int64_t kIndexMax = 4096;  // of a tensor or a dimension
constexpr size_t kNameMax = 200;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_number(char c) { return c >= '0' && c <= '9'; }

struct Infix {
  std::string_view sign;
  int level;  // higher binds tighter
  Op op;
};
// Longer signs before those they begin with.
constexpr Infix kInfix[] = {
    {"||", 1, Op::logical_or}, {"&&", 2, Op::logical_and}, {"==", 3, Op::eq}, {"!=", 3, Op::ne},
    {"<=", 3, Op::le},         {">=", 3, Op::ge},          {"<", 3, Op::lt},  {">", 3, Op::gt},
    {"+", 4, Op::add},         {"-", 4, Op::sub},          {"*", 5, Op::mul}, {"/", 5, Op::div},
    {"%", 5, Op::mod},
};

// The rest of one line.
class LineParser {
 public:
  explicit LineParser(std::string_view text) : text_(text) {}

  Result<LaunchLine> launch(const LaunchLimits& limits) {
    LaunchLine line;
    line.kernel = TRY(name("the kernel's name"));
    bool has_arguments = false;
    while (!at_end()) {
      const std::string field = TRY(name("grid=, block=, shared= or args="));
      if (!take("=")) return expected("= after " + field);
      if (field == "grid" && line.grid.empty()) {
        line.grid = TRY(extents());
      } else if (field == "block" && line.block.empty()) {
        line.block = TRY(extents());
      } else if (field == "shared" && line.shared.empty()) {
        line.shared = TRY(expression());
      } else if (field == "args" && !has_arguments) {
        line.arguments = TRY(arguments(limits));
        has_arguments = true;
      } else {
        return Error{Errc::invalid, fmt::format("the field {} is unknown or given twice", field)};
      }
    }
    if (line.grid.empty()) return expected("grid=(…)");
    if (line.block.empty()) return expected("block=(…)");
    if (!has_arguments) return expected("args=(…)");
    return line;
  }

  Result<LaunchExpression> whole_expression() {
    LaunchExpression steps = TRY(expression());
    if (!at_end()) return expected("the end of the line");
    return steps;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }
  bool take(std::string_view sign) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  Error expected(std::string_view what) {
    skip_blanks();
    const std::string_view rest = text_.substr(at_, 20);
    std::string shown;
    for (const char c : rest) shown += c >= ' ' && c <= '~' ? c : '?';
    return {Errc::invalid, fmt::format("expected {}, found {}", what,
                                       shown.empty() ? "the end of the line" : "'" + shown + "'")};
  }

  Result<std::string> name(std::string_view what) {
    skip_blanks();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_number(text_[end]))) ++end;
    if (end == at_ || is_number(text_[at_])) return expected(what);
    if (end - at_ > kNameMax) return Error{Errc::invalid, "a name is too long"};
    std::string found(text_.substr(at_, end - at_));
    at_ = end;
    return found;
  }

  Result<int64_t> number(int64_t most) {
    skip_blanks();
    if (at_ == text_.size() || !is_number(text_[at_])) return expected("a number");
    int64_t value = 0;
    for (; at_ < text_.size() && is_number(text_[at_]); ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value) || value > most) {
        return Error{Errc::invalid, fmt::format("a number is larger than {}", most)};
      }
    }
    return value;
  }

  Result<LaunchExpression> expression() {
    LaunchExpression steps;
    TRY(infix(steps, 1, 0));
    return steps;
  }

  Result<void> push(LaunchExpression& steps, LaunchStep step) const {
    if (steps.size() >= kStepsMax) return Error{Errc::invalid, "an expression is too long"};
    steps.push_back(step);
    return {};
  }

  std::optional<Infix> next_sign() {
    skip_blanks();
    for (const Infix& candidate : kInfix) {
      if (text_.substr(at_).starts_with(candidate.sign)) return candidate;
    }
    return std::nullopt;
  }

  Result<void> infix(LaunchExpression& steps, int level, int depth) {
    if (depth > kDepthMax) return Error{Errc::invalid, "an expression is nested too deeply"};
    TRY(operand(steps, depth));
    for (std::optional<Infix> sign = next_sign(); sign && sign->level >= level;
         sign = next_sign()) {
      at_ += sign->sign.size();
      TRY(infix(steps, sign->level + 1, depth + 1));
      TRY(push(steps, {sign->op}));
    }
    return {};
  }

  Result<void> operand(LaunchExpression& steps, int depth) {
    if (take("(")) {
      TRY(infix(steps, 1, depth + 1));
      if (!take(")")) return expected(")");
      return {};
    }
    skip_blanks();
    if (at_ < text_.size() && is_number(text_[at_])) {
      return push(steps, {Op::number, TRY(number(INT64_MAX))});
    }
    const std::string word = TRY(name("a value"));
    if (word == "n") return push(steps, {Op::output_size, 0});
    if (word == "min") return function(steps, Op::min, depth);
    if (word == "max") return function(steps, Op::max, depth);
    if (word == "ceil_div") return function(steps, Op::ceil_div, depth);
    const std::optional<LaunchStep> tensor = tensor_of(word);
    if (!tensor) return Error{Errc::invalid, fmt::format("the name {} has no value", word)};
    return push(steps, TRY(property(*tensor, word)));
  }

  Result<void> function(LaunchExpression& steps, Op op, int depth) {
    if (!take("(")) return expected("(");
    TRY(infix(steps, 1, depth + 1));
    if (!take(",")) return expected(",");
    TRY(infix(steps, 1, depth + 1));
    if (!take(")")) return expected(")");
    return push(steps, {op});
  }

  // in3 or out3; the step is its size.
  static std::optional<LaunchStep> tensor_of(std::string_view word) {
    const bool input = word.starts_with("in");
    if (!input && !word.starts_with("out")) return std::nullopt;
    const std::string_view digits = word.substr(input ? 2 : 3);
    if (digits.empty() || digits.size() > 4 || !std::ranges::all_of(digits, is_number)) {
      return std::nullopt;
    }
    int64_t index = 0;
    for (const char c : digits) index = index * 10 + (c - '0');
    return LaunchStep{input ? Op::input_size : Op::output_size, index};
  }

  // What follows a tensor's name in an expression.
  Result<LaunchStep> property(LaunchStep step, const std::string& word) {
    const bool input = step.op == Op::input_size;
    if (take("[")) {
      step.op = input ? Op::input_extent : Op::output_extent;
      step.dimension = TRY(number(kIndexMax));
      if (!take("]")) return expected("]");
      return step;
    }
    if (take(".")) {
      const std::string property = TRY(name("size or ndim"));
      if (property == "size") return step;
      step.op = input ? Op::input_ndim : Op::output_ndim;
      if (property == "ndim") return step;
    }
    return Error{
        Errc::invalid,
        fmt::format("{0} is a tensor; its numbers are {0}.size, {0}.ndim and {0}[0]", word)};
  }

  Result<std::vector<LaunchExpression>> extents() {
    std::vector<LaunchExpression> found;
    if (!take("(")) return expected("(");
    do {
      found.push_back(TRY(expression()));
    } while (found.size() < 3 && take(","));
    if (!take(")")) return expected(")");
    return found;
  }

  Result<std::vector<LaunchLine::Argument>> arguments(const LaunchLimits& limits) {
    std::vector<LaunchLine::Argument> found;
    if (!take("(")) return expected("(");
    if (take(")")) return found;
    do {
      if (found.size() == limits.arguments_max) {
        return Error{Errc::invalid,
                     fmt::format("there are more than {} arguments", limits.arguments_max)};
      }
      found.push_back(TRY(argument()));
    } while (take(","));
    if (!take(")")) return expected(")");
    return found;
  }

  // The word at hand, when no property of it follows.
  std::string whole_word() {
    skip_blanks();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_number(text_[end]))) ++end;
    const bool property = end < text_.size() && (text_[end] == '.' || text_[end] == '[');
    return std::string(property ? std::string_view() : text_.substr(at_, end - at_));
  }

  Result<LaunchLine::Argument> argument() {
    const std::string word = whole_word();
    if (const std::optional<LaunchStep> tensor = tensor_of(word)) {
      at_ += word.size();
      return LaunchLine::Argument{
          tensor->op == Op::input_size ? Kind::input : Kind::output, tensor->value, {}};
    }
    if (word == "scratch") {
      at_ += word.size();
      if (!take("+")) return LaunchLine::Argument{Kind::scratch, 0, {{Op::number, 0}}};
      return LaunchLine::Argument{Kind::scratch, 0, TRY(expression())};
    }
    return LaunchLine::Argument{Kind::integer, 0, TRY(expression())};
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The sections while lines come in.
class ScriptBuilder {
 public:
  Result<void> add(std::string_view text, int number, const LaunchLimits& limits) {
    constexpr std::string_view kCase = "case ", kScratch = "scratch ", kLaunch = "launch ";
    if (text.starts_with(kCase)) {
      if (!cases_ && !script_.sections.empty()) {
        return Error{Errc::invalid, "a ke:case line follows lines that are for every case"};
      }
      cases_ = true;
      script_.sections.emplace_back();
      script_.sections.back().condition =
          TRY(LineParser(text.substr(kCase.size())).whole_expression());
      return {};
    }
    if (script_.sections.empty()) script_.sections.emplace_back();
    LaunchSection& section = script_.sections.back();
    if (text.starts_with(kScratch)) {
      if (!section.scratch.empty()) return Error{Errc::invalid, "scratch is given twice"};
      section.scratch = TRY(LineParser(text.substr(kScratch.size())).whole_expression());
      return {};
    }
    section.launches.push_back(TRY(LineParser(text.substr(kLaunch.size())).launch(limits)));
    section.launches.back().number = number;
    return {};
  }

  static bool is_ours(std::string_view text) {
    return text.starts_with("case ") || text.starts_with("scratch ") || text.starts_with("launch ");
  }

  LaunchScript take() { return std::move(script_); }

 private:
  LaunchScript script_;
  bool cases_ = false;
};

}  // namespace

Result<LaunchScript> parse_launch_lines(std::string_view source, const LaunchLimits& limits) {
  constexpr std::string_view kMarker = "// ke:";
  ScriptBuilder builder;
  size_t lines = 0;
  int number = 0;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    ++number;
    if (!line.starts_with(kMarker)) continue;
    line.remove_prefix(kMarker.size());
    if (!ScriptBuilder::is_ours(line)) continue;
    if (line.size() > limits.line_bytes_max) {
      return Error{Errc::invalid,
                   fmt::format("line {} is longer than {} bytes", number, limits.line_bytes_max)};
    }
    if (++lines > limits.lines_max) {
      return Error{Errc::invalid,
                   fmt::format("there are more than {} launch lines", limits.lines_max)};
    }
    TRY(builder.add(line, number, limits).context(fmt::format("line {}", number)));
  }
  if (lines == 0) {
    return Error{Errc::invalid,
                 "the source has no `// ke:launch NAME grid=(…) block=(…) args=(…)` line, so "
                 "nothing would be launched"};
  }
  return builder.take();
}

}  // namespace ke::target
