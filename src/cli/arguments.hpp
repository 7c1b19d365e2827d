// SPDX-License-Identifier: Apache-2.0
//
// The command line as data: what was asked for, checked for form but not yet for sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace ke::cli {

// What every command that judges shares.
struct JudgeArguments {
  std::string target = "x86";  // tidy: allow(target) because the command line has a default
  std::string precision = "strict";
  std::string dtype = "as-is";
  std::string sandbox = "auto";  // auto, required
  std::string libraries = "none";
  std::string determinism = "bitwise";
  std::string workspace = ".kernelevolve";
  int64_t threads = 0;  // 0: all this process may run on
  bool json = false;
};

struct SearchArguments {
  int64_t steps = 60;
  std::string time;  // "60s", "5m", "1h"; empty: no limit
  std::optional<uint64_t> seed;
  std::string policy = "greedy";
  std::string proposers;  // empty: synth,tune, and with a model llm,strategist as well
  int64_t confirm = 3;
  double target_speedup = 0;  // 0: none
  int64_t stall = 0;          // 0: none
  bool past_floor = false;
  std::vector<std::string> seed_kernels;
  std::vector<std::string> models;  // "openai:NAME"
  int64_t model_calls = 2;
  double model_share = 0.5;
  std::string sub_agents = "embedded";  // embedded, model
  std::optional<int64_t> budget_tokens;
  std::optional<int64_t> budget_calls;
  std::optional<double> budget_usd;
  std::string prices;
  std::string embeddings;
};

struct OptimizeArguments {
  JudgeArguments judge;
  SearchArguments search;
  std::string problem;
  std::string out;
};
struct VerifyArguments {
  JudgeArguments judge;
  std::string problem;
  std::string kernel;
  bool profile = false;
};
struct BenchArguments {
  JudgeArguments judge;
  std::string problem;
  std::string kernel;
  bool profile = false;
};
// Added to the command line of a suite's further processes.
inline constexpr const char* kJobMarker = "--as-job";

struct SuiteRunArguments {
  JudgeArguments judge;
  SearchArguments search;
  std::string suite;
  std::string levels;
  std::vector<std::string> select;
  std::string out = "results.jsonl";
  std::vector<std::string> kernels;  // files of kept kernels
  bool judge_only = false;
  bool resume = false;
  int jobs = 1;
  bool is_job = false;  // one of several processes, started by the first
};
struct SuiteReportArguments {
  std::vector<std::string> results;
  std::string html;
};
struct SuiteKeepArguments {
  std::string workspace = ".kernelevolve";
  std::string out;
  int64_t count = 2;
};
struct ExportArguments {
  std::string workspace = ".kernelevolve";
  int64_t node = 0;
  std::string as = "module";
  std::string out;
};
struct ResumeArguments {
  JudgeArguments judge;
  int64_t run = 0;  // 0: the latest
  std::string out;
};
struct GraphArguments {
  enum class What : uint8_t { ls, show, lineage, export_run };
  What what = What::ls;
  std::string workspace = ".kernelevolve";
  int64_t id = 0;
  int64_t limit = 20;
  std::string out;
};
struct KnowledgeArguments {
  enum class What : uint8_t { search, show, add, review };
  What what = What::search;
  std::string workspace = ".kernelevolve";
  std::string text;  // what is searched for, a document's path, or the file to add
  std::string mode = "words";
  std::string target;
  std::string bound;
  std::string embeddings;
  int64_t limit = 8;
  std::string accept;
  std::string reject;
  bool json = false;
};
struct ReplayArguments {
  std::string recording;
  bool judge_again = false;
  std::string workspace = ".kernelevolve";
  bool json = false;
};
struct PromptArguments {
  int64_t node = 0;
  std::string workspace = ".kernelevolve";
};
struct MailboxArguments {
  enum class What : uint8_t { list, show, answer };
  What what = What::list;
  std::string folder;
  int64_t number = 0;
  std::string file;  // "-": standard input
};
struct McpArguments {
  JudgeArguments judge;
  std::string embeddings;
};
struct TargetsArguments {};
struct DoctorArguments {
  std::string workspace = ".kernelevolve";
  bool remeasure = false;
  bool judge = false;
  bool json = false;
};
// Help or version text was asked for and is ready to print.
struct HelpText {
  std::string text;
};

using Command =
    std::variant<OptimizeArguments, VerifyArguments, BenchArguments, SuiteRunArguments,
                 SuiteReportArguments, SuiteKeepArguments, ExportArguments, ResumeArguments,
                 GraphArguments, KnowledgeArguments, ReplayArguments, PromptArguments,
                 MailboxArguments, McpArguments, TargetsArguments, DoctorArguments, HelpText>;

// Errc::invalid with one sentence when the command line is wrong.
Result<Command> parse_arguments(int argc, const char* const* argv);

// "90", "90s", "5m", "1.5h" to seconds.
Result<double> parse_duration(const std::string& text);

}  // namespace ke::cli
