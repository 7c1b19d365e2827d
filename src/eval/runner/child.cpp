// SPDX-License-Identifier: Apache-2.0
//
// Everything here runs in one process with a hostile library, so nothing here is a defence: guard
// zones and read-only mappings are enforced by the kernel, and the judge looks only at the output
// files. The fault handler and the replies make failures readable, no more.
#include "eval/runner/child.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include "eval/runner/guarded_memory.hpp"
#include "eval/runner/protocol.hpp"
#include "kernelevolve/kernel.h"
#include "kernelevolve/thread_pool.hpp"
#include "os/socket.hpp"

namespace ke::runner {
namespace {

using Launch = int (*)(const ke_tensor*, int32_t, ke_tensor*, int32_t, ke_context*);
using ScratchBytes = int64_t (*)();
using ScratchBytesFor = int64_t (*)(const ke_tensor*, int32_t);

// The signal handler's view of the process; set once before any candidate code runs.
struct FaultContext {
  const GuardedMemory* memory = nullptr;
  int socket = -1;
};
FaultContext fault_context;  // a signal handler has no argument

// Async-signal-safe: one send, then the end.
void on_fault(int signal, siginfo_t* info, void*) {
  RunnerReply reply;
  reply.ending = Ending::fault;
  reply.code = signal;
  if (signal == SIGSEGV || signal == SIGBUS) {
    reply.where = fault_context.memory->where(info->si_addr);
  }
  send(fault_context.socket, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
  _exit(128 + signal);
}

void catch_faults() {
  static std::array<std::byte, 64 << 10> stack;  // for the main thread's stack overflow
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

int no_work(const ke_tensor*, int32_t, ke_tensor*, int32_t, ke_context*) { return 0; }

struct BoundTensor {
  int region = -1;
  int64_t offset = 0;
};

// One set of inputs and outputs at its addresses.
struct Slot {
  std::vector<BoundTensor> bound;  // inputs, then outputs
  std::vector<ke_tensor> tensors;  // pristine; a call gets copies
};

ke_tensor tensor_of(const TensorLayout& layout) {
  static constexpr uint8_t kCodes[] = {
      KE_DTYPE_FLOAT, KE_DTYPE_FLOAT, KE_DTYPE_FLOAT, KE_DTYPE_BFLOAT, KE_DTYPE_INT,
      KE_DTYPE_INT,   KE_DTYPE_INT,   KE_DTYPE_INT,   KE_DTYPE_UINT,   KE_DTYPE_BOOL};
  ke_tensor tensor{};
  tensor.ndim = static_cast<int32_t>(layout.shape.size());
  tensor.shape = layout.shape.empty() ? nullptr : layout.shape.data();
  tensor.strides = layout.shape.empty() ? nullptr : layout.strides.data();
  tensor.dtype_code = kCodes[static_cast<size_t>(layout.dtype)];
  tensor.dtype_bits = static_cast<uint8_t>(8 * ir::bytes_of(layout.dtype));
  tensor.dtype_lanes = 1;
  return tensor;
}

class Child {
 public:
  explicit Child(const ChildOptions& options) : options_(options) {
    fault_context = {&memory_, options.socket};
  }

  RunnerReply obey(const os::Message& message) {
    Reader reader(message.bytes);
    switch (static_cast<RunnerCommand>(reader.integer())) {
      case RunnerCommand::bind:
        return bind(reader, message.descriptors);
      case RunnerCommand::load:
        return load(reader, message.descriptors);
      case RunnerCommand::run:
        return run(reader);
    }
    return failed(Ending::no_memory, "unknown command");
  }

 private:
  static RunnerReply failed(Ending ending, std::string_view text, int64_t code = 0) {
    RunnerReply reply;
    reply.ending = ending;
    reply.code = code;
    put_text(reply.text, text);
    return reply;
  }

  // slot, first tensor, then offset and file size of each tensor that comes with a descriptor
  RunnerReply bind(Reader& reader, const std::vector<os::FileDescriptor>& files) {
    const int64_t number = reader.integer();
    const int64_t first = reader.integer();
    if (number < 0 || number > 4096 || first < 0) return failed(Ending::no_memory, "bad bind");
    if (slots_.size() <= static_cast<size_t>(number)) {
      slots_.resize(static_cast<size_t>(number) + 1);
    }
    Slot& slot = slots_[static_cast<size_t>(number)];
    for (size_t i = 0; i < files.size(); ++i) {
      const int64_t offset = reader.integer(), bytes = reader.integer();
      const int64_t kind = reader.integer();
      const size_t index = static_cast<size_t>(first) + i;
      if (!reader.ok()) return failed(Ending::no_memory, "bad bind");
      if (slot.bound.size() <= index) slot.bound.resize(index + 1);
      BoundTensor& bound = slot.bound[index];
      const bool again = bound.region >= 0 && memory_.region(bound.region).bytes == bytes;
      if (again) {
        if (!memory_.map_file_again(bound.region, files[i].get())) bound.region = -1;
      } else {
        bound.region = memory_.map_file(files[i].get(), bytes, static_cast<RegionKind>(kind));
      }
      if (bound.region < 0) return failed(Ending::no_memory, "cannot map a tensor");
      bound.offset = offset;
    }
    slot.tensors.clear();
    return {};
  }

  // input count, output count, layouts; the library, or nothing for the empty kernel
  RunnerReply load(Reader& reader, const std::vector<os::FileDescriptor>& files) {
    input_count_ = reader.integer();
    output_count_ = reader.integer();
    for (int64_t i = 0; reader.ok() && i < input_count_ + output_count_; ++i) {
      layouts_.push_back(reader.layout());
    }
    if (!reader.ok()) return failed(Ending::no_memory, "bad load");
    call_tensors_.resize(layouts_.size());
    pool_ = std::make_unique<ThreadPool>(options_.threads);
    if (files.empty()) {
      launch_ = no_work;
      return {};
    }
    const std::string path = fmt::format("/proc/self/fd/{}", files[0].get());
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* why = dlerror();
      return failed(Ending::no_library, why ? why : "dlopen failed");
    }
    launch_ = reinterpret_cast<Launch>(dlsym(library, "ke_launch"));
    scratch_bytes_ = reinterpret_cast<ScratchBytes>(dlsym(library, "ke_scratch_bytes"));
    scratch_bytes_for_ = reinterpret_cast<ScratchBytesFor>(dlsym(library, "ke_scratch_bytes_for"));
    if (!launch_) return failed(Ending::no_symbol, "the library has no ke_launch");
    return {};
  }

  RunnerReply make_scratch(const Slot& slot) {
    int64_t bytes = 0;
    if (scratch_bytes_for_) {
      bytes = scratch_bytes_for_(slot.tensors.data(), static_cast<int32_t>(input_count_));
    } else if (scratch_bytes_) {
      bytes = scratch_bytes_();
    }
    scratch_ready_ = true;
    if (bytes < 0 || bytes > options_.scratch_bytes_max) {
      return failed(Ending::bad_scratch, "", bytes);
    }
    if (bytes == 0) return {};
    const int region = memory_.map_anonymous(bytes);
    if (region < 0) return failed(Ending::no_memory, "cannot allocate the scratch memory");
    const Region& mapped = memory_.region(region);
    const int64_t end_aligned = (mapped.bytes - bytes) / 64 * 64;
    scratch_ = mapped.data + end_aligned;
    scratch_size_ = bytes;
    return {};
  }

  void complete(Slot& slot) {
    for (size_t i = 0; i < layouts_.size(); ++i) {
      ke_tensor tensor = tensor_of(layouts_[i]);
      tensor.data = memory_.region(slot.bound[i].region).data + slot.bound[i].offset;
      slot.tensors.push_back(tensor);
    }
  }

  // the slots to run, in order
  RunnerReply run(Reader& reader) {
    const std::vector<int64_t> order = reader.integers();
    if (!launch_) return failed(Ending::no_symbol, "nothing is loaded");
    for (int64_t number : order) {
      if (number < 0 || number >= static_cast<int64_t>(slots_.size())) {
        return failed(Ending::no_memory, "bad slot");
      }
      Slot& slot = slots_[static_cast<size_t>(number)];
      if (slot.bound.size() != layouts_.size()) return failed(Ending::no_memory, "unbound slot");
      if (slot.tensors.empty()) complete(slot);
      if (!scratch_ready_) {
        const RunnerReply reply = make_scratch(slot);
        if (reply.ending != Ending::done) return reply;
      }
      const int code = call(slot);
      if (code != 0) return failed(Ending::returned, "", code);
    }
    return {};
  }

  int call(const Slot& slot) {
    std::copy(slot.tensors.begin(), slot.tensors.end(), call_tensors_.begin());
    ke_context context{};
    context.scratch = scratch_;
    context.scratch_bytes = scratch_size_;
    context.num_threads = pool_->num_threads();
    context.parallel_for = &ThreadPool::run;
    context.pool = pool_.get();
    return launch_(call_tensors_.data(), static_cast<int32_t>(input_count_),
                   call_tensors_.data() + input_count_, static_cast<int32_t>(output_count_),
                   &context);
  }

  ChildOptions options_;
  GuardedMemory memory_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<TensorLayout> layouts_;
  int64_t input_count_ = 0, output_count_ = 0;
  std::vector<Slot> slots_;
  std::vector<ke_tensor> call_tensors_;
  Launch launch_ = nullptr;
  ScratchBytes scratch_bytes_ = nullptr;
  ScratchBytesFor scratch_bytes_for_ = nullptr;
  std::byte* scratch_ = nullptr;
  int64_t scratch_size_ = 0;
  bool scratch_ready_ = false;
};

}  // namespace

int child_main(const ChildOptions& options) {
  Child child(options);
  catch_faults();
  const auto ever = std::chrono::hours(24);
  while (true) {
    Result<std::optional<os::Message>> message =
        os::receive_message(options.socket, kPacketBytesMax, ever);
    if (!message || !message->has_value()) return 0;
    RunnerReply reply;
    try {
      reply = child.obey(**message);
    } catch (...) {
      reply.ending = Ending::threw;
    }
    const Result<void> sent =
        os::send_message(options.socket, packet_of(reply), {}, std::chrono::seconds(60));
    if (!sent || reply.ending != Ending::done) return 0;
  }
}

}  // namespace ke::runner
