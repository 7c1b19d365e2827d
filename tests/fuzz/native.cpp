// SPDX-License-Identifier: Apache-2.0
//
// Builds kernels with the target's own recipe and calls them in forked children.
#include "native.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "kernelevolve/kernel.h"

namespace ke::fuzz {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 64;
constexpr unsigned kSecondsMax = 20;
constexpr std::byte kPoison{0xa5};

// --- Building -----------------------------------------------------------------------------------

// Every source in a namespace of its own, its entry points renamed; headers stand before.
std::string joined(const std::vector<PrintedSource>& sources) {
  std::string text = "#include <math.h>\n#include <stdint.h>\n#include \"kernelevolve/kernel.h\"\n";
  for (size_t i = 0; i < sources.size(); ++i) {
    text += fmt::format(
        "#define ke_launch ke_launch_{0}\n#define ke_scratch_bytes ke_scratch_bytes_{0}\n"
        "namespace case_{0} {{\n{1}\n}}\n#undef ke_launch\n#undef ke_scratch_bytes\n",
        i, sources[i].text);
  }
  return text;
}

void replace(std::string& text, std::string_view what, const std::string& with) {
  const size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), with);
}

// Runs a command with its output in a file; whether it succeeded.
bool succeeds(const std::vector<std::string>& command, const std::string& log) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, 1);
    dup2(file, 2);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

std::string first_error(const std::string& log) {
  std::ifstream file(log);
  std::string line;
  while (std::getline(file, line)) {
    if (line.find("error") != std::string::npos) return line;
  }
  return "no reason given";
}

Result<std::string> compile(const Target& target, const std::vector<PrintedSource>& sources,
                            const std::string& folder) {
  const BuildRecipe recipe = TRY(target.recipe(sources.front().text));
  const std::string source = folder + "/" + recipe.source_name;
  const std::string output = folder + "/" + recipe.output_name;
  std::ofstream(source) << joined(sources);
  std::vector<std::string> command = recipe.command;
  for (std::string& word : command) {
    replace(word, "{source}", source);
    replace(word, "{output}", output);
    replace(word, "{include}", KE_SOURCE_DIR "/include");
  }
  const std::string log = folder + "/build.log";
  if (!succeeds(command, log)) return Error{Errc::invalid, first_error(log)};
  return output;
}

// --- Running ------------------------------------------------------------------------------------

