// SPDX-License-Identifier: Apache-2.0
#include "target/triton/toolchain.hpp"

#include <optional>

#include "target/python_prefixes.hpp"

namespace ke::triton {
namespace {

namespace fs = std::filesystem;

// The version in "torch-2.11.0+cu130.dist-info".
std::string version_in(const fs::path& packages, std::string_view package) {
  std::error_code error;
  const std::string beginning = std::string(package) + "-";
  for (fs::directory_iterator it(packages, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t tail = name.rfind(".dist-info");
    if (!name.starts_with(beginning) || tail == name.npos) continue;
    return name.substr(beginning.size(), tail - beginning.size());
  }
  return {};
}

void look_into(PythonToolchain& python, const fs::path& library) {
  std::error_code error;
  for (fs::directory_iterator it(library, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with("python3")) continue;
    for (const char* folder : {"site-packages", "dist-packages"}) {
      if (python.torch.empty()) python.torch = version_in(it->path() / folder, "torch");
      if (python.triton.empty()) python.triton = version_in(it->path() / folder, "triton");
    }
  }
}

std::optional<PythonToolchain> python_in(const fs::path& prefix) {
  std::error_code error;
  PythonToolchain python{
      .interpreter = prefix / "bin" / "python3", .visible = {}, .torch = {}, .triton = {}};
  if (!fs::exists(python.interpreter, error)) return std::nullopt;
  look_into(python, prefix / "lib");
  if (prefix == "/usr") look_into(python, "/usr/local/lib");
  // An environment's interpreter is a link to another one, which brings the standard library.
  python.visible = {prefix.string()};
  const fs::path real = fs::canonical(python.interpreter, error);
  if (!error) python.visible.push_back(real.parent_path().parent_path().string());
  return python;
}

}  // namespace

Result<PythonToolchain> find_python() {
  std::optional<PythonToolchain> first;
  for (const fs::path& prefix : target::python_prefixes()) {
    std::optional<PythonToolchain> found = python_in(prefix);
    if (!found) continue;
    if (!found->torch.empty()) return std::move(*found);
    if (!first) first = std::move(found);
  }
  if (first) return std::move(*first);
  return Error{Errc::unavailable,
               "no Python was found; install one with PyTorch and Triton and name it in KE_PYTHON"};
}

}  // namespace ke::triton
