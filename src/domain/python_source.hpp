// SPDX-License-Identifier: Apache-2.0
//
// Sources in Python, where what begins a comment in C++ divides numbers.
#pragma once

#include <string>
#include <string_view>

namespace ke {

// Whether the source is a Python module for a kernel: a line begins "class ModelNew(" or
// "class ModelNew:".
bool is_python(std::string_view source);

// Without lines that are comments or empty and without blanks at the end of lines. A source with
// text over several lines stays as it is.
std::string normalise_python(std::string_view source);

}  // namespace ke
