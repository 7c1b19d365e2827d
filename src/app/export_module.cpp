// SPDX-License-Identifier: Apache-2.0
//
// Writes, builds and tries an exported folder.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/export.hpp"
#include "base/digest.hpp"
#include "base/json.hpp"
#include "domain/limits.hpp"
#include "embedded/ke_export_files.hpp"
#include "embedded/ke_kernel_header.hpp"
#include "oracle/python_room.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"

namespace ke::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "kernel.so";
constexpr const char* kShim = "module_shim.cpp";
constexpr const char* kOriginal = "original.py";
constexpr const char* kRuntime = "runtime.py";
constexpr const char* kMachineCode = "kernel.cubin";
constexpr std::string_view kInside = "/work";  // the folder inside the build room

std::string value_of_line(const std::string& line) {
  const size_t colon = line.find(':');
  const size_t start = line.find_first_not_of(" \t", colon + 1);
  return colon == std::string::npos || start == std::string::npos ? "" : line.substr(start);
}

// What `model name` and `flags` of /proc/cpuinfo say: the vector features are what a library built
// for this machine may use.
Result<Json> processor() {
  std::istringstream lines(TRY(os::read_file("/proc/cpuinfo", 16_MiB)));
  Json json = {{"model", ""}, {"features", Json::array()}};
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    if (line.starts_with("model name")) json["model"] = value_of_line(line);
    if (!line.starts_with("flags")) continue;
    std::istringstream words(value_of_line(line));
    for (std::string word; words >> word;) {
      for (const char* kind : {"avx", "fma", "sse", "bmi", "f16c", "amx", "adx", "aes", "sha"}) {
        if (!word.starts_with(kind)) continue;
        json["features"].push_back(word);
        break;
      }
    }
  }
  return json;
}

Json spec_list(const std::vector<TensorSpec>& specs) {
  Json list = Json::array();
  for (const TensorSpec& spec : specs) list.push_back(encode(spec));
  return list;
}

Json draw_list(const std::vector<Draw>& draws) {
  Json list = Json::array();
  for (const Draw& draw : draws) list.push_back(encode(draw));
  return list;
}

// All shape cases where there are several, else none.
std::vector<const Problem*> cases_of(const ExportRequest& request) {
  std::vector<const Problem*> cases = request.further_cases;
  if (!cases.empty()) cases.insert(cases.begin(), &request.problem);
  return cases;
}

Json launches_of(const target::LaunchPlan& plan) {
  constexpr const char* kKinds[] = {"input", "output", "scratch", "integer"};
  Json launches = Json::array();
  for (const target::Launch& launch : plan.launches) {
    Json arguments = Json::array();
    for (const target::LaunchArgument& argument : launch.arguments) {
      arguments.push_back({kKinds[static_cast<size_t>(argument.kind)], argument.value});
    }
    launches.push_back({{"kernel", launch.kernel},
                        {"grid", launch.grid},
                        {"block", launch.block},
                        {"shared", launch.shared_bytes},
                        {"arguments", std::move(arguments)}});
  }
  return {{"scratch_bytes", plan.scratch_bytes}, {"launches", std::move(launches)}};
}

// Where it was proved and what runs it there.
Result<void> describe_machine(const ExportRequest& request, Json& json) {
  if (!request.device) {
    json["library"] = kLibrary;
    json["processor"] = TRY(processor());
    return {};
  }
  const DeviceCode& device = *request.device;
  json["device"] = {{"type", device.type},
                    {"name", device.device},
                    {"capability", {device.major, device.minor}}};
  json["runtime"] = kRuntime;
  if (device.code.empty()) return {};
  json["code"] = kMachineCode;
  for (const target::LaunchPlan& plan : device.plans) json["plans"].push_back(launches_of(plan));
  return {};
}

Result<Json> manifest(const ExportRequest& request, const std::string& module) {
  Json json = {{"schema", 1},
               {"problem", request.problem.name},
               {"problem_digest", request.problem.digest.hex()},
               {"target", request.target},
               {"toolchain", request.toolchain},
               {"command", request.recipe.command},
               {"precision", enum_name(request.precision)},
               {"kernel_digest", digest_of(request.kernel_source).hex()},
               {"kernel", request.recipe.source_name},
               {"inputs", spec_list(request.problem.inputs)},
               {"outputs", spec_list(request.problem.outputs)},
               {"draws", draw_list(request.problem.draws)},
               {"evaluation", encode(request.evaluation)}};
  for (const Problem* one : cases_of(request)) {
    json["cases"].push_back({{"inputs", spec_list(one->inputs)},
                             {"outputs", spec_list(one->outputs)}});
  }
  TRY(describe_machine(request, json));
  if (!module.empty()) {
    json["module"] = module;
    json["original"] = kOriginal;
    // Distinct for each kernel, so that several modules live in one process.
    json["operator"] = fmt::format("{}_{}", module_name(request.problem.name),
                                   digest_of(request.kernel_source).short_hex());
  }
  return json;
}

Result<void> write_files(const ExportRequest& request, const std::string& module) {
  const fs::path& out = request.out;
  const auto write = [&](const std::string& name, std::string_view text) {
    return os::write_file_atomically(out / name, text);
  };
  TRY(write(request.recipe.source_name, request.kernel_source));
  if (!request.device) {
    TRY(os::make_directories(out / "kernelevolve"));
    TRY(write(kShim, embedded::module_shim_cpp));
    TRY(write("kernelevolve/kernel.h", embedded::kernel_h));
    TRY(write("kernelevolve/thread_pool.hpp", embedded::thread_pool_hpp));
    TRY(write("kernel.hpp", cpp_header(request.problem, request.further_cases)));
  } else if (request.device->code.empty()) {
    TRY(write(kRuntime, embedded::module_runtime_torch_py));
  } else {
    TRY(write(kRuntime, embedded::module_runtime_cuda_py));
    TRY(write(kMachineCode, request.device->code));
  }
  TRY(write("README.md", readme(request, module)));
  TRY(write("manifest.json", TRY(manifest(request, module)).dump(2) + "\n"));
  if (module.empty()) return {};
  TRY(write(module, embedded::module_template_py));
  TRY(write(kOriginal, request.problem_source));
  return write("check.py", embedded::module_check_py);
}

