// SPDX-License-Identifier: Apache-2.0
//
// A folder as a model: prompts are written as files and answers are waited for, from a person or a
// program that reads the folder. See mailbox.hpp for the files.
#include "llm/provider.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "llm/mailbox/mailbox.hpp"
#include "llm/mailbox/names.hpp"
#include "llm/retry.hpp"
#include "llm/utf8.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

namespace {

constexpr Milliseconds kPoll{200};

Failure broken(const Error& error) { return Failure{FailureKind::unreachable, error.to_string()}; }

class MailboxProvider final : public Provider {
 public:
  MailboxProvider(std::filesystem::path folder, const ProviderContext& context)
      : folder_(std::move(folder)), context_(context) {}

  std::string id() const override { return "mailbox:" + folder_.string(); }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    const Nanoseconds start = context_.clock.now();
    const Result<int64_t> number = post(request);
    if (!number) return broken(number.error());
    Outcome outcome = wait_for(*number, request, stop);
    if (!outcome) return outcome;
    outcome->elapsed = context_.clock.now() - start;
    outcome->provider = id();
    if (on_delta && !outcome->text.empty() && !on_delta(Delta{outcome->text})) {
      outcome->finish = FinishReason::stopped_by_us;
    }
    return outcome;
  }

 private:
  // The number under which this prompt lies in the folder, old or new.
  Result<int64_t> post(const CompletionRequest& request) {
    const std::lock_guard lock(mutex_);
    const os::FileLock shared = TRY(os::FileLock::lock(folder_ / ".lock"));  // other processes
    const std::string digest = prompt_digest(request).hex();
    int64_t number = 1;
    for (const MailboxEntry& entry : TRY(list_mailbox(folder_))) {
      number = entry.number + 1;
      if (entry.digest == digest && used_.insert(entry.number).second) return entry.number;
    }
    // An answer without a prompt was for another question.
    while (os::exists(answer_path(folder_, number))) ++number;
    const std::string asks =
        request.purpose.empty() ? "" : fmt::format("asks: {}\n", request.purpose);
    const std::string head = fmt::format(
        "---\nprompt: {:04}\ndigest: {}\n{}output_tokens_max: {}\nanswer: {}\n---\n", number,
        digest, asks, request.output_tokens_max, answer_path({}, number).string());
    TRY(os::write_file_atomically(prompt_path(folder_, number), head + plain_text(request)));
    used_.insert(number);
    return number;
  }

  // An answer counts once two looks in a row found the same, because not everybody writes a file in
  // one go.
  Outcome wait_for(int64_t number, const CompletionRequest& request, const std::stop_token& stop) {
    const std::filesystem::path path = answer_path(folder_, number);
    const Nanoseconds deadline = context_.clock.now() + context_.limits.mailbox_wait_max;
    std::string before;
    Completion completion;
    while (true) {
      Result<std::string> text = os::read_file(path, context_.limits.llm_answer_bytes_max);
      if (!text && text.error().code != Errc::not_found) {
        return Failure{FailureKind::malformed, text.error().to_string()};
      }
      const bool something = text && text->find_first_not_of(" \t\r\n") != std::string::npos;
      if (something && *text == before) {
        if (!is_utf8(*text)) {
          return Failure{FailureKind::malformed,
                         fmt::format("the answer {} is not UTF-8", path.string())};
        }
        completion.text = std::move(*text);
        completion.usage = estimate_usage(request, completion.text);
        return completion;
      }
      before = something ? *text : "";
      if (!sleep_unless_stopped(context_.clock, kPoll, stop)) {
        completion.finish = FinishReason::stopped_by_us;
        return completion;
      }
      if (context_.clock.now() >= deadline) {
        return Failure{FailureKind::timed_out,
                       fmt::format("nobody answered {}", prompt_path(folder_, number).string())};
      }
    }
  }

  std::filesystem::path folder_;
  ProviderContext context_;
  std::mutex mutex_;
  std::set<int64_t> used_;  // numbers that this process has asked
};

Result<std::unique_ptr<Provider>> make(std::string_view argument, const ProviderContext& context) {
  const std::filesystem::path folder(argument);
  TRY(os::make_directories(folder));
  return std::unique_ptr<Provider>(std::make_unique<MailboxProvider>(folder, context));
}

}  // namespace

extern const ProviderInfo provider_mailbox;
const ProviderInfo provider_mailbox{
    "mailbox", "DIR", "a folder: prompts come out as files, answers go in as files", false, make};

}  // namespace ke::llm
