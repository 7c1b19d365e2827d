// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace ke::cli {
namespace {

constexpr const char* kAbout =
    "Turns a PyTorch file into the fastest kernel that was proved right and measured faster.";

// Holds every command's arguments while CLI11 fills them.
struct Parser {
  CLI::App app{kAbout, "kernelevolve"};
  OptimizeArguments optimize;
  VerifyArguments verify;
  BenchArguments bench;
  SuiteRunArguments suite_run;
  SuiteReportArguments suite_report;
  SuiteKeepArguments suite_keep;
  ExportArguments export_node;
  ResumeArguments resume;
  GraphArguments graph;
  KnowledgeArguments knowledge;
  ReplayArguments replay;
  PromptArguments prompt;
  MailboxArguments mailbox;
  McpArguments mcp;
  DoctorArguments doctor;
};

void add_session_options(CLI::App& command, JudgeArguments& judge) {
  command.add_option("--target", judge.target, "hardware and language; see `kernelevolve targets`")
      ->capture_default_str();
  command.add_option("--precision", judge.precision, "what arithmetic counts as right")
      ->check(CLI::IsMember({"strict", "ieee", "tf32", "kernelbench"}))
      ->capture_default_str();
  command.add_option("--dtype", judge.dtype, "run the problem in this floating type")
      ->check(CLI::IsMember({"as-is", "fp16", "bf16"}))
      ->capture_default_str();
  command
      .add_option("--sandbox", judge.sandbox,
                  "auto uses what the machine offers and reports it; required refuses to run "
                  "without all of it")
      ->check(CLI::IsMember({"auto", "required"}))
      ->capture_default_str();
  command
      .add_option("--libraries", judge.libraries,
                  "what a kernel may link: none, any, or names as after -l, such as openblas,mvec")
      ->capture_default_str();
  command
      .add_option("--determinism", judge.determinism,
                  "what calls with the same inputs must agree in: bitwise, or budget, where a "
                  "kernel whose bits differ must be right in each of many runs")
      ->check(CLI::IsMember({"bitwise", "budget"}))
      ->capture_default_str();
  command.add_option("--workspace", judge.workspace, "folder of the experience graph")
      ->capture_default_str();
  command
      .add_option("--threads", judge.threads,
                  "threads for kernel and baselines alike (0: all available)")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void add_judge_options(CLI::App& command, JudgeArguments& judge) {
  add_session_options(command, judge);
  command.add_flag("--json", judge.json, "print one JSON object to stdout");
}

void add_embeddings_option(CLI::App& command, std::string& embeddings) {
  command.add_option("--embeddings", embeddings,
                     "a model that finds documents by meaning as well as by words: openai:NAME; "
                     "endpoint and key as for --model");
}

void add_search_options(CLI::App& command, SearchArguments& search) {
  command.add_option("--steps", search.steps, "candidates to evaluate at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--time", search.time, "wall time a problem, as 90s, 5m or 1h");
  command.add_option("--seed", search.seed, "makes the search repeatable (default: random)");
  command.add_option("--policy", search.policy, "selection policy: greedy, mcts, islands")
      ->capture_default_str();
  command.add_option("--proposers", search.proposers,
                     "comma-separated: synth, tune and, with a model, llm, strategist (default: "
                     "all of them)");
  command
      .add_option("--confirm", search.confirm,
                  "how many of the best are judged again at the end, with fresh seeds")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--target-speedup", search.target_speedup, "stop when reached (0: never)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--stall", search.stall,
                  "stop after this many steps without a 1 % gain (0: never)")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--past-floor", search.past_floor,
                   "go on when the best kernel is within 10 % of the physical floor");
  command.add_option("--seed-kernel", search.seed_kernels,
                     "a kernel source to start from (repeatable)");
}

void add_model_options(CLI::App& command, SearchArguments& search) {
  command
      .add_option("--model", search.models,
                  "a language model that proposes as well (repeatable): openai:NAME, "
                  "anthropic:NAME, exec:COMMAND, mailbox:DIR, replay:FILE; endpoints and keys come "
                  "from the environment or a .env file")
      ->allow_extra_args(false);
  command.add_option("--model-calls", search.model_calls, "calls in flight at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--model-share", search.model_share,
                  "share of the steps that waits for models while they answer")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--sub-agents", search.sub_agents,
                  "who diagnoses a node and chooses documents before a model proposes: embedded "
                  "(no call) or model (two calls or more a proposal)")
      ->check(CLI::IsMember({"embedded", "model"}))
      ->capture_default_str();
  command.add_option("--budget-tokens", search.budget_tokens, "tokens to spend on models at most")
      ->check(CLI::PositiveNumber);
  command.add_option("--budget-usd", search.budget_usd, "money to spend on models at most")
      ->check(CLI::PositiveNumber);
  command.add_option("--budget-calls", search.budget_calls, "calls of models at most")
      ->check(CLI::PositiveNumber);
  command.add_option("--prices", search.prices, "JSON file with the prices of models");
  add_embeddings_option(command, search.embeddings);
}

