// SPDX-License-Identifier: Apache-2.0
#include "oracle/model_process.hpp"

#include <filesystem>
#include <limits>

#include "oracle/python_room.hpp"
#include "os/socket.hpp"

namespace ke::oracle {
namespace {

namespace fs = std::filesystem;

constexpr int kPacketsFd = 3;  // the number in the child
// Threads of the driver and of PyTorch, a compiler now and then.
constexpr int32_t kProcessesMax = 512;

// Caches are the candidate's own: what one leaves there, the next must not find.
std::vector<std::string> model_environment() {
  const std::string home = "/tmp";  // of the room
  std::vector<std::string> environment = os::minimal_environment(home);
  environment.emplace_back("USER=kernelevolve");
  environment.push_back("TRITON_CACHE_DIR=" + home + "/kernels");
  environment.push_back("TORCHINDUCTOR_CACHE_DIR=" + home + "/inductor");
  environment.push_back("CUDA_CACHE_PATH=" + home + "/cuda");
  environment.emplace_back("TORCHINDUCTOR_COMPILE_THREADS=1");
  return environment;
}

Result<std::unique_ptr<OracleProcess>> start_anew(const ProcessRequest& request,
                                                  const fs::path& script) {
  os::ProcessOptions process;
  process.argv = {request.python, "-I", script.string(), std::to_string(kPacketsFd),
                  request.driver};
  process.environment = request.environment;
  process.error = os::Stream::pipe;
  process.descriptors = {{request.judge, kPacketsFd}};
  process.limits.open_files = kOpenFilesMax;
  process.limits.processors = request.threads;
  process.room = request.room;
  os::Child child = TRY(os::spawn(process));
  return std::unique_ptr<OracleProcess>(std::make_unique<StartedProcess>(std::move(child)));
}

}  // namespace

Result<ModelProcess> start_model_process(const ModelProcessOptions& options) {
  auto sockets = TRY(os::make_socket_pair(os::SocketKind::packets));
  const fs::path script = TRY(unpack_python(options.cache_dir)).parent_path() / "model_runner.py";
  const std::string python = TRY(absolute_python(options.python));
  const os::Room room = TRY(
      prepare_python_room({.python = python,
                           .problem_folder = fs::path(options.problem_path).parent_path(),
                           .cache_dir = options.cache_dir,
                           .private_caches = true,
                           .memory_bytes = options.limits.runner_memory_bytes,
                           .processes_max = kProcessesMax,
                           .driver = options.driver}));
  ProcessRequest request;
  request.python = python;
  request.room = &room;
  request.judge = request.compile = sockets.second.get();
  request.environment = model_environment();
  request.memory_bytes = std::numeric_limits<int64_t>::max();
  request.threads = options.threads;
  request.role = "model";
  request.driver = options.driver;
  ModelProcess model;
  model.socket = std::move(sockets.first);
  if (options.zygote != nullptr) {
    auto forked = options.zygote->fork(request, options.limits.python_start_max);
    if (forked) model.process = std::move(*forked);
  }
  if (!model.process) model.process = TRY(start_anew(request, script));
  return model;
}

}  // namespace ke::oracle
