// SPDX-License-Identifier: Apache-2.0
#include "cli/convert.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "domain/limits.hpp"
#include "eval/library_policy.hpp"
#include "os/file_system.hpp"
#include "os/random.hpp"
#include "propose/model/tasks.hpp"
#include "propose/proposer.hpp"
#include "search/policy.hpp"

namespace ke::cli {
namespace {

template <class Infos>
std::string names_of(const Infos& infos) {
  std::vector<std::string_view> names;
  for (const auto* info : infos) names.push_back(info->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The proposers that are named, or all that there are without and with a model.
Result<std::vector<std::string>> proposers_of(const SearchArguments& arguments) {
  const bool models = !arguments.models.empty();
  if (arguments.proposers.empty()) {
    return split_commas(models ? "synth,tune,llm,strategist" : "synth,tune");
  }
  const std::vector<std::string> names = split_commas(arguments.proposers);
  bool asks = false;
  for (const std::string& name : names) {
    asks = asks || style_of(name);
    if (find_proposer(name) || (style_of(name) && models)) continue;
    if (style_of(name)) {
      return Error{Errc::invalid, fmt::format("the proposer '{}' needs a language model; name one "
                                              "with --model, as in --model openai:NAME.",
                                              name)};
    }
    return Error{Errc::invalid, fmt::format("there is no proposer '{}'; there is {}, llm, "
                                            "strategist.",
                                            name, names_of(all_proposers()))};
  }
  if (names.empty()) {
    return Error{Errc::invalid, fmt::format("--proposers names none; there is {}, llm, strategist.",
                                            names_of(all_proposers()))};
  }
  if (models && !asks) {
    return Error{Errc::invalid, "--model is given, but --proposers names none that asks it; add "
                                "llm or strategist."};
  }
  return names;
}

}  // namespace

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start) parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

Result<app::SessionOptions> session_options(const JudgeArguments& arguments,
                                            const std::string& problem) {
  app::SessionOptions options;
  options.problem_path = problem;
  const TargetInfo* target = TRY(app::target_named(arguments.target));
  TRY(app::require_device(*target));  // before a workspace is made
  options.target = arguments.target;
  const auto precision = parse_enum<Precision>(arguments.precision);
  if (!precision) {
    return Error{Errc::invalid, fmt::format("there is no precision '{}'.", arguments.precision)};
  }
  options.precision = *precision;
  options.dtype = arguments.dtype;
  options.sandbox_required = arguments.sandbox == "required";
  TRY(parse_library_policy(arguments.libraries));  // before PyTorch is started
  options.libraries = arguments.libraries;
  const auto determinism = parse_enum<Determinism>(arguments.determinism);
  if (!determinism) {
    return Error{Errc::invalid,
                 fmt::format("there is no determinism '{}'.", arguments.determinism)};
  }
  options.determinism = *determinism;
  options.threads = static_cast<int32_t>(arguments.threads);
  return options;
}

Result<SearchOptions> search_options(const SearchArguments& arguments) {
  SearchOptions options;
  options.steps = arguments.steps;
  if (!arguments.time.empty()) {
    const double seconds = TRY(parse_duration(arguments.time));
    options.time_limit = Milliseconds(static_cast<int64_t>(seconds * 1000));
  }
  // Half the range, so that any tool reads the printed seed back without loss.
  options.seed = arguments.seed ? *arguments.seed : os::random_seed() >> 32;
  if (!find_policy(arguments.policy)) {
    return Error{Errc::invalid, fmt::format("there is no policy '{}'; there is {}.",
                                            arguments.policy, names_of(all_policies()))};
  }
  options.policy = arguments.policy;
  const auto sub_agents = parse_enum<SubAgents>(arguments.sub_agents);
  if (!sub_agents) {
    return Error{Errc::invalid, fmt::format("there is no '{}' to run sub-agents; there is {}.",
                                            arguments.sub_agents,
                                            fmt::join(kEnumNames<SubAgents>, ", "))};
  }
  if (*sub_agents == SubAgents::model && arguments.models.empty()) {
    return Error{Errc::invalid, "--sub-agents model needs a language model; name one with --model, "
                                "as in --model openai:NAME."};
  }
  options.models = {.names = arguments.models,
                    .calls = static_cast<int32_t>(arguments.model_calls),
                    .share = arguments.model_share,
                    .tokens_max = arguments.budget_tokens,
                    .calls_max = arguments.budget_calls,
                    .usd_max = arguments.budget_usd,
                    .prices = {},
                    .sub_agents = *sub_agents,
                    .embeddings = arguments.embeddings};
  if (!arguments.embeddings.empty() && arguments.models.empty()) {
    return Error{Errc::invalid, "--embeddings finds documents for models; name one with --model, "
                                "as in --model openai:NAME."};
  }
  if (!arguments.prices.empty()) {
    options.models.prices = std::filesystem::absolute(arguments.prices).string();
  }
  options.confirm_count = static_cast<int32_t>(arguments.confirm);
  options.proposers = TRY(proposers_of(arguments));
  options.target_speedup = arguments.target_speedup;
  options.stall_steps = arguments.stall;
  options.stop_near_floor = !arguments.past_floor;
  const Limits limits;
  for (const std::string& path : arguments.seed_kernels) {
    const std::string source =
        TRY(os::read_file(path, limits.source_bytes_max).context("the seed kernel"));
    options.seeds.push_back({std::filesystem::path(path).filename().string(), source});
  }
  return options;
}

}  // namespace ke::cli
