// SPDX-License-Identifier: Apache-2.0
//
// `kernelevolve export`: from a node of the graph to a folder.
#include "app/export.hpp"

#include <fmt/format.h>

#include "app/optimize.hpp"
#include "app/session.hpp"
#include "app/workspace.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "domain/limits.hpp"
#include "graph/graph.hpp"
#include "oracle/oracle.hpp"
#include "os/file_system.hpp"
#include "target/device_package.hpp"
#include "target/nvidia_gpu.hpp"

namespace ke::app {

namespace {

// Only confirmed figures are exported: a node that was merely screened is judged again.
Result<Evaluation> confirmed_evaluation(const NodeRow& node, Session& session, EventSink& events) {
  const auto known = TRY(session.graph().verdict_of(node.id));
  if (known && known->evaluation.verdict != Verdict::accepted) return known->evaluation;
  if (known && known->evaluation.confirmed) return known->evaluation;
  events.emit("stage", {{"what", fmt::format("confirming node {}", node.id.value)}});
  const Artifact artifact = TRY(session.evaluator().build(node.source));
  if (artifact.failure) return *artifact.failure;
  JudgeOptions options;
  options.effort = Effort::confirm;
  return session.evaluator().judge(artifact, options);
}

target::LaunchShapes launch_shapes_of(const Problem& problem) {
  target::LaunchShapes shapes;
  for (const TensorSpec& spec : problem.inputs) shapes.inputs.push_back(spec.shape);
  for (const TensorSpec& spec : problem.outputs) shapes.outputs.push_back(spec.shape);
  return shapes;
}

// Of a package: its code and what is launched in each case. Of a module: what it was proved on.
Result<DeviceCode> device_code(const NodeRow& node, Session& session,
                               const ExportRequest& request) {
  const target::Gpu gpu = TRY(target::find_gpu());
  DeviceCode device{.type = std::string(kDeviceName.substr(0, kDeviceName.find(':'))),
                    .device = gpu.name,
                    .major = gpu.major,
                    .minor = gpu.minor,
                    .driver = OracleOptions().driver,
                    .code = {}};
  if (request.recipe.artifact != ArtifactKind::device_package) return device;
  const Artifact artifact = TRY(session.evaluator().build(node.source));
  if (artifact.failure) {
    return Error{Errc::internal, "it no longer builds: " + artifact.failure->detail};
  }
  target::DevicePackage package =
      TRY(target::decode_package(TRY(os::read_file(artifact.built_path, 256_MiB))));
  const target::LaunchScript script = TRY(target::parse_launch_lines(package.launch_lines));
  device.plans.push_back(TRY(target::plan_launches(script, launch_shapes_of(request.problem))));
  for (const Problem* one : request.further_cases) {
    device.plans.push_back(TRY(target::plan_launches(script, launch_shapes_of(*one))));
  }
  device.code = std::move(package.code);
  return device;
}

std::string text_of(const ExportReport& report, const Evaluation& evaluation) {
  std::string text = fmt::format("exported to {}\n", report.folder.string());
  if (!report.module.empty()) {
    text += fmt::format("  {}: {}\n", report.module, report.checked);
  }
  if (evaluation.measurement) {
    text += fmt::format("  {:.2f} times as fast as the better of PyTorch eager and torch.compile",
                        evaluation.measurement->speedup);
    text += evaluation.cases.empty() ? "\n" : ", in the mean over the shape cases\n";
  }
  return text + "  README.md there says how to use it\n";
}

}  // namespace

Result<std::string> export_node(NodeId id, const std::string& as, const std::string& out,
                                Workspace& workspace, EventSink& events) {
  const auto form = parse_enum<ExportForm>(as);
  if (!form) {
    return Error{Errc::invalid, fmt::format("--as {} is unknown; use module or header.", as)};
  }
  const GraphReader graph(workspace.store());
  const NodeRow node = TRY(graph.node(id));
  const RunRow run = TRY(graph.run(node.run));
  const ProblemRow problem = TRY(graph.problem(run.scope.problem));
  const SessionOptions options = TRY(session_of_run(workspace, node.run));
  auto session = TRY(Session::open(options, workspace, events));
  if (session->problem().digest != problem.digest) {
    return Error{Errc::conflict,
                 fmt::format("{} has changed since the kernel was proved; search again with "
                             "`kernelevolve optimize`.",
                             options.problem_path)};
  }
  const Limits limits;
  ExportRequest request{
      .problem = session->problem(),
      .problem_source = TRY(os::read_file(options.problem_path, limits.source_bytes_max)),
      .kernel_source = node.source,
      .recipe = TRY(session->target().recipe(node.source)),
      .target = options.target,
      .toolchain = TRY(session->target().toolchain())};
  request.precision = options.precision;
  request.evaluation = TRY(confirmed_evaluation(node, *session, events));
  request.form = *form;
  request.further_cases = session->cases();
  request.further_cases.erase(request.further_cases.begin());
  if (TRY(target_named(options.target))->device != nullptr) {
    request.device = TRY(device_code(node, *session, request));
  }
  request.out = out.empty() ? fmt::format("{}_node{}", module_name(problem.name), id.value) : out;
  if (request.form == ExportForm::module) {
    request.python = TRY(find_python());
    events.emit("stage", {{"what", "building and trying the module"}});
  }
  const ExportReport report = TRY(export_module(request));
  return text_of(report, request.evaluation);
}

}  // namespace ke::app