void add_profile_option(CLI::App& command, bool& profile) {
  command.add_flag("--profile", profile,
                   "also say what tools see in an accepted kernel, and what is counted as it runs");
}

void add_problem_commands(Parser& parser) {
  CLI::App* optimize = parser.app.add_subcommand(
      "optimize", "search for the fastest kernel of a problem that the judge accepts");
  optimize->add_option("problem", parser.optimize.problem, "PyTorch file in KernelBench's format")
      ->required();
  optimize->add_option("--out", parser.optimize.out, "write the best kernel's source here");
  add_search_options(*optimize, parser.optimize.search);
  add_model_options(*optimize, parser.optimize.search);
  add_judge_options(*optimize, parser.optimize.judge);

  CLI::App* verify =
      parser.app.add_subcommand("verify", "judge one kernel: 0 accepted, 1 rejected, 2 could not");
  verify->add_option("problem", parser.verify.problem, "PyTorch file")->required();
  verify->add_option("kernel", parser.verify.kernel, "kernel source")->required();
  add_profile_option(*verify, parser.verify.profile);
  add_judge_options(*verify, parser.verify.judge);

  CLI::App* bench = parser.app.add_subcommand(
      "bench", "time an accepted kernel against eager PyTorch and torch.compile");
  bench->add_option("problem", parser.bench.problem, "PyTorch file")->required();
  bench->add_option("kernel", parser.bench.kernel, "kernel source")->required();
  add_profile_option(*bench, parser.bench.profile);
  add_judge_options(*bench, parser.bench.judge);

  CLI::App* resume =
      parser.app.add_subcommand("resume", "continue a run that was stopped or killed");
  resume->add_option("run", parser.resume.run, "run id (default: the latest)");
  resume->add_option("--out", parser.resume.out, "write the best kernel's source here");
  resume->add_option("--workspace", parser.resume.judge.workspace)->capture_default_str();
  resume->add_flag("--json", parser.resume.judge.json, "print one JSON object to stdout");
}

void add_suite_commands(Parser& parser) {
  CLI::App* suite = parser.app.add_subcommand("suite", "many problems: run and report");
  suite->require_subcommand(1);
  CLI::App* run = suite->add_subcommand("run", "optimize every problem of a suite");
  run->add_option("suite", parser.suite_run.suite,
                  "a folder of problems (level folders are found), or `examples`")
      ->required();
  run->add_option("--levels", parser.suite_run.levels, "comma-separated level numbers");
  run->add_option("--select", parser.suite_run.select,
                  "glob on problem names, as level1/19_* (repeatable, or comma-separated)");
  run->add_option("--out", parser.suite_run.out, "results, one JSON object a line")
      ->capture_default_str();
  run->add_flag("--resume", parser.suite_run.resume, "skip problems already in --out");
  run->add_option("--jobs", parser.suite_run.jobs,
                  "problems at a time; for devices, whose measurements take turns while the rest "
                  "goes on side by side")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  CLI::Option* kernels = run->add_option(
      "--kernels", parser.suite_run.kernels,
      "file of `suite keep` (repeatable): each problem's search begins with its kernels, which "
      "count as steps");
  run->add_flag("--judge-only", parser.suite_run.judge_only,
                "search nothing: judge the kept kernels anew, for a report")
      ->needs(kernels);
  run->add_flag(kJobMarker, parser.suite_run.is_job)->group("");
  add_search_options(*run, parser.suite_run.search);
  add_model_options(*run, parser.suite_run.search);
  add_judge_options(*run, parser.suite_run.judge);
  CLI::App* report = suite->add_subcommand("report", "results as a table");
  report
      ->add_option("results", parser.suite_report.results,
                   "files written by suite run; of a problem that several targets have, or several "
                   "files, the best counts")
      ->required();
  report->add_option("--html", parser.suite_report.html, "also write this HTML page");
  CLI::App* keep = suite->add_subcommand(
      "keep", "add a workspace's best kernels to a file that a suite goes on from elsewhere");
  keep->add_option("--out", parser.suite_keep.out, "the file; what it holds stays unless surpassed")
      ->required();
  keep->add_option("--count", parser.suite_keep.count,
                   "kernels of a problem and target; the library's fastest form comes on top")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  keep->add_option("--workspace", parser.suite_keep.workspace)->capture_default_str();
}

