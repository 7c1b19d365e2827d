// SPDX-License-Identifier: Apache-2.0
//
// Builds and runs printed kernels: many in one translation unit, each run in a child process
// between guard pages.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/interpret.hpp"
#include "target/target.hpp"

namespace ke::fuzz {

struct PrintedSource {
  std::string label;  // "seed 12, random schedule"
  std::string text;   // a whole translation unit
};

// Kernels built together; each is called by its position.
class Library {
 public:
  // Builds in `folder`. The error of one that does not build names its label.
  static Result<Library> build(const Target& target, const std::vector<PrintedSource>& sources,
                               const std::string& folder);
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Library& operator=(Library&&) = delete;
  ~Library();

  // One call in a child process, with inputs read-only and everything fenced. The error says how it
  // failed: a signal, a non-zero return, bytes written beyond an output.
  Result<std::vector<ir::TensorBytes>> run(size_t position, const ir::Program& program,
                                           const std::vector<ir::TensorBytes>& inputs) const;

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace ke::fuzz
