// SPDX-License-Identifier: Apache-2.0
//
// What the judge and a launcher say to each other: packets on a private socket pair, in the form of
// runner/protocol.hpp. The launcher runs no candidate's code on the processor, but such code runs
// on the device under its context, so it holds no expected value and is thrown away after a fault.
//
//   judge -> launcher   open, bind (+ memory descriptors), load (+ the code in a memory file), run
//   launcher -> judge   LauncherReply; run: followed by the times
//
// A model runner (py/kernelevolve/model_runner.py) speaks the same, but the code it is given is a
// Python module, which runs in it: nothing it says is believed. It has load_module (+ the source
// and a description of the problem as JSON, in memory files) in place of load, and besides
// collect: copies the results of the latest run into the slots' outputs.
// stain: fills what its allocator keeps for later with a byte, before a call that is checked.
#pragma once

#include <cstdint>

#include "eval/runner/protocol.hpp"

namespace ke::launcher {

inline constexpr int kSocket = 3;  // the launcher's end, as a descriptor of its process
inline constexpr int64_t kPacketBytesMax = 1 << 20;
inline constexpr int32_t kCallsPerBatchMax = 4096;

enum class Command : int64_t { open = 1, bind, load, run, load_module, collect, stain };

// How one command ended. All but `done` end the launcher.
enum class Ending : int64_t {
  done = 0,
  no_device,      // open: no driver or device, text says which
  bad_code,       // load: the driver refuses the code
  no_kernel,      // load: a kernel that is launched is not in the code: text is its name
  bad_launch,     // the driver refuses a launch: text
  fault,          // the device's status after a launch, `code`: illegal address, trap, …
  no_memory,      // of the device
  bad_result,     // of a module: not the tensors that the problem returns; text says what
  exception,      // of a module: text
  misunderstood,  // ours: a packet that makes no sense
};

struct LauncherReply {
  Ending ending = Ending::done;
  int64_t code = 0;
  char text[512] = {};
};

// plain: launches one after another. graph: the call is captured once and replayed.
enum class LaunchMode : int64_t { plain = 0, graph };

struct RunOptions {
  LaunchMode mode = LaunchMode::plain;
  // Bytes of the device's caches to push out before each call, by writing as many; 0: none. Calls
  // are then timed one by one, else the batch as one.
  int64_t flush_bytes = 0;
};

}  // namespace ke::launcher
