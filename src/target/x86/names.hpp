// SPDX-License-Identifier: Apache-2.0
//
// Names of the printed code. Tensors bring names of their own, which may be any identifier.
#pragma once

#include <string>
#include <string_view>

#include "ir/program.hpp"

namespace ke::x86 {

// Whether the language, a helper or the code around the tensors may use this name.
bool is_taken(std::string_view name);

// The variable that points to a tensor's elements: its name, when that is taken with as many
// underscores as make it no other tensor's.
std::string variable_of(const ir::Program& program, const ir::Tensor& tensor);

}  // namespace ke::x86
