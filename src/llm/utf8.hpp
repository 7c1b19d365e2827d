// SPDX-License-Identifier: Apache-2.0
//
// Whether a text is UTF-8. What is not cannot be recorded as JSON and come back the same.
#pragma once

#include <string_view>

namespace ke::llm {

bool is_utf8(std::string_view text);

}  // namespace ke::llm
