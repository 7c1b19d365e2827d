// SPDX-License-Identifier: Apache-2.0
#include "llm/answer_edits.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <charconv>

#include "llm/answer_blocks.hpp"

namespace ke::llm {

namespace {

constexpr size_t kEditsMax = 200;
constexpr size_t kPlacesMax = 1000;  // looked at before a text counts as ambiguous

bool is_run_of(std::string_view line, char mark) {
  line = without_end_blanks(line);
  return line.size() >= 5 && line.find_first_not_of(mark) == std::string_view::npos;
}

bool is_marker(std::string_view line, char mark, std::string_view word) {
  const size_t length = std::min(line.find_first_not_of(mark), line.size());
  if (length < 5) return false;
  const std::string_view rest = without_end_blanks(line.substr(length));
  return rest.empty() || rest == word || rest.substr(1) == word;
}

bool any_line(std::string_view text, bool (*wanted)(std::string_view)) {
  while (!text.empty()) {
    if (wanted(next_line(text))) return true;
  }
  return false;
}

std::string shown(std::string_view line) {
  line = without_end_blanks(line);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return fmt::format("'{}'", line.size() > 80 ? std::string(line.substr(0, 80)) + "…"
                                              : std::string(line));
}

// "@@ -12,7 +12,9 @@": the first number, as a position from 0; -1 when there is none.
int64_t hint_of(std::string_view header) {
  const size_t minus = header.find('-');
  if (minus == std::string_view::npos) return -1;
  int64_t line = -1;
  const char* end = header.data() + header.size();
  std::from_chars(header.data() + minus + 1, end, line);
  return line > 0 && line < (int64_t{1} << 40) ? line - 1 : line == 0 ? 0 : -1;
}

bool is_file_header(std::string_view line, std::string_view following) {
  return line.starts_with("--- ") && following.starts_with("+++ ");
}

// --- Finding and replacing lines ----------------------------------------------------------------

// "\nline\nline\n", blanks at the ends of lines left out: whole lines match as text.
std::string comparable(const std::vector<std::string>& lines) {
  std::string text = "\n";
  for (const std::string& line : lines) text.append(without_end_blanks(line)).append("\n");
  return text;
}

// Line numbers where `wanted` begins; at most `most`. memmem is linear, whatever the texts.
std::vector<int64_t> places_of(const std::vector<std::string>& wanted,
                               const std::vector<std::string>& lines, size_t most) {
  const std::string text = comparable(lines), part = comparable(wanted);
  std::vector<int64_t> places;
  const char* at = text.data();
  const char* counted = text.data();
  const char* const end = text.data() + text.size();
  int64_t line = 0;
  while (places.size() < most) {
    at = static_cast<const char*>(
        ::memmem(at, static_cast<size_t>(end - at), part.data(), part.size()));
    if (at == nullptr) break;
    line += std::count(counted, at, '\n');
    counted = at++;
    places.push_back(line);
  }
  return places;
}

OrProblem<int64_t> place_of(const Edit& edit, const std::vector<std::string>& lines,
                            int64_t shift) {
  const auto size = static_cast<int64_t>(lines.size());
  if (edit.before.empty()) {  // only diffs come here: a hunk that does nothing but add
    if (lines.empty() || edit.line_hint == 0) return 0;
    if (edit.line_hint >= size) return size;
    return problem(AnswerFault::bad_diff,
                   "A hunk of the diff only adds lines; give it some unchanged lines around them, "
                   "so that their place is certain.");
  }
  const size_t most = edit.line_hint < 0 ? 2 : kPlacesMax;
  const std::vector<int64_t> places = places_of(edit.before, lines, most);
  if (places.empty()) {
    const auto telling = std::ranges::find_if(
        edit.before, [](const std::string& line) { return !is_blank(line); });
    return problem(AnswerFault::not_found,
                   fmt::format("The lines to be changed that begin with {} are not in the kernel; "
                               "copy them exactly as they stand there.",
                               telling == edit.before.end() ? "''" : shown(*telling)));
  }
  if (places.size() == 1) return places.front();
  if (edit.line_hint < 0 || places.size() == kPlacesMax) {
    return problem(AnswerFault::ambiguous,
                   fmt::format("The lines to be changed that begin with {} stand in the kernel "
                               "more than once; include enough lines around them to be unique.",
                               shown(edit.before.front())));
  }
  const int64_t wanted = edit.line_hint + shift;
  return *std::ranges::min_element(places, {}, [&](int64_t at) { return std::abs(at - wanted); });
}

}  // namespace

tl::unexpected<AnswerProblem> problem(AnswerFault fault, std::string sentence) {
  return tl::make_unexpected(AnswerProblem{fault, std::move(sentence)});
}

bool holds_search_marker(std::string_view text) {
  return any_line(text, [](std::string_view line) {
    return line.starts_with("<<<<<") && is_marker(line, '<', "SEARCH");
  });
}

bool holds_hunk(std::string_view text) {
  return any_line(text, [](std::string_view line) { return line.starts_with("@@"); });
}

EditsResult parse_search_replace(std::string_view text) {
  enum class At { outside, search, replace } at = At::outside;
  std::vector<Edit> edits;
  const auto out_of_order = [] {
    return problem(AnswerFault::bad_edit,
                   "An edit is not of the form <<<<<<< SEARCH, lines, =======, lines, "
                   ">>>>>>> REPLACE, each marker on a line of its own.");
  };
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const bool opens = is_marker(line, '<', "SEARCH");
    const bool divides = is_run_of(line, '=');
    const bool closes = is_marker(line, '>', "REPLACE");
    if (at == At::outside) {
      if (!opens) continue;
      if (edits.size() == kEditsMax) {
        return problem(AnswerFault::bad_edit,
                       fmt::format("There are more than {} edits; write the whole kernel instead.",
                                   kEditsMax));
      }
      edits.emplace_back();
      at = At::search;
    } else if (opens || (closes && at == At::search)) {
      return out_of_order();
    } else if (at == At::search) {
      if (divides) at = At::replace;
      if (!divides) edits.back().before.emplace_back(line);
    } else if (closes) {
      at = At::outside;
    } else {
      edits.back().after.emplace_back(line);
    }
  }
  if (at != At::outside) return out_of_order();
  return edits;
}

