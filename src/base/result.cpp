// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

namespace ke {

std::string Error::to_string() const {
  std::string text;
  for (auto it = context.rbegin(); it != context.rend(); ++it) text += *it + ": ";
  return text + message;
}

}  // namespace ke
