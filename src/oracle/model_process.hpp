// SPDX-License-Identifier: Apache-2.0
//
// The Python process of a candidate that is a module with ModelNew (py/kernelevolve/
// model_runner.py), in a locked room: it sees the interpreter, the problem's folder and its device,
// and keeps its compilers' caches to itself. Forked by the zygote where that can be had.
#pragma once

#include <memory>
#include <string>

#include "domain/limits.hpp"
#include "oracle/oracle_process.hpp"
#include "oracle/zygote.hpp"
#include "os/file_descriptor.hpp"

namespace ke::oracle {

struct ModelProcessOptions {
  std::string python;
  std::string problem_path;
  std::string cache_dir;  // of the unpacked Python files
  std::string driver = "libcuda.so.1";
  int32_t threads = 1;
  Limits limits;
  Zygote* zygote = nullptr;
};

struct ModelProcess {
  std::unique_ptr<OracleProcess> process;
  os::FileDescriptor socket;  // of packets; the judge's end
};

Result<ModelProcess> start_model_process(const ModelProcessOptions& options);

}  // namespace ke::oracle