// Bytes whose end is less than kAlignment before a page that faults; the rest of the last page and
// the bytes before are canary. Shared with the child that runs the kernel.
class Fenced {
 public:
  explicit Fenced(size_t bytes) : bytes_(bytes) {
    const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    size_ = (padded + kPage - 1) / kPage * kPage + kPage;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, size_ + kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::fill(base_, base_ + size_, kPoison);
    mprotect(base_ + size_, kPage, PROT_NONE);
    data_ = base_ + size_ - padded;
  }
  Fenced(Fenced&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        data_(other.data_),
        bytes_(other.bytes_),
        size_(other.size_) {}
  Fenced& operator=(Fenced&&) = delete;
  ~Fenced() {
    if (base_ != nullptr) munmap(base_, size_ + kPage);
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void protect() const { mprotect(base_, size_, PROT_READ); }
  bool canary_lives() const {
    const auto poison = [](std::byte b) { return b == kPoison; };
    return std::all_of(base_, data_, poison) && std::all_of(data_ + bytes_, base_ + size_, poison);
  }

 private:
  std::byte* base_;
  std::byte* data_;
  size_t bytes_, size_;
};

ke_tensor described(const ir::Tensor& tensor, const Fenced& memory) {
  uint8_t code = KE_DTYPE_INT;
  if (ir::is_floating(tensor.dtype)) code = KE_DTYPE_FLOAT;
  if (tensor.dtype == ir::DType::bfloat16) code = KE_DTYPE_BFLOAT;
  if (tensor.dtype == ir::DType::uint8) code = KE_DTYPE_UINT;
  if (tensor.dtype == ir::DType::boolean) code = KE_DTYPE_BOOL;
  return {memory.data(),
          tensor.shape.data(),
          tensor.strides.data(),
          static_cast<int32_t>(tensor.shape.size()),
          code,
          static_cast<uint8_t>(8 * ir::bytes_of(tensor.dtype)),
          1};
}

// Tasks in reverse order, so that a kernel that relies on their order shows it.
void run_backwards(void*, int64_t n, void (*body)(int64_t, void*), void* argument) {
  for (int64_t i = n - 1; i >= 0; --i) body(i, argument);
}

std::string verdict_of(int status) {
  if (WIFSIGNALED(status)) return fmt::format("is ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return fmt::format("returns {}", WEXITSTATUS(status));
  return "";
}

}  // namespace

Result<Library> Library::build(const Target& target, const std::vector<PrintedSource>& sources,
                               const std::string& folder) {
  const Result<std::string> built = compile(target, sources, folder);
  if (!built.has_value() && sources.size() > 1) {
    for (const PrintedSource& source : sources) {  // which one is it?
      TRY(build(target, {source}, folder).context("built alone"));
    }
    return Error{Errc::invalid,
                 "sources that build alone don't together: " + built.error().message};
  }
  if (!built.has_value()) return Error{built.error()};
  void* handle = dlopen(built->c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(built->c_str());  // the next library gets a file of its own
  if (handle == nullptr) return Error{Errc::invalid, dlerror()};
  return Library(handle);
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

Result<std::vector<ir::TensorBytes>> Library::run(
    size_t position, const ir::Program& program, const std::vector<ir::TensorBytes>& inputs) const {
  const auto launch = reinterpret_cast<decltype(&ke_launch)>(
      dlsym(handle_, fmt::format("ke_launch_{}", position).c_str()));
  const auto scratch_bytes = reinterpret_cast<decltype(&ke_scratch_bytes)>(
      dlsym(handle_, fmt::format("ke_scratch_bytes_{}", position).c_str()));
  if (launch == nullptr) return Error{Errc::invalid, "lacks ke_launch"};
  std::vector<Fenced> memory;
  std::vector<ke_tensor> in, out;
  memory.reserve(inputs.size() + program.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    memory.emplace_back(inputs[i].size());
    std::copy(inputs[i].begin(), inputs[i].end(), memory.back().data());
    memory.back().protect();
    in.push_back(described(program.tensor(program.inputs[i]), memory.back()));
  }
  for (const ir::TensorId id : program.outputs) {
    const ir::Tensor& tensor = program.tensor(id);
    memory.emplace_back(static_cast<size_t>(tensor.elements() * ir::bytes_of(tensor.dtype)));
    out.push_back(described(tensor, memory.back()));
  }
  const Fenced scratch(scratch_bytes ? static_cast<size_t>(scratch_bytes()) : 0);
  ke_context context{.scratch = scratch.data(),
                     .scratch_bytes = static_cast<int64_t>(scratch.bytes()),
                     .num_threads = 2,
                     .parallel_for = run_backwards};
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsMax);
    _exit(launch(in.data(), static_cast<int32_t>(in.size()), out.data(),
                 static_cast<int32_t>(out.size()), &context) &
          0xff);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    return Error{Errc::internal, "no process can be started"};
  }
  if (const std::string failure = verdict_of(status); !failure.empty()) {
    return Error{Errc::invalid, failure};
  }
  if (!scratch.canary_lives()) return Error{Errc::invalid, "writes beyond its scratch"};
  std::vector<ir::TensorBytes> results;
  for (size_t i = inputs.size(); i < memory.size(); ++i) {
    if (!memory[i].canary_lives()) return Error{Errc::invalid, "writes beyond an output"};
    results.emplace_back(memory[i].data(), memory[i].data() + memory[i].bytes());
  }
  return results;
}

}  // namespace ke::fuzz
