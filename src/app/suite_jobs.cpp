// SPDX-License-Identifier: Apache-2.0
#include "app/suite_jobs.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "app/suite_report.hpp"
#include "base/json.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"

extern char** environ;  // NOLINT: what POSIX calls it

namespace ke::app {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kGlance{200};
constexpr int64_t kCommandLineBytesMax = 1 << 20;
constexpr int64_t kRowsBytesMax = 256_MiB;

Result<std::vector<std::string>> own_command_line() {
  const std::string text = TRY(os::read_file("/proc/self/cmdline", kCommandLineBytesMax));
  std::vector<std::string> arguments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (arguments.empty()) return Error{Errc::internal, "this process has no command line"};
  arguments[0] = TRY(os::own_executable()).string();
  return arguments;
}

class Jobs {
 public:
  Jobs(const SuiteRequest& request, const fs::path& logs, EventSink& events)
      : request_(request), logs_(logs), events_(events) {}

  Result<void> start(int count, const std::string& marker) {
    TRY(os::make_directories(logs_));
    total_ = std::ssize(TRY(find_problems(request_)));
    std::vector<std::string> arguments = TRY(own_command_line());
    arguments.push_back(marker);
    // A shell sends what they say to a file.
    const std::string to_log = "log=$1; shift; exec \"$@\" >\"$log\" 2>&1";
    for (int i = 0; i < count; ++i) {
      os::ProcessOptions process;
      process.argv = {"sh", "-c", to_log, "sh", (logs_ / fmt::format("{}.log", i)).string()};
      process.argv.insert(process.argv.end(), arguments.begin(), arguments.end());
      for (char** one = environ; *one != nullptr; ++one) process.environment.emplace_back(*one);
      children_.push_back(TRY(os::spawn(process)));
    }
    return {};
  }

  // Until all have ended; `stop` is passed on.
  Result<void> wait(const std::stop_token& stop) {
    bool told = false;
    while (true) {
      if (stop.stop_requested() && !told) {
        told = true;
        for (const os::Child& child : children_) child.signal_group(SIGINT);
      }
      size_t ended = 0;
      for (os::Child& child : children_) {
        if (TRY(child.wait(Nanoseconds(0)))) ++ended;
      }
      TRY(tell_rows());
      if (ended == children_.size()) return {};
      std::this_thread::sleep_for(kGlance);
    }
  }

 private:
  Result<void> tell_rows() {
    if (!os::exists(request_.out)) return {};
    const auto rows =
        TRY(parse_suite_results(TRY(os::read_file(request_.out, kRowsBytesMax))));
    const auto count = std::count_if(rows.begin(), rows.end(), [&](const OptimizeReport& row) {
      return row.target == request_.session.target;
    });
    for (size_t i = told_rows_; i < rows.size(); ++i) {
      const OptimizeReport& row = rows[i];
      const auto speedup = row.speedup();
      events_.emit("stage",
                   {{"what", fmt::format("{} of {}: {}: {}{}", count, total_, row.problem,
                                         row.error.empty() ? row.verdict : row.error,
                                         speedup ? fmt::format(" {:.2f}x", *speedup) : "")}});
    }
    told_rows_ = std::max(told_rows_, rows.size());
    return {};
  }

  const SuiteRequest& request_;
  fs::path logs_;
  EventSink& events_;
  std::vector<os::Child> children_;
  size_t told_rows_ = 0;
  int64_t total_ = 0;
};

}  // namespace

Result<std::vector<OptimizeReport>> run_suite_jobs(const SuiteRequest& request, int jobs,
                                                   const std::string& marker,
                                                   Workspace& workspace, EventSink& events,
                                                   const std::stop_token& stop) {
  if (!request.resume && os::exists(request.out)) {
    return Error{Errc::conflict, fmt::format("{} already holds results; add --resume to go on with "
                                             "them or choose another --out.",
                                             request.out)};
  }
  {
    Jobs running(request, workspace.folder() / "jobs", events);
    TRY(running.start(jobs, marker));
    TRY(running.wait(stop));
  }
  SuiteRequest rest = request;
  rest.resume = true;
  return run_suite(rest, workspace, events, stop);
}

}  // namespace ke::app
