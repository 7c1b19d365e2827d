// SPDX-License-Identifier: Apache-2.0
#include "app/kept_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "app/json_lines.hpp"
#include "app/natural_order.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "graph/source.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

constexpr int64_t kFileBytesMax = 256_MiB;
constexpr int64_t kRankedMax = 1000;  // of a run: the best of class library may be far down

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
  TRY(each_json_line(whole_lines(text), [&](const Json& json) -> Result<void> {
    kernels.push_back(TRY(decode(json)));
    return {};
  }));
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
    bool has_form = false;
    std::set<Digest> sources;
  };
  std::map<std::tuple<std::string, Digest, std::string>, Taken> taken;
  std::vector<KeptKernel> best;
  for (KeptKernel& kernel : kernels) {
    Taken& mine = taken[{kernel.problem, kernel.problem_digest, kernel.target}];
    const bool is_form = kernel.kernel_class == "library";
    if (mine.count >= count && (mine.has_form || !is_form)) continue;
    if (!mine.sources.insert(normalised_digest(kernel.source)).second) continue;
    ++mine.count;
    mine.has_form |= is_form;
    best.push_back(std::move(kernel));
  }
  return best;
}

Result<std::vector<KeptKernel>> kernels_of(const GraphReader& graph, int64_t count) {
  std::vector<KeptKernel> kernels;
  for (const RunRow& run : TRY(graph.runs())) {
    const ProblemRow problem = TRY(graph.problem(run.scope.problem));
    for (const RankedNode& ranked : TRY(graph.best_of_run(run.id, kRankedMax))) {
      NodeRow node = TRY(graph.node(ranked.node));
      const auto found = TRY(graph.verdict_of(ranked.node));
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
    kernels = best_kernels(std::move(kernels), count);  // no more than are kept stay in memory
  }
  return kernels;
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
