// SPDX-License-Identifier: Apache-2.0
//
// The payoff: a proved kernel as a folder that others use. `module` drops in for the PyTorch Model
// (ModelNew, falling back to the original where the kernel was not proved); `header` is for C++.
//
//   kernel.cpp           the candidate's source, as proved
//   module_shim.cpp      runs it with a thread pool and scratch memory of its own
//   kernel.so            both, built by the target's recipe
//   kernel.cu, .cubin    or, of a device: the source and its machine code, or
//   kernel.py            the ModelNew that was proved; either way
//   runtime.py           runs it
//   kernel.hpp           one typed function for C++ callers
//   kernelevolve/        the contract and the pool that the sources include
//   <name>.py            ModelNew                                    (module only)
//   original.py          the problem                                 (module only)
//   check.py             tries ModelNew against Model                (module only)
//   manifest.json        what was proved: tensors, processor, figures
//   README.md            how to use it
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/events.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "domain/evaluation.hpp"
#include "domain/problem.hpp"
#include "target/launch_plan.hpp"
#include "target/target.hpp"

namespace ke::app {

class Workspace;

enum class ExportForm : uint8_t { module, header };

// Of a kernel that runs on a device.
struct DeviceCode {
  std::string type;    // as PyTorch calls that kind of device
  std::string device;  // "NVIDIA H200"
  int major = 0, minor = 0;  // its compute capability
  std::string driver;        // as for dlopen: the trial's room shows its devices; empty: none
  std::string code;          // machine code; empty: the source is a PyTorch module
  std::vector<target::LaunchPlan> plans = {};  // one a shape case
};

struct ExportRequest {
  const Problem& problem;      // of case 0
  std::string problem_source;  // the Python file
  std::string kernel_source;
  BuildRecipe recipe;  // of the kernel's target
  std::string target;  // "x86"
  std::string toolchain;
  Precision precision = Precision::strict;
  Evaluation evaluation;      // accepted; its figures go into manifest and README
  std::string python;         // interpreter with torch; module only
  std::filesystem::path out;  // created when absent; files in it are replaced
  ExportForm form = ExportForm::module;
  std::vector<const Problem*> further_cases = {};  // case 1 and so on, proved like case 0
  std::optional<DeviceCode> device = {};           // where it does not run on the processor
};

struct ExportReport {
  std::filesystem::path folder;
  std::string module;   // file name of the Python module; empty for a header
  std::string checked;  // what check.py said about the finished module
};

// Writes the folder, builds the library in the build room and (module) tries the finished module
// against the original in a locked Python. Errc::invalid when the problem cannot be exported, the
// module disagrees with the original, or the kernel was confirmed to be slower than the library;
// Errc::unavailable when a tool is missing.
Result<ExportReport> export_module(const ExportRequest& request);

// `kernelevolve export NODE`: exports a node of the workspace's graph, confirming its figures first
// when they were not confirmed. `as` is "module" or "header"; an empty `out` is a folder named
// after problem and node. Returns the text for people.
Result<std::string> export_node(NodeId node, const std::string& as, const std::string& out,
                                Workspace& workspace, EventSink& events);

// --- The texts, for tests -----------------------------------------------------------------------

// "19_ReLU" -> "problem_19_ReLU": importable, never a keyword.
std::string module_name(const std::string& problem_name);
// The typed C++ functions over ke_module_run: one a shape case.
std::string cpp_header(const Problem& problem,
                       const std::vector<const Problem*>& further_cases = {});
std::string readme(const ExportRequest& request, const std::string& module);

}  // namespace ke::app

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::app::ExportForm>{"module",
                                                                                     "header"};
