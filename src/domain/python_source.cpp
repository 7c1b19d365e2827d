// SPDX-License-Identifier: Apache-2.0
#include "domain/python_source.hpp"

#include <algorithm>

namespace ke {
namespace {

template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

bool is_python(std::string_view source) {
  bool found = false;
  each_line(source, [&](std::string_view line) {
    found = found || line.starts_with("class ModelNew(") || line.starts_with("class ModelNew:");
  });
  return found;
}

std::string normalise_python(std::string_view source) {
  const bool long_texts = source.find("\"\"\"") != source.npos || source.find("'''") != source.npos;
  if (long_texts) return std::string(source);
  std::string out;
  each_line(source, [&](std::string_view line) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') return;
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    out.append(line).push_back('\n');
  });
  return out;
}

}  // namespace ke