// The recipe's command over both sources. Placeholders stand alone or within a word.
std::vector<std::string> build_command(const BuildRecipe& recipe) {
  std::vector<std::string> command;
  const std::string folder(kInside);
  const std::pair<std::string, std::string> replacements[] = {
      {"{source}", folder + "/" + recipe.source_name},
      {"{output}", folder + "/" + kLibrary},
      {"{include}", folder}};
  for (std::string word : recipe.command) {
    const bool source = word == "{source}";
    for (const auto& [from, to] : replacements) {
      const size_t at = word.find(from);
      if (at != std::string::npos) word.replace(at, from.size(), to);
    }
    command.push_back(std::move(word));
    if (source) command.push_back(folder + "/" + kShim);
  }
  command.push_back("-I" + folder);
  return command;
}

Result<void> build_library(const ExportRequest& request) {
  const Limits limits;
  os::RoomOptions options;
  options.paths = os::toolchain_paths();
  options.paths.push_back(
      {.host = request.out.string(), .inside = std::string(kInside), .writable = true});
  options.system_calls = os::SystemCalls::build;
  options.memory_bytes = limits.compile_memory_bytes;
  options.processes_max = 64;
  const os::Room room = TRY(os::Room::prepare(options));
  os::RunOptions run;
  run.process.argv = build_command(request.recipe);
  run.process.environment = os::minimal_environment();
  run.process.working_directory = kInside;
  run.process.room = &room;
  run.time_max = limits.compile_max;
  const os::RunResult result = TRY(os::run(run));
  if (result.status.success()) return {};
  return Error{Errc::internal,
               fmt::format("the library does not build ({}): {}", result.status.to_string(),
                           result.error.substr(0, 2000))};
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t start = text.rfind('\n');
  return start == std::string::npos ? text : text.substr(start + 1);
}

// Runs check.py --record in the oracle's kind of room; returns its last line.
Result<std::string> try_module(const ExportRequest& request) {
  const Limits limits;
  oracle::RoomNeeds needs;
  needs.python = request.python;
  needs.problem_folder = fs::path(request.problem.path).parent_path();
  needs.cache_dir = request.out;  // the one writable folder
  needs.memory_bytes = limits.oracle_memory_bytes;
  if (request.device) needs.driver = request.device->driver;
  const os::Room room = TRY(oracle::prepare_python_room(needs));
  os::RunOptions run;
  run.process.argv = {request.python, "-B", (request.out / "check.py").string(), "--record"};
  run.process.environment = oracle::python_environment(request.out);
  run.process.working_directory = request.out.string();
  run.process.room = &room;
  run.time_max = limits.oracle_load_max;
  const os::RunResult result = TRY(os::run(run));
  if (result.status.success()) {
    // A warning on stderr says why the kernel is not used, if it is not.
    const size_t because = result.error.find("because ");
    std::string line = last_line(result.output);
    if (because != std::string::npos) {
      line +=
          ": " + result.error.substr(because + 8, result.error.find('\n', because) - because - 8);
    }
    return line;
  }
  if (result.timed_out) {
    return Error{Errc::timed_out, "the exported module did not finish its trial in time"};
  }
  const std::string said = last_line(result.output.empty() ? result.error : result.output);
  return Error{Errc::invalid, "the exported module failed its trial: " +
                                  (said.empty() ? result.status.to_string() : said)};
}

// Nothing exported is slower than the library, as far as figures can tell.
Result<void> refuse_the_slower(const Evaluation& evaluation) {
  if (!evaluation.confirmed || !evaluation.measurement) return {};
  for (const std::string& flag : evaluation.flags) {
    if (flag == "tie" || flag == "too_small") return {};
  }
  const double speedup = evaluation.measurement->speedup;
  if (speedup >= 1) return {};
  return Error{Errc::invalid,
               fmt::format("the kernel is {:.2f} times as fast as the better of PyTorch eager and "
                           "torch.compile, and nothing exported is slower than the library; keep "
                           "the original, or search longer with `kernelevolve optimize`.",
                           speedup)};
}

}  // namespace

Result<ExportReport> export_module(const ExportRequest& asked) {
  ExportRequest request = asked;
  if (request.evaluation.verdict != Verdict::accepted) {
    return Error{Errc::invalid, fmt::format("the kernel is not accepted ({}), so it cannot be "
                                            "exported",
                                            enum_name(request.evaluation.verdict))};
  }
  TRY(refuse_the_slower(request.evaluation));
  if (request.device && request.form == ExportForm::header) {
    return Error{Errc::unavailable,
                 fmt::format("kernels of {} are exported as modules alone; use --as module.",
                             request.target)};
  }
  TRY(os::make_directories(request.out));
  request.out = fs::canonical(request.out);
  ExportReport report;
  report.folder = request.out;
  if (request.form == ExportForm::module) {
    report.module = module_name(request.problem.name) + ".py";
  }
  TRY(write_files(request, report.module).context("the export"));
  if (!request.device) TRY(build_library(request));
  if (!report.module.empty()) report.checked = TRY(try_module(request));
  return report;
}

}  // namespace ke::app
