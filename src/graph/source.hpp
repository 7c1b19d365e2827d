// SPDX-License-Identifier: Apache-2.0
//
// When two kernel sources are the same kernel: comments and layout do not count, except the
// `ke:` comments that change how a source is built.
#pragma once

#include <string>
#include <string_view>

#include "base/digest.hpp"

namespace ke {

// C-like sources: comments are dropped (`// ke:flags …` lines stay), runs of blanks become one, and
// preprocessor lines keep their line. Text in quotes is kept as it is. Linear time. Modules in
// Python: domain/python_source.hpp.
std::string normalise_source(std::string_view source);

Digest normalised_digest(std::string_view source);

}  // namespace ke
