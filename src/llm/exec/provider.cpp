// SPDX-License-Identifier: Apache-2.0
//
// Any command as a model: the prompt on standard input, the answer on standard output, for example
// a coding agent's print mode. It runs in an empty folder of its own, in its own process group,
// within limits, and sees of our environment only what Environment::for_child lists: no keys.
#include "llm/provider.hpp"

#include <fmt/format.h>

#include "llm/utf8.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"
#include "os/stop_event.hpp"

namespace ke::llm {

namespace {

// The last line with something in it: commands say there why they failed.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const size_t start = text.rfind('\n');
  if (start != std::string_view::npos) text.remove_prefix(start + 1);
  return std::string(text.substr(0, 300));
}

class ExecProvider final : public Provider {
 public:
  ExecProvider(std::string command, const ProviderContext& context)
      : command_(std::move(command)), context_(context) {}

  std::string id() const override { return "exec:" + command_; }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    const Result<os::TemporaryDirectory> folder = os::TemporaryDirectory::create();
    if (!folder) return Failure{FailureKind::unreachable, folder.error().to_string()};
    const os::StopEvent stop_event(stop);
    os::RunOptions options;
    options.process.argv = {"/bin/sh", "-c", command_};
    options.process.environment = context_.environment.for_child();
    options.process.working_directory = folder->path().string();
    options.input = plain_text(request);
    options.time_max = context_.limits.llm_total_max;
    options.output_bytes_max = context_.limits.llm_answer_bytes_max;
    options.stop_fd = stop_event.fd();
    if (on_delta) {
      options.on_output = [&](std::string_view text) { return on_delta(Delta{text}); };
    }
    const Nanoseconds start = context_.clock.now();
    Result<os::RunResult> run = os::run(options);
    if (!run) return Failure{FailureKind::unreachable, run.error().to_string()};
    Outcome outcome = judge(std::move(*run), request);
    if (outcome) outcome->elapsed = context_.clock.now() - start;
    return outcome;
  }

 private:
  Outcome judge(os::RunResult run, const CompletionRequest& request) const {
    const auto failure = [&](FailureKind kind, std::string_view what) {
      const std::string said = context_.environment.redact(last_line(run.error));
      Failure result{kind, fmt::format("the command '{}' {}", command_, what)};
      if (!said.empty()) result.message += ": " + said;
      return result;
    };
    if (run.output_cut) return failure(FailureKind::malformed, "writes too long an answer");
    if (run.timed_out) return failure(FailureKind::timed_out, "took too long");
    if (!run.stopped && !run.status.success()) {
      // The shell says so with 126 and 127; no second try will find the program.
      const bool missing = run.status.code == 126 || run.status.code == 127;
      return failure(missing ? FailureKind::refused : FailureKind::unreachable,
                     "ended with " + run.status.to_string());
    }
    if (context_.environment.redact(run.output) != run.output) {
      return failure(FailureKind::malformed, "wrote a key of this environment");
    }
    const bool blank = run.output.find_first_not_of(" \t\r\n") == std::string::npos;
    if (blank && !run.stopped) return failure(FailureKind::malformed, "wrote no answer");
    if (!is_utf8(run.output) && !run.stopped) {
      return failure(FailureKind::malformed, "wrote an answer that is not UTF-8");
    }
    Completion completion;
    completion.usage = estimate_usage(request, run.output);
    completion.text = std::move(run.output);
    completion.finish = run.stopped ? FinishReason::stopped_by_us : FinishReason::stop;
    completion.provider = id();
    return completion;
  }

  std::string command_;
  ProviderContext context_;
};

Result<std::unique_ptr<Provider>> make(std::string_view argument, const ProviderContext& context) {
  return std::unique_ptr<Provider>(
      std::make_unique<ExecProvider>(std::string(argument), context));
}

}  // namespace

extern const ProviderInfo provider_exec;
const ProviderInfo provider_exec{"exec", "COMMAND",
                                 "a command: prompt on its input, answer on its output", true,
                                 make};

}  // namespace ke::llm
