// SPDX-License-Identifier: Apache-2.0
//
// Tunables that a source declares for itself: a comment line
//
//   // ke:tune BLOCK_M in {32, 64, 128}
//
// followed by the definition it governs, `… BLOCK_M = 64;` or `#define BLOCK_M 64`, on the next
// line. Works on any language whose comment holds the `ke:tune` text; what does not parse is no
// tunable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ke {

struct Tunable {
  std::string name;
  std::vector<std::string> values;  // as written, at least two
  std::string current;              // the text of the definition's value
  size_t offset = 0;                // of that text in the source
};

std::vector<Tunable> find_tunables(std::string_view source);  // in order of appearance

// The source with the tunable's definition holding another value.
std::string with_value(std::string_view source, const Tunable& tunable, std::string_view value);

}  // namespace ke
