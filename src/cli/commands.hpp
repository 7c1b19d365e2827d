// SPDX-License-Identifier: Apache-2.0
//
// One function a command: runs it, prints its result to stdout, returns the exit code
// (0 accepted or done, 1 nothing accepted or rejected; errors become exit code 2 in main).
#pragma once

#include <stop_token>

#include "base/events.hpp"
#include "base/result.hpp"
#include "cli/arguments.hpp"

namespace ke::cli {

struct Environment {
  EventSink& events;
  std::stop_token stop;
};

inline constexpr int kDone = 0;  // exit code

Result<int> run_command(const OptimizeArguments& arguments, const Environment& environment);
Result<int> run_command(const VerifyArguments& arguments, const Environment& environment);
Result<int> run_command(const BenchArguments& arguments, const Environment& environment);
Result<int> run_command(const SuiteRunArguments& arguments, const Environment& environment);
Result<int> run_command(const SuiteReportArguments& arguments, const Environment& environment);
Result<int> run_command(const SuiteKeepArguments& arguments, const Environment& environment);
Result<int> run_command(const ExportArguments& arguments, const Environment& environment);
Result<int> run_command(const ResumeArguments& arguments, const Environment& environment);
Result<int> run_command(const GraphArguments& arguments, const Environment& environment);
Result<int> run_command(const KnowledgeArguments& arguments, const Environment& environment);
Result<int> run_command(const ReplayArguments& arguments, const Environment& environment);
Result<int> run_command(const PromptArguments& arguments, const Environment& environment);
Result<int> run_command(const MailboxArguments& arguments, const Environment& environment);
Result<int> run_command(const McpArguments& arguments, const Environment& environment);
Result<int> run_command(const TargetsArguments& arguments, const Environment& environment);
Result<int> run_command(const DoctorArguments& arguments, const Environment& environment);
Result<int> run_command(const HelpText& help, const Environment& environment);

}  // namespace ke::cli