void add_graph_commands(Parser& parser) {
  CLI::App* graph = parser.app.add_subcommand("graph", "look into the experience graph");
  graph->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, GraphArguments::What what) {
    CLI::App* command = graph->add_subcommand(name, help);
    command->add_option("--workspace", parser.graph.workspace)->capture_default_str();
    command->callback([&parser, what] { parser.graph.what = what; });
    return command;
  };
  CLI::App* ls = add("ls", "runs, or the nodes of one run", GraphArguments::What::ls);
  ls->add_option("run", parser.graph.id, "run id");
  ls->add_option("--limit", parser.graph.limit, "rows at most")->capture_default_str();
  CLI::App* show = add("show", "one node: source, verdict, figures", GraphArguments::What::show);
  show->add_option("node", parser.graph.id, "node id")->required();
  CLI::App* lineage =
      add("lineage", "a node's ancestors and what changed", GraphArguments::What::lineage);
  lineage->add_option("node", parser.graph.id, "node id")->required();
  CLI::App* dump = add("export", "a whole run as JSON", GraphArguments::What::export_run);
  dump->add_option("run", parser.graph.id, "run id (default: the latest)");
  dump->add_option("--out", parser.graph.out, "file to write (default: stdout)");

  CLI::App* export_node =
      parser.app.add_subcommand("export", "a kernel as a drop-in for PyTorch or C++");
  export_node->add_option("node", parser.export_node.node, "node id")->required();
  export_node->add_option("--as", parser.export_node.as, "module (PyTorch) or header (C++)")
      ->check(CLI::IsMember({"module", "header"}))
      ->capture_default_str();
  export_node->add_option("--out", parser.export_node.out, "folder to write");
  export_node->add_option("--workspace", parser.export_node.workspace)->capture_default_str();
}

void add_knowledge_commands(Parser& parser) {
  KnowledgeArguments& arguments = parser.knowledge;
  CLI::App* kb = parser.app.add_subcommand("kb", "how kernels are made fast and right: documents");
  kb->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, KnowledgeArguments::What what) {
    CLI::App* command = kb->add_subcommand(name, help);
    command->add_option("--workspace", arguments.workspace, "its folder knowledge/ is read as well")
        ->capture_default_str();
    command->add_flag("--json", arguments.json, "print one JSON object to stdout");
    command->callback([&arguments, what] { arguments.what = what; });
    return command;
  };
  CLI::App* search = add("search", "documents that answer a question: 0 found, 1 nothing found",
                         KnowledgeArguments::What::search);
  search->add_option("query", arguments.text, "a question, a symptom, what a profiler said")
      ->required();
  search->add_option("--target", arguments.target, "only what holds for it (comma-separated)");
  search->add_option("--bottleneck", arguments.bound, "documents about it come first")
      ->check(CLI::IsMember({"memory", "compute", "latency", "overhead", "correctness"}));
  search
      ->add_option("--in", arguments.mode,
                   "how the query is meant: words; text or regex, found in lines; path of a file")
      ->check(CLI::IsMember({"words", "text", "regex", "path"}))
      ->capture_default_str();
  search->add_option("--limit", arguments.limit, "results at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_embeddings_option(*search, arguments.embeddings);
  CLI::App* show = add("show", "one document", KnowledgeArguments::What::show);
  show->add_option("path", arguments.text, "as search prints it; index.md lists all")->required();
  CLI::App* file = add("add", "check a document and copy it into the workspace",
                       KnowledgeArguments::What::add);
  file->add_option("file", arguments.text, "Markdown with front matter, as `kb show` prints it")
      ->required();
  CLI::App* review = add("review", "lessons from runs that wait for a decision",
                         KnowledgeArguments::What::review);
  CLI::Option* accept = review->add_option("--accept", arguments.accept, "let searches find it");
  review->add_option("--reject", arguments.reject, "never propose it again")->excludes(accept);
}

void add_model_commands(Parser& parser) {
  CLI::App* replay = parser.app.add_subcommand(
      "replay", "play a recorded run again and end at the first difference");
  replay->add_option("recording", parser.replay.recording, "file written by graph export")
      ->required();
  replay->add_flag("--re-judge", parser.replay.judge_again,
                   "also judge every kernel again and compare the verdicts");
  replay->add_option("--workspace", parser.replay.workspace, "folder for judging again")
      ->capture_default_str();
  replay->add_flag("--json", parser.replay.json, "print one JSON object to stdout");

  CLI::App* prompt = parser.app.add_subcommand(
      "prompt", "what a model was sent for a node, or would be sent to improve it");
  prompt->add_option("node", parser.prompt.node, "node id")->required();
  prompt->add_option("--workspace", parser.prompt.workspace)->capture_default_str();

  CLI::App* mailbox =
      parser.app.add_subcommand("mailbox", "read and answer the prompts of a mailbox:DIR model");
  mailbox->add_option("folder", parser.mailbox.folder, "the DIR")->required();
  CLI::App* list = mailbox->add_subcommand("list", "prompts, answered or waiting (the default)");
  list->callback([&parser] { parser.mailbox.what = MailboxArguments::What::list; });
  CLI::App* show = mailbox->add_subcommand("show", "one prompt");
  show->add_option("number", parser.mailbox.number, "number of the prompt")->required();
  show->callback([&parser] { parser.mailbox.what = MailboxArguments::What::show; });
  CLI::App* answer = mailbox->add_subcommand("answer", "answer one prompt");
  answer->add_option("number", parser.mailbox.number, "number of the prompt")->required();
  answer->add_option("file", parser.mailbox.file, "file with the answer, or - for stdin")
      ->required();
  answer->callback([&parser] { parser.mailbox.what = MailboxArguments::What::answer; });
}

