// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/compile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include "target/launch_plan.hpp"

namespace ke::cuda {
namespace {

constexpr int kCompiled = 0, kWrongSource = 1, kNotTried = 2;

struct CompileArguments {
  std::string nvrtc, architecture, source, output;
  std::vector<std::string> flags;
};

std::optional<CompileArguments> parse_arguments(std::span<const std::string> words) {
  CompileArguments arguments;
  std::vector<std::string> files;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool option = words[i].starts_with("--");
    if (!option) {
      files.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) return std::nullopt;
    const std::string& value = words[++i];
    if (words[i - 1] == "--nvrtc") {
      arguments.nvrtc = value;
    } else if (words[i - 1] == "--arch") {
      arguments.architecture = value;
    } else if (words[i - 1] == "--flag") {
      arguments.flags.push_back(value);
    } else {
      return std::nullopt;
    }
  }
  const bool complete =
      files.size() == 2 && !arguments.nvrtc.empty() && !arguments.architecture.empty();
  if (!complete) return std::nullopt;
  arguments.source = files[0];
  arguments.output = files[1];
  return arguments;
}

int complain(int code, std::string_view message) {
  fmt::print(stderr, "{}\n", message);
  return code;
}

// The number right before `what`: 16 in "Used 16 registers".
std::optional<int64_t> number_before(std::string_view line, std::string_view what) {
  const size_t at = line.find(what);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  if (begin == at || at - begin > 12) return std::nullopt;
  int64_t value = 0;
  for (const char c : line.substr(begin, at - begin)) value = value * 10 + (c - '0');
  return value;
}

// The first kernel that is launched but not in the code: machine code lies in sections that are
// named after their kernels.
std::optional<std::string> missing_kernel(const target::LaunchScript& script,
                                          const std::string& cubin) {
  for (const std::string& kernel : script.kernels()) {
    const std::string section = ".text." + kernel + '\0';
    if (cubin.find(section) == std::string::npos) return kernel;
  }
  return std::nullopt;
}

}  // namespace

std::vector<target::KernelResources> resources_of(std::string_view log) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  constexpr size_t kKernelsMax = 4096;
  std::vector<target::KernelResources> found;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (const size_t at = line.find(kEntry); at != std::string_view::npos) {
      if (found.size() == kKernelsMax) break;
      const std::string_view name = line.substr(at + kEntry.size());
      found.emplace_back().kernel = name.substr(0, name.find('\''));
    }
    if (found.empty()) continue;
    target::KernelResources& kernel = found.back();
    kernel.stack_bytes = number_before(line, " bytes stack frame").value_or(kernel.stack_bytes);
    kernel.spill_bytes += number_before(line, " bytes spill stores").value_or(0) +
                          number_before(line, " bytes spill loads").value_or(0);
    kernel.registers = number_before(line, " registers").value_or(kernel.registers);
    kernel.shared_bytes = number_before(line, " bytes smem").value_or(kernel.shared_bytes);
  }
  return found;
}

Result<target::DevicePackage> compile_package(const Nvrtc& nvrtc, const std::string& source,
                                              std::string_view architecture,
                                              const std::vector<std::string>& flags,
                                              std::string& log) {
  const auto script = target::parse_launch_lines(source);
  if (!script) return Error{Errc::invalid, "error: " + script.error().to_string()};
  Compilation compilation = TRY(nvrtc.compile(source, architecture, flags));
  if (!compilation.compiled) return Error{Errc::invalid, compilation.log};
  if (const auto kernel = missing_kernel(*script, compilation.cubin)) {
    return Error{Errc::invalid,
                 fmt::format("error: a ke:launch line launches {0}, but the source defines no "
                             "extern \"C\" __global__ void {0}(…)",
                             *kernel)};
  }
  log = compilation.log;
  return target::DevicePackage{std::string(architecture), target::launch_lines_of(source),
                               resources_of(compilation.log), std::move(compilation.cubin)};
}

int compile_command(std::span<const std::string> words) {
  const auto arguments = parse_arguments(words);
  if (!arguments) {
    return complain(kNotTried, "usage: --nvrtc FILE --arch NAME [--flag FLAG]... SOURCE OUTPUT");
  }
  std::ifstream file(arguments->source, std::ios::binary);
  std::ostringstream source;
  source << file.rdbuf();
  if (!file) return complain(kNotTried, "the source cannot be read");
  const auto nvrtc = Nvrtc::load(arguments->nvrtc);
  if (!nvrtc) return complain(kNotTried, nvrtc.error().to_string());
  std::string log;
  const auto package =
      compile_package(*nvrtc, source.str(), arguments->architecture, arguments->flags, log);
  if (!package) {
    const bool wrong = package.error().code == Errc::invalid;
    return complain(wrong ? kWrongSource : kNotTried, package.error().to_string());
  }
  std::ofstream output(arguments->output, std::ios::binary);
  output << target::encode_package(*package);
  if (!output.flush()) return complain(kNotTried, "the compiled code cannot be written");
  return complain(kCompiled, log);
}

}  // namespace ke::cuda
