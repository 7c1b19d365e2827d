// SPDX-License-Identifier: Apache-2.0
#include "target/triton/python.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace ke::triton {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kNameMax = 40;

// Python's keywords, what printed modules define or import, and builtins that they call.
constexpr std::array<std::string_view, 48> kReserved = {
    "False",   "None",     "True",     "and",    "as",    "assert", "async",   "await",
    "break",   "class",    "continue", "def",    "del",   "elif",   "else",    "except",
    "finally", "for",      "from",     "global", "if",    "import", "in",      "is",
    "lambda",  "nonlocal", "not",      "or",     "pass",  "raise",  "return",  "try",
    "while",   "with",     "yield",    "aten",   "dict",  "float",  "getattr", "isinstance",
    "list",    "self",     "tensors",  "tl",     "torch", "triton", "tuple",   "zip"};

}  // namespace

std::string Names::fresh(std::string_view wanted) {
  std::string name;
  for (const char c : wanted.substr(0, kNameMax)) {
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) ||
      name.front() == '_') {
    name.insert(0, "t");
  }
  const bool reserved = std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
  if (reserved) name += "_";
  std::string found = name;
  for (int i = 1; !taken_.insert(found).second; ++i) found = fmt::format("{}_{}", name, i);
  return found;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "float('-inf')";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string bool_text(bool value) { return value ? "True" : "False"; }

std::string python_string(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + "'";
}

std::string dtype_text(ir::DType dtype) {
  return dtype == ir::DType::boolean ? "torch.bool" : fmt::format("torch.{}", enum_name(dtype));
}

std::string list_text(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string tuple_text(const std::vector<int64_t>& values) {
  return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string comment(std::string_view text) {
  std::string out, line;
  const auto finish = [&] {
    out += line.empty() ? "#\n" : "# " + line + "\n";
    line.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && line.size() + 3 + word.size() > kColumns) finish();
    if (!word.empty()) line += (line.empty() ? "" : " ") + std::string(word);
    if (end < text.size() && text[end] == '\n') finish();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!line.empty()) finish();
  return out;
}

std::string indented(std::string_view text, int spaces) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) out += std::string(static_cast<size_t>(spaces), ' ');
    out += std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace ke::triton
