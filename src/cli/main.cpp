// SPDX-License-Identifier: Apache-2.0
//
// The binary: parses, runs one command, turns errors into one sentence and exit code 2.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/session.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "eval/launcher/child.hpp"
#include "eval/runner/client.hpp"
#include "eval/runner/host.hpp"
#include "os/clock.hpp"
#include "os/terminal.hpp"
#include "target/target.hpp"

namespace {

constexpr int kExitError = 2;

int fail(const ke::Error& error) {
  fmt::print(stderr, "kernelevolve: {}\n", error.to_string());
  return kExitError;
}

// Turns the process's signals into a stop request.
class StopBridge {
 public:
  explicit StopBridge(ke::os::StopSignal& signal)
      : watcher_([this, &signal](const std::stop_token& end) {
          while (!end.stop_requested()) {
            if (signal.requested()) {
              fmt::print(stderr,
                         "\nstopping after the evaluation under way; again to end at once\n");
              source_.request_stop();
              return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_;  // last: it uses the members above
};

int run(int argc, char** argv) {
  auto command = ke::cli::parse_arguments(argc, argv);
  if (!command) return fail(command.error());
  auto signal = ke::os::StopSignal::install();
  if (!signal) return fail(signal.error());
  const StopBridge bridge(**signal);
  ke::os::SystemClock clock;
  const int width = ke::os::terminal_width(STDERR_FILENO).value_or(0);
  ke::cli::Progress progress(clock, width);
  const ke::cli::Environment environment{progress, bridge.token()};
  const auto code = std::visit(
      [&](const auto& arguments) { return ke::cli::run_command(arguments, environment); },
      *command);
  progress.finish();
  if (!code) return fail(code.error());
  return *code;
}

// In a build room: a target's own compiler.
int compile(int argc, char** argv) {
  const ke::TargetInfo* info = ke::find_target(argv[2]);
  if (info == nullptr || info->compile == nullptr) {
    return fail({ke::Errc::invalid, fmt::format("the target {} has no compiler here", argv[2])});
  }
  return info->compile(std::vector<std::string>(argv + 3, argv + argc));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], ke::app::kRunnerHostCommand) == 0) {
    return ke::runner_host_main(ke::runner::kHostSocket);
  }
  if (argc == 3 && std::strcmp(argv[1], ke::app::kLauncherCommand) == 0) {
    return ke::launcher::child_main(argv[2]);
  }
  if (argc > 2 && std::strcmp(argv[1], ke::kCompileCommand) == 0) return compile(argc, argv);
  return run(argc, argv);
}