void add_agent_command(Parser& parser) {
  CLI::App* mcp = parser.app.add_subcommand(
      "mcp", "serve a coding agent: the Model Context Protocol on standard input and output");
  add_session_options(*mcp, parser.mcp.judge);
  add_embeddings_option(*mcp, parser.mcp.embeddings);
}

void add_machine_commands(Parser& parser) {
  parser.app.add_subcommand("targets", "what kernels can be made for");
  CLI::App* doctor =
      parser.app.add_subcommand("doctor", "what works on this machine, and what is missing");
  doctor->add_option("--workspace", parser.doctor.workspace)->capture_default_str();
  doctor->add_flag("--remeasure", parser.doctor.remeasure, "measure the machine profile again");
  doctor->add_flag("--judge", parser.doctor.judge,
                   "examine the judge with kernels whose verdicts are known (about a minute)");
  doctor->add_flag("--json", parser.doctor.json, "print one JSON object to stdout");
}

Command chosen(const Parser& parser) {
  const CLI::App& app = parser.app;
  if (app.got_subcommand("optimize")) return parser.optimize;
  if (app.got_subcommand("verify")) return parser.verify;
  if (app.got_subcommand("bench")) return parser.bench;
  if (app.got_subcommand("suite")) {
    if (app.get_subcommand("suite")->got_subcommand("run")) return parser.suite_run;
    if (app.get_subcommand("suite")->got_subcommand("keep")) return parser.suite_keep;
    return parser.suite_report;
  }
  if (app.got_subcommand("export")) return parser.export_node;
  if (app.got_subcommand("resume")) return parser.resume;
  if (app.got_subcommand("graph")) return parser.graph;
  if (app.got_subcommand("kb")) return parser.knowledge;
  if (app.got_subcommand("replay")) return parser.replay;
  if (app.got_subcommand("prompt")) return parser.prompt;
  if (app.got_subcommand("mailbox")) return parser.mailbox;
  if (app.got_subcommand("mcp")) return parser.mcp;
  if (app.got_subcommand("doctor")) return parser.doctor;
  return TargetsArguments{};
}

bool has_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands(nullptr);
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->check_name(name); });
}

// CLI11's messages as one sentence that also says where to look.
std::string sentence_of(const CLI::ParseError& error) {
  std::string text = error.what();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text + "; run `kernelevolve --help` or `kernelevolve COMMAND --help`.";
}

}  // namespace

Result<Command> parse_arguments(int argc, const char* const* argv) {
  Parser parser;
  parser.app.require_subcommand(1);
  parser.app.set_version_flag("--version", "kernelevolve " KE_VERSION);
  parser.app.failure_message(CLI::FailureMessage::simple);
  add_problem_commands(parser);
  add_suite_commands(parser);
  add_graph_commands(parser);
  add_knowledge_commands(parser);
  add_model_commands(parser);
  add_agent_command(parser);
  add_machine_commands(parser);
  if (argc > 1 && argv[1][0] != '-' && !has_command(parser.app, argv[1])) {
    return Error{Errc::invalid,
                 fmt::format("there is no command '{}'; run `kernelevolve --help`.", argv[1])};
  }
  try {
    parser.app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    return Command(HelpText{std::string(version.what()) + "\n"});
  } catch (const CLI::CallForAllHelp&) {
    return Command(HelpText{parser.app.help("", CLI::AppFormatMode::All)});
  } catch (const CLI::CallForHelp&) {
    return Command(HelpText{parser.app.help()});
  } catch (const CLI::ParseError& error) {
    return Error{Errc::invalid, sentence_of(error)};
  }
  return chosen(parser);
}

Result<double> parse_duration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || scale == 0 || !(value > 0) || !std::isfinite(value)) {
    return Error{Errc::invalid,
                 fmt::format("'{}' is not a time; write it as 90s, 5m or 1h.", text)};
  }
  return value * scale;
}

}  // namespace ke::cli
