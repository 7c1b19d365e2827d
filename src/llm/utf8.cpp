// SPDX-License-Identifier: Apache-2.0
#include "llm/utf8.hpp"

#include <cstdint>

namespace ke::llm {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    if ((first >= 0x80 && first < 0xC2) || first >= 0xF5) return false;  // begins nothing
    const size_t more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    if (text.size() - i <= more) return false;
    uint32_t code = more == 0 ? first : first & (0x3FU >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3FU);
    }
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    const bool longer_than_needed = (more == 2 && code < 0x800) || (more == 3 && code < 0x10000);
    if (surrogate || longer_than_needed || code > 0x10FFFF) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace ke::llm
