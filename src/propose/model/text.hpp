// SPDX-License-Identifier: Apache-2.0
//
// Text on its way into a prompt. Sources, notes, compiler output and documents are written by
// others: none of it may break the prompt's structure, name this machine's folders, or be other
// than UTF-8 (which could not be recorded and come back the same).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace ke::model {

// Invalid UTF-8 becomes U+FFFD, and so do control characters but line ends and tabs.
std::string as_utf8(std::string_view text);

// "/usr/include/c++/12/cmath:42" becomes "cmath:42".
std::string without_paths(std::string_view text);

// One line without backticks or paths, for a sentence or a list; cut at bytes_max.
std::string one_line(std::string_view text, size_t bytes_max);

// The first whole lines that fit, and a line that says how many are missing. Never longer than
// bytes_max plus that line.
std::string head(std::string_view text, size_t bytes_max);

// A fenced block whose fence is longer than any run of backticks inside.
std::string fenced(std::string_view text, std::string_view language = {});

// Replaces every {{name}} of a template in one pass, so that values are never read as templates.
// Line ends after a value are the template's business; the value's own are dropped.
// Each name of the template has to be given, and the other way round.
using Values = std::initializer_list<std::pair<std::string_view, std::string_view>>;
std::string fill(std::string_view text, const Values& values);

}  // namespace ke::model