EditsResult parse_diff(std::string_view text, bool strict) {
  std::vector<Edit> edits;
  bool inside = false;
  int64_t blanks = 0;  // empty lines: of the hunk if more of it follows, else only behind it
  const auto keep = [&](std::vector<std::string>* only, std::string_view line) {
    Edit& edit = edits.back();
    for (; blanks > 0; --blanks) {
      edit.before.emplace_back();
      edit.after.emplace_back();
    }
    if (only != &edit.after) edit.before.emplace_back(line.substr(1));
    if (only != &edit.before) edit.after.emplace_back(line.substr(1));
  };
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    std::string_view ahead = text;
    if (line.starts_with("@@")) {
      if (edits.size() == kEditsMax) {
        return problem(AnswerFault::bad_diff,
                       fmt::format("The diff has more than {} hunks; write the whole kernel "
                                   "instead.",
                                   kEditsMax));
      }
      edits.emplace_back();
      edits.back().line_hint = hint_of(line);
      inside = true;
      blanks = 0;
    } else if (is_file_header(line, next_line(ahead)) || line.starts_with("diff ")) {
      inside = false;
    } else if (!inside || line.starts_with('\\')) {
      continue;
    } else if (line.empty()) {
      ++blanks;
    } else if (line.starts_with('-')) {
      keep(&edits.back().before, line);
    } else if (line.starts_with('+')) {
      keep(&edits.back().after, line);
    } else if (line.starts_with(' ')) {
      keep(nullptr, line);
    } else if (strict) {
      return problem(AnswerFault::bad_diff,
                     fmt::format("The line {} of the diff begins with neither a blank, '+' nor "
                                 "'-'.",
                                 shown(line)));
    } else {
      inside = false;
    }
  }
  std::erase_if(edits, [](const Edit& edit) { return edit.before.empty() && edit.after.empty(); });
  return edits;
}

OrProblem<std::string> apply_edits(std::string_view base, const std::vector<Edit>& edits) {
  std::vector<std::string> lines;
  for (std::string_view rest = base; !rest.empty();) lines.emplace_back(next_line(rest));
  const std::vector<std::string> original = lines;
  int64_t shift = 0;  // by how much earlier hunks have moved what follows them
  for (const Edit& edit : edits) {
    const OrProblem<int64_t> at = place_of(edit, lines, shift);
    if (!at) return tl::make_unexpected(at.error());
    const auto from = lines.begin() + *at;
    const auto rest = lines.erase(from, from + static_cast<int64_t>(edit.before.size()));
    lines.insert(rest, edit.after.begin(), edit.after.end());
    shift += static_cast<int64_t>(edit.after.size()) - static_cast<int64_t>(edit.before.size());
  }
  if (lines == original) {
    return problem(AnswerFault::unchanged,
                   "The edits leave the kernel as it is; change something that matters.");
  }
  std::string result;
  for (const std::string& line : lines) result.append(line).append("\n");
  return result;
}

}  // namespace ke::llm
