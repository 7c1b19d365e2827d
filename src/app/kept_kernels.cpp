// SPDX-License-Identifier: Apache-2.0
#include "app/kept_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "app/natural_order.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "graph/source.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

constexpr int64_t kFileBytesMax = 256_MiB;
constexpr int64_t kRankedMax = 1000;  // of a run, looked at for the best of class library

Result<KeptKernel> decode(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a kept kernel"));
  KeptKernel kernel;
  kernel.problem = TRY(fields.get<std::string>("problem"));
  const auto digest = parse_digest(TRY(fields.get<std::string>("problem_digest")));
  if (!digest) return Error{Errc::invalid, "the field 'problem_digest' is no digest"};
  kernel.problem_digest = *digest;
  kernel.target = TRY(fields.get<std::string>("target"));
  kernel.kernel_class = TRY(fields.get<std::string>("class"));
  kernel.proposer = TRY(fields.get<std::string>("proposer"));
  kernel.plan = TRY(fields.get<std::string>("plan"));
  kernel.source = TRY(fields.get<std::string>("source"));
  kernel.fitness = TRY(fields.get<double>("fitness"));
  kernel.confirmed = TRY(fields.get<bool>("confirmed"));
  TRY(fields.finish());
  return kernel;
}

bool better(const KeptKernel& a, const KeptKernel& b) {
  return std::tuple(a.confirmed, a.fitness) > std::tuple(b.confirmed, b.fitness);
}

Result<void> add_kernels_of_run(const GraphReader& graph, const RunRow& run,
                                const ProblemRow& problem, int64_t count,
                                std::vector<KeptKernel>& kernels) {
  int64_t taken = 0;
  bool has_library = false;
  for (const RankedNode& ranked : TRY(graph.best_of_run(run.id, kRankedMax))) {
    if (taken >= count && has_library) break;
    const auto found = TRY(graph.verdict_of(ranked.node));
    const bool library = found && found->evaluation.kernel_class == "library";
    if (taken >= count && !library) continue;
    ++taken;
    has_library = has_library || library;
    NodeRow node = TRY(graph.node(ranked.node));
    kernels.push_back({.problem = problem.name,
                       .problem_digest = problem.digest,
                       .target = run.scope.target,
                       .kernel_class = found ? found->evaluation.kernel_class : "",
                       .proposer = std::move(node.proposer),
                       .plan = std::move(node.plan),
                       .source = std::move(node.source),
                       .fitness = ranked.fitness,
                       .confirmed = ranked.confirmed});
  }
  return {};
}

}  // namespace

Json encode(const KeptKernel& kernel) {
  return {{"problem", kernel.problem},       {"problem_digest", kernel.problem_digest.hex()},
          {"target", kernel.target},         {"class", kernel.kernel_class},
          {"proposer", kernel.proposer},     {"plan", kernel.plan},
          {"source", kernel.source},         {"fitness", kernel.fitness},
          {"confirmed", kernel.confirmed}};
}

Result<std::vector<KeptKernel>> parse_kept_kernels(std::string_view text) {
  std::vector<KeptKernel> kernels;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;  // cut by a kill
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json json = TRY(parse_json(line).context(fmt::format("line {}", number)));
    kernels.push_back(TRY(decode(json).context(fmt::format("line {}", number))));
  }
  return kernels;
}

Result<std::vector<KeptKernel>> read_kept_kernels(const std::string& path) {
  const std::string text = TRY(os::read_file(path, kFileBytesMax).context("the kept kernels"));
  return TRY(parse_kept_kernels(text).context(path));
}

std::vector<KeptKernel> best_kernels(std::vector<KeptKernel> kernels, int64_t count) {
  std::ranges::stable_sort(kernels, [](const KeptKernel& a, const KeptKernel& b) {
    if (a.problem != b.problem) return natural_less(a.problem, b.problem);
    return better(a, b);
  });
  struct Taken {
    int64_t count = 0;
    bool library = false;
    std::set<Digest> sources;
  };
  std::map<std::tuple<std::string, Digest, std::string>, Taken> taken;
  std::vector<KeptKernel> best;
  for (KeptKernel& kernel : kernels) {
    Taken& mine = taken[{kernel.problem, kernel.problem_digest, kernel.target}];
    const bool library = kernel.kernel_class == "library";
    if (mine.count >= count && (mine.library || !library)) continue;
    if (!mine.sources.insert(normalised_digest(kernel.source)).second) continue;
    ++mine.count;
    mine.library = mine.library || library;
    best.push_back(std::move(kernel));
  }
  return best;
}

Result<std::vector<KeptKernel>> kernels_of(const GraphReader& graph, int64_t count) {
  std::vector<KeptKernel> kernels;
  for (const RunRow& run : TRY(graph.runs())) {
    const ProblemRow problem = TRY(graph.problem(run.scope.problem));
    TRY(add_kernels_of_run(graph, run, problem, count, kernels));
  }
  return best_kernels(std::move(kernels), count);
}

Result<int64_t> keep_kernels(const GraphReader& graph, const std::string& path, int64_t count) {
  std::vector<KeptKernel> kernels;
  if (os::exists(path)) kernels = TRY(read_kept_kernels(path));
  for (KeptKernel& kernel : TRY(kernels_of(graph, count))) kernels.push_back(std::move(kernel));
  kernels = best_kernels(std::move(kernels), count);
  std::string text;
  for (const KeptKernel& kernel : kernels) text += dump_json(encode(kernel)) + "\n";
  TRY(os::write_file_atomically(path, text).context("the kept kernels"));
  return std::ssize(kernels);
}

std::vector<KeptKernel> kernels_for(std::span<const KeptKernel> kernels, std::string_view problem,
                                    std::string_view target, bool only_best_target) {
  std::vector<KeptKernel> found;
  const KeptKernel* best = nullptr;
  for (const KeptKernel& kernel : kernels) {
    if (kernel.problem != problem) continue;
    if (best == nullptr || better(kernel, *best)) best = &kernel;
    if (kernel.target == target) found.push_back(kernel);
  }
  if (only_best_target && best != nullptr && best->target != target) return {};
  std::ranges::stable_sort(found, better);
  return found;
}

}  // namespace ke::app
