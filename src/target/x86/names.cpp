// SPDX-License-Identifier: Apache-2.0
#include "target/x86/names.hpp"

#include <algorithm>
#include <cctype>

#include "target/c_printer.hpp"

namespace ke::x86 {
namespace {

// Variables and functions of the printed code that stand beside tensors.
constexpr std::string_view kOwn[] = {
    "argument", "arguments",   "begin",     "best",    "better", "block",        "context",  "end",
    "first",    "first_task",  "from",      "inputs",  "lane",   "lanes",        "last",     "main",
    "matches",  "input_count", "outer",     "outputs", "part",   "output_count", "position", "row",
    "row_end",  "same",        "scratch",   "single",  "task",   "tasks",        "term",     "to",
    "top",      "total",       "transpose", "value",   "where"};

// Of those that end in a number.
constexpr std::string_view kNumbered[] = {"copy", "d", "partial"};

constexpr std::string_view kBeginnings[] = {"ke_",     "load_",     "store_",  "stream_",
                                            "gather_", "round_to_", "lane_of_"};
constexpr std::string_view kEndings[] = {"_of",    "_of_lanes", "_acc",   "_at",      "_row",
                                         "_lanes", "_one",      "_block", "_scratch", "_arguments"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

template <size_t N>
bool contains(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// int32_t, bf16, f32x8 and the like: letters, digits, then a suffix of the sort.
bool is_type(std::string_view name) {
  const size_t digits = std::min(name.find_first_of("0123456789"), name.size());
  const std::string_view letters = name.substr(0, digits);
  if (letters == "int" || letters == "uint") return name.ends_with("_t");
  if (letters != "f" && letters != "bf" && letters != "i" && letters != "u") return false;
  const size_t after = std::min(name.find_first_not_of("0123456789", digits), name.size());
  return after < name.size() && name[after] == 'x';
}

}  // namespace

bool is_taken(std::string_view name) {
  if (name.ends_with('_')) return false;  // which nothing that is printed does
  if (target::is_keyword(name) || contains(kOwn, name) || is_type(name)) return true;
  const auto begins = [&](std::string_view beginning) { return name.starts_with(beginning); };
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (std::any_of(std::begin(kBeginnings), std::end(kBeginnings), begins)) return true;
  if (std::any_of(std::begin(kEndings), std::end(kEndings), ends)) return true;
  constexpr std::string_view kernel = "kernel";  // functions: kernel0_softmax
  if (begins(kernel) && name.size() > kernel.size() && is_digit(name[kernel.size()])) return true;
  const std::string_view stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
  return stem.size() < name.size() && contains(kNumbered, stem);
}

std::string variable_of(const ir::Program& program, const ir::Tensor& tensor) {
  std::string name = tensor.name;
  const auto is_name_of = [&](const ir::Tensor& other) { return other.name == name; };
  if (!is_taken(name)) return name;
  do {
    name += '_';
  } while (std::any_of(program.tensors.begin(), program.tensors.end(), is_name_of));
  return name;
}

}  // namespace ke::x86
