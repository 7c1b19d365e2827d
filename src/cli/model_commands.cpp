// SPDX-License-Identifier: Apache-2.0
//
// The commands around language models: replay, prompt, mailbox.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "app/replay.hpp"
#include "base/json.hpp"
#include "cli/commands.hpp"
#include "cli/results.hpp"
#include "domain/limits.hpp"
#include "llm/mailbox/mailbox.hpp"
#include "os/file_system.hpp"

namespace ke::cli {
namespace {

constexpr int kDiffers = 1;

Json encode(const app::ReplayResult& result) {
  Json others = Json::array();
  for (const OtherVerdict& other : result.others) {
    others.push_back({{"node", other.node.value},
                      {"recorded", enum_name(other.recorded)},
                      {"now", enum_name(other.now)},
                      {"detail", other.detail}});
  }
  return {{"problem", result.problem},
          {"nodes", result.report.nodes},
          {"evaluations", result.report.evaluations},
          {"prompts", result.report.prompts},
          {"answers", result.report.answers},
          {"judged_again", result.judged_again},
          {"other_verdicts", std::move(others)}};
}

std::string replay_text(const app::ReplayResult& result) {
  const ReplayReport& report = result.report;
  std::string text = fmt::format(
      "{}: {} nodes, {} prompts, {} answers and {} evaluations played again; nothing differs\n",
      result.problem, report.nodes, report.prompts, report.answers, report.evaluations);
  if (!result.judged_again) return text;
  for (const OtherVerdict& other : result.others) {
    text += fmt::format("  node {}: {} when it was recorded, {} now; {}\n", other.node.value,
                        enum_name(other.recorded), enum_name(other.now), other.detail);
  }
  return text + fmt::format("  judged again: {} of {} verdicts are the same\n",
                            report.evaluations - static_cast<int64_t>(result.others.size()),
                            report.evaluations);
}

std::string mailbox_text(const std::vector<llm::MailboxEntry>& entries) {
  std::string text;
  for (const llm::MailboxEntry& entry : entries) {
    text += fmt::format("{:>5}  {:<8} {:<26} {}\n", entry.number,
                        entry.answered ? "answered" : "waiting",
                        entry.asks.empty() ? "-" : entry.asks, entry.prompt.string());
  }
  return text.empty() ? "no prompt has come in\n" : text;
}

std::string asked_by(const std::vector<llm::MailboxEntry>& entries, int64_t number) {
  const auto found = std::ranges::find(entries, number, &llm::MailboxEntry::number);
  return found == entries.end() ? std::string() : found->asks;
}

Result<std::string> answer_text(const std::string& file) {
  const Limits limits;
  if (file != "-") return os::read_file(file, limits.llm_answer_bytes_max).context("the answer");
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

}  // namespace

Result<int> run_command(const ReplayArguments& arguments, const Environment& environment) {
  const app::ReplayRequest request{.recording = arguments.recording,
                                   .judge_again = arguments.judge_again,
                                   .workspace = arguments.workspace};
  const app::ReplayResult result =
      TRY(app::replay(request, environment.events, environment.stop));
  print(arguments.json ? dump_json(encode(result)) + "\n" : replay_text(result));
  return result.others.empty() ? kDone : kDiffers;
}

Result<int> run_command(const PromptArguments& arguments, const Environment&) {
  app::Workspace workspace = TRY(app::Workspace::open(arguments.workspace, app::Access::read));
  print(TRY(app::prompt_text(NodeId{arguments.node}, workspace)));
  return kDone;
}

Result<int> run_command(const MailboxArguments& arguments, const Environment&) {
  switch (arguments.what) {
    case MailboxArguments::What::list:
      print(mailbox_text(TRY(llm::list_mailbox(arguments.folder).context("the mailbox"))));
      break;
    case MailboxArguments::What::show: {
      const std::string prompt =
          TRY(llm::read_prompt(arguments.folder, arguments.number).context("the prompt"));
      const std::string asks = asked_by(TRY(llm::list_mailbox(arguments.folder)), arguments.number);
      // Beside the prompt, which may go into a file or to a model as it is.
      if (!asks.empty()) std::cerr << fmt::format("prompt {} asks {}\n", arguments.number, asks);
      print(prompt);
      break;
    }
    case MailboxArguments::What::answer:
      TRY(llm::answer_prompt(arguments.folder, arguments.number,
                             TRY(answer_text(arguments.file))));
      print(fmt::format("prompt {} is answered\n", arguments.number));
      break;
  }
  return kDone;
}

}  // namespace ke::cli
