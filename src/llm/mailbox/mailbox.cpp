// SPDX-License-Identifier: Apache-2.0
#include "llm/mailbox/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/units.hpp"
#include "llm/mailbox/names.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

namespace {

constexpr std::string_view kRule = "---\n";

std::optional<int64_t> number_of(std::string_view name) {
  if (!name.ends_with(kPromptEnd)) return std::nullopt;
  name.remove_suffix(kPromptEnd.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool all = error == std::errc() && end == name.data() + name.size();
  return all && number > 0 ? std::optional(number) : std::nullopt;
}

// Where the prompt begins behind its head; 0 when there is none.
size_t head_length(std::string_view text) {
  if (!text.starts_with(kRule)) return 0;
  const size_t end = text.find("\n---\n", kRule.size() - 1);
  return end == std::string_view::npos ? 0 : end + 5;
}

// Of a field of the head; empty when it is not there.
std::string value_in(std::string_view text, std::string_view field) {
  const std::string_view head = text.substr(0, head_length(text));
  const std::string begin = fmt::format("\n{}: ", field);
  const size_t at = head.find(begin);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = head.substr(at + begin.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace

std::filesystem::path prompt_path(const std::filesystem::path& folder, int64_t number) {
  return folder / fmt::format("{:04}{}", number, kPromptEnd);
}

std::filesystem::path answer_path(const std::filesystem::path& folder, int64_t number) {
  return folder / fmt::format("{:04}{}", number, kAnswerEnd);
}

Result<std::vector<MailboxEntry>> list_mailbox(const std::filesystem::path& folder) {
  std::vector<MailboxEntry> entries;
  for (const std::string& name : TRY(os::list_directory(folder))) {
    const std::optional<int64_t> number = number_of(name);
    if (!number || name != prompt_path({}, *number).string()) continue;
    MailboxEntry entry{*number, {}, false, folder / name, answer_path(folder, *number)};
    const std::string text = TRY(os::read_file(entry.prompt, kPromptBytesMax));
    entry.digest = value_in(text, "digest");
    entry.asks = value_in(text, "asks");
    entry.answered = os::exists(entry.answer);
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &MailboxEntry::number);
  return entries;
}

Result<std::string> read_prompt(const std::filesystem::path& folder, int64_t number) {
  const std::string text = TRY(os::read_file(prompt_path(folder, number), kPromptBytesMax));
  return text.substr(head_length(text));
}

Result<void> answer_prompt(const std::filesystem::path& folder, int64_t number,
                           std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{Errc::invalid, "the answer is empty; nothing was written"};
  }
  if (!os::exists(prompt_path(folder, number))) {
    return Error{Errc::not_found,
                 fmt::format("there is no prompt {} in {}", number, folder.string())};
  }
  const std::filesystem::path answer = answer_path(folder, number);
  if (os::exists(answer)) {
    return Error{Errc::conflict, fmt::format("prompt {} has an answer; remove {} to give another",
                                             number, answer.string())};
  }
  return os::write_file_atomically(answer, text);
}

}  // namespace ke::llm
