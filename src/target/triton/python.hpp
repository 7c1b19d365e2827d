// SPDX-License-Identifier: Apache-2.0
//
// Python as text: identifiers, literals, comments.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.hpp"

namespace ke::triton {

// Hands out identifiers, each once; none is a keyword, a builtin or a name that modules use.
class Names {
 public:
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

std::string float_text(double value);  // "1.5", "float('inf')"
std::string bool_text(bool value);
std::string python_string(std::string_view text);
std::string dtype_text(ir::DType dtype);                     // "torch.float32"
std::string list_text(const std::vector<int64_t>& values);   // "[1, 2]"
std::string tuple_text(const std::vector<int64_t>& values);  // "(1,)"
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

// Lines of at most 100 columns that start with "# ".
std::string comment(std::string_view text);

// Every line that is not empty, moved to the right.
std::string indented(std::string_view text, int spaces);

}  // namespace ke::triton
