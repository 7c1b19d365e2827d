// SPDX-License-Identifier: Apache-2.0
//
// A line that names the format, a line of JSON, then the code as it is.
#include "target/device_package.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"

namespace ke::target {
namespace {

constexpr std::string_view kFormat = "kernelevolve device package 1\n";
constexpr size_t kHeadMax = 16 << 20;
constexpr size_t kResourcesMax = 4096;
constexpr std::string_view kElf =
    "\x7f"
    "ELF";

Error damaged(std::string_view why) {
  return {Errc::invalid, fmt::format("the compiled code is no device package: {}", why)};
}

Result<KernelResources> decode_resources(const Json& json) {
  Fields fields = TRY(Fields::of(json, "kernel resources"));
  KernelResources resources;
  resources.kernel = TRY(fields.get<std::string>("kernel"));
  resources.registers = TRY(fields.get<int64_t>("registers"));
  resources.stack_bytes = TRY(fields.get<int64_t>("stack_bytes"));
  resources.spill_bytes = TRY(fields.get<int64_t>("spill_bytes"));
  resources.shared_bytes = TRY(fields.get<int64_t>("shared_bytes"));
  TRY(fields.finish());
  return resources;
}

}  // namespace

std::string encode_package(const DevicePackage& package) {
  Json resources = Json::array();
  for (const KernelResources& one : package.resources) {
    resources.push_back({{"kernel", one.kernel},
                         {"registers", one.registers},
                         {"stack_bytes", one.stack_bytes},
                         {"spill_bytes", one.spill_bytes},
                         {"shared_bytes", one.shared_bytes}});
  }
  const Json head{{"architecture", package.architecture},
                  {"launch_lines", package.launch_lines},
                  {"resources", std::move(resources)}};
  return std::string(kFormat) + dump_json(head) + "\n" + package.code;
}

Result<DevicePackage> decode_package(std::string_view bytes) {
  if (!bytes.starts_with(kFormat)) return damaged("its first line is another");
  bytes.remove_prefix(kFormat.size());
  const size_t end = bytes.substr(0, kHeadMax).find('\n');
  if (end == std::string_view::npos) return damaged("its description does not end");
  const Json json = TRY(parse_json(bytes.substr(0, end)));
  Fields fields = TRY(Fields::of(json, "device package"));
  DevicePackage package;
  package.architecture = TRY(fields.get<std::string>("architecture"));
  package.launch_lines = TRY(fields.get<std::string>("launch_lines"));
  const Json resources = TRY(fields.get<Json>("resources"));
  TRY(fields.finish());
  if (!resources.is_array() || resources.size() > kResourcesMax) {
    return damaged("its resources are no list");
  }
  for (const Json& one : resources) package.resources.push_back(TRY(decode_resources(one)));
  TRY(parse_launch_lines(package.launch_lines));
  package.code = bytes.substr(end + 1);
  if (!package.code.starts_with(kElf)) return damaged("its code is no ELF file");
  return package;
}

std::string launch_lines_of(std::string_view source) {
  std::string lines;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    const bool ours = line.starts_with("// ke:case ") || line.starts_with("// ke:scratch ") ||
                      line.starts_with("// ke:launch ");
    if (ours) lines.append(line) += '\n';
  }
  return lines;
}

}  // namespace ke::target
