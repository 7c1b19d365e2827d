// SPDX-License-Identifier: Apache-2.0
//
// For tests: compiles a printed source against the host emulation and runs it as its launch lines
// say.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "ir/interpret.hpp"
#include "target/launch_plan.hpp"

namespace ke::cuda {

class EmulatedSource {
 public:
  explicit EmulatedSource(const std::string& source) : source_(source) {
    auto script = target::parse_launch_lines(source);
    EXPECT_TRUE(script) << script.error().to_string();
    if (script) script_ = std::move(*script);
    std::string pattern = (std::filesystem::temp_directory_path() / "ke_emulation_XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::ofstream(folder_ / "kernel.cpp") << source;
    const std::string command = fmt::format(
        "g++ -std=c++20 -O1 -w -march=native -fwrapv -ffp-contract=fast -shared -fPIC "
        "-I'{0}/include' -include '{0}/src/target/cuda/host_emulation.hpp' '{1}/kernel.cpp' "
        "-o '{1}/kernel.so'",
        KE_SOURCE_DIR, folder_.string());
    if (system(command.c_str()) != 0) {
      ADD_FAILURE() << "the emulation does not compile " << folder_ / "kernel.cpp";
      return;  // the folder is kept for reading
    }
    library_ = dlopen((folder_ / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    std::filesystem::remove_all(folder_);
  }
  EmulatedSource(const EmulatedSource&) = delete;
  EmulatedSource& operator=(const EmulatedSource&) = delete;
  ~EmulatedSource() {
    if (library_ != nullptr) dlclose(library_);
  }

  bool ready() const { return library_ != nullptr; }

  // The outputs of a program by the launch lines of one section.
  std::vector<ir::TensorBytes> run(size_t section, const ir::Program& program,
                                   const std::vector<ir::TensorBytes>& inputs) const {
    target::LaunchScript script{{script_.sections.at(section)}};
    script.sections[0].condition.clear();
    const auto plan = target::plan_launches(script, shapes_of(program));
    EXPECT_TRUE(plan) << plan.error().to_string();
    if (!plan) return {};
    std::vector<Buffer> in, out;
    for (const ir::TensorBytes& bytes : inputs) in.emplace_back(bytes.size()).fill(bytes);
    for (const ir::TensorId id : program.outputs) {
      const ir::Tensor& tensor = program.tensor(id);
      out.emplace_back(static_cast<size_t>(tensor.elements() * bytes_of(tensor.dtype)));
    }
    Buffer scratch(static_cast<size_t>(plan->scratch_bytes));
    for (const target::Launch& launch : plan->launches) start(launch, in, out, scratch);
    for (const Buffer& buffer : in) buffer.expect_intact("an input");
    for (const Buffer& buffer : out) buffer.expect_intact("an output");
    scratch.expect_intact("scratch");
    std::vector<ir::TensorBytes> results;
    for (const Buffer& buffer : out) results.push_back(buffer.contents());
    return results;
  }

 private:
  // 256-byte aligned, with bytes behind it that must not change.
  class Buffer {
   public:
    explicit Buffer(size_t bytes) : bytes_(bytes), room_(bytes + kGuard + kAlignment, kPoison) {}
    std::byte* data() const {
      const auto address = reinterpret_cast<uintptr_t>(room_.data());
      return const_cast<std::byte*>(room_.data()) + (kAlignment - address % kAlignment);
    }
    void fill(const ir::TensorBytes& bytes) const {
      if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
    }
    ir::TensorBytes contents() const { return {data(), data() + bytes_}; }
    void expect_intact(const char* what) const {
      const std::byte* end = room_.data() + room_.size();
      for (const std::byte* p = data() + bytes_; p < end; ++p) {
        ASSERT_EQ(*p, kPoison) << "a write behind " << what;
      }
    }

   private:
    static constexpr size_t kAlignment = 256, kGuard = 512;
    static constexpr std::byte kPoison{0xa5};
    size_t bytes_;
    std::vector<std::byte> room_;
  };

  static target::LaunchShapes shapes_of(const ir::Program& program) {
    target::LaunchShapes shapes;
    for (const ir::TensorId id : program.inputs) shapes.inputs.push_back(program.tensor(id).shape);
    for (const ir::TensorId id : program.outputs) {
      shapes.outputs.push_back(program.tensor(id).shape);
    }
    return shapes;
  }

  // Blocks a cluster, as the head of the kernel says.
  int64_t cluster_of(const std::string& kernel) const {
    constexpr std::string_view kDims = "__cluster_dims__(";
    const size_t name = source_.find(" " + kernel + "(");
    const size_t head = source_.rfind("extern", name), dims = source_.find(kDims, head);
    return dims < name ? atoll(source_.c_str() + dims + kDims.size()) : 1;
  }

  void start(const target::Launch& launch, const std::vector<Buffer>& in,
             const std::vector<Buffer>& out, const Buffer& scratch) const {
    using Kind = target::LaunchArgument::Kind;
    using Emulate =
        void (*)(void*, const int64_t*, const int64_t*, int64_t, int64_t, const int64_t*, int);
    const auto emulate = reinterpret_cast<Emulate>(dlsym(library_, "ke_emulate"));
    void* const kernel = dlsym(library_, launch.kernel.c_str());
    ASSERT_NE(emulate, nullptr);
    ASSERT_NE(kernel, nullptr) << launch.kernel;
    std::vector<int64_t> words;
    for (const target::LaunchArgument& argument : launch.arguments) {
      const auto index = static_cast<size_t>(argument.value);
      const std::byte* place = argument.kind == Kind::input    ? in[index].data()
                               : argument.kind == Kind::output ? out[index].data()
                                                               : scratch.data() + argument.value;
      words.push_back(argument.kind == Kind::integer ? argument.value
                                                     : reinterpret_cast<int64_t>(place));
    }
    emulate(kernel, launch.grid.data(), launch.block.data(), cluster_of(launch.kernel),
            launch.shared_bytes, words.data(), static_cast<int>(words.size()));
  }

  std::string source_;
  target::LaunchScript script_;
  std::filesystem::path folder_;
  void* library_ = nullptr;
};

}  // namespace ke::cuda
