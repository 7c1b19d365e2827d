// SPDX-License-Identifier: Apache-2.0
#include "eval/launcher/child.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "eval/launcher/protocol.hpp"
#include "os/cuda_memory.hpp"
#include "os/shared_memory.hpp"
#include "os/socket.hpp"
#include "target/launch_plan.hpp"

namespace ke::launcher {
namespace {

namespace cuda = os::cuda;
using runner::Reader;
using runner::Writer;
using target::Launch;
using target::LaunchArgument;

constexpr int kSlotsMax = 4096;
// A kernel may have more parameters than its line hands over, and larger ones: what the driver then
// reads is zeros of ours. No device takes more bytes of parameters.
constexpr size_t kParameterBytesMax = 32 << 10;
constexpr int64_t kStaticSharedMax = 48 << 10;  // what a kernel may have without asking

// What ends the launcher, on its way out of nested calls.
struct Ended {
  Ending ending;
  int64_t code = 0;
  std::string text = {};
};

// One tensor: its memory, mapped, and where in it the data begins.
struct Tensor {
  cuda::Mapping mapping;
  cuda::DevicePointer data;
};

struct Slot {
  std::vector<Tensor> inputs, outputs;
};

struct Call {
  cuda::FunctionHandle function;
  const Launch* launch;
};

class LauncherProcess {
 public:
  explicit LauncherProcess(std::string library) : library_(std::move(library)) {}

  int serve() {
    const auto ever = std::chrono::hours(24 * 30);
    for (;;) {
      auto message = os::receive_message(kSocket, kPacketBytesMax, ever);
      if (!message || !message->has_value()) return 0;
      LauncherReply reply;
      times_ = {};
      try {
        obey(**message);
      } catch (const Ended& ended) {
        reply.ending = ended.ending;
        reply.code = ended.code;
        runner::put_text(reply.text, ended.text);
      }
      std::string packet(runner::packet_of(reply));
      packet += times_.bytes();
      if (!os::send_message(kSocket, packet, {}, std::chrono::seconds(60))) return 0;
      if (reply.ending != Ending::done) return 1;
    }
  }

 private:
  template <class T>
  T must(Result<T>&& result, Ending ending) {
    if (!result) throw Ended{ending, 0, result.error().to_string()};
    return std::move(*result);
  }
  // A status of the driver's. What a kernel did earlier may come out in any call.
  void must(cuda::Status status, Ending ending, std::string_view what) const {
    if (status == cuda::kSuccess) return;
    const std::string text(what);
    if (status == cuda::kOutOfMemory) throw Ended{Ending::no_memory, status, text};
    if (status >= cuda::kIllegalAddress && ending != Ending::bad_code) {
      throw Ended{Ending::fault, status, driver_->name_of(status)};
    }
    throw Ended{ending, status, text + ": " + driver_->name_of(status)};
  }
  const cuda::Api& api() const { return driver_->api(); }

  void obey(os::Message& message) {
    Reader reader(message.bytes);
    const auto command = static_cast<Command>(reader.integer());
    if ((command == Command::open) != (driver_ == nullptr)) misunderstood();
    switch (command) {
      case Command::open:
        return open(static_cast<int>(reader.integer()));
      case Command::bind:
        return bind(reader, message.descriptors);
      case Command::load:
        return load(reader, message.descriptors);
      case Command::run:
        return run(reader);
      case Command::load_module:  // these are a model runner's
      case Command::collect:
      case Command::stain:
        break;
    }
    misunderstood();
  }

  [[noreturn]] static void misunderstood() { throw Ended{Ending::misunderstood}; }

  void open(int ordinal) {
    driver_ = must(cuda::Driver::load(library_), Ending::no_device);
    ordinal_ = ordinal;
    context_.emplace(must(cuda::Context::open(*driver_, ordinal), Ending::no_device));
    must(api().stream_create(&stream_, cuda::kStreamNonBlocking), Ending::no_device,
         "cuStreamCreate");
    must(api().event_create(&begin_, 0), Ending::no_device, "cuEventCreate");
    must(api().event_create(&end_, 0), Ending::no_device, "cuEventCreate");
  }

  // slot, whether it is the slot's first packet, then for each descriptor: whether it is an output,
  // whether it may be written, the offset of the data, the bytes of the memory.
  void bind(Reader& reader, const std::vector<os::FileDescriptor>& descriptors) {
    const int64_t number = reader.integer();
    if (number < 0 || number >= kSlotsMax) misunderstood();
    Slot& slot = slots_[number];
    if (reader.integer() != 0) slot = {};
    graphs_.erase(number);
    for (const os::FileDescriptor& descriptor : descriptors) {
      const bool output = reader.integer() != 0;
      const cuda::Access access =
          reader.integer() != 0 ? cuda::Access::read_write : cuda::Access::read;
      const int64_t offset = reader.integer();
      const int64_t bytes = reader.integer();
      if (!reader.ok() || offset < 0 || bytes <= 0 || offset > bytes) misunderstood();
      const cuda::Allocation memory = must(
          cuda::Allocation::import(*driver_, ordinal_, descriptor.get(), bytes), Ending::no_memory);
      cuda::Mapping mapping = must(cuda::Mapping::make(memory, access), Ending::no_memory);
      const cuda::DevicePointer data = mapping.address() + static_cast<cuda::DevicePointer>(offset);
      (output ? slot.outputs : slot.inputs).push_back({std::move(mapping), data});
    }
  }

  // scratch bytes, launches; the code is in a memory file.
  void load(Reader& reader, std::vector<os::FileDescriptor>& descriptors) {
    graphs_.clear();
    calls_.clear();
    values_.clear();
    scratch_.reset();
    if (module_ != nullptr) must(api().module_unload(module_), Ending::fault, "cuModuleUnload");
    module_ = nullptr;
    plan_ = read_plan(reader);
    const int64_t code_bytes = reader.integer();
    if (!reader.ok() || descriptors.size() != 1 || code_bytes <= 0) misunderstood();
    const os::SharedMemory code =
        must(os::SharedMemory::adopt(std::move(descriptors[0]), code_bytes), Ending::misunderstood);
    must(api().module_load(&module_, code.data()), Ending::bad_code, "the driver refuses the code");
    for (const Launch& launch : plan_.launches) calls_.push_back({function_of(launch), &launch});
    if (plan_.scratch_bytes > 0) {
      const cuda::Allocation memory =
          must(cuda::Allocation::create(*driver_, ordinal_, plan_.scratch_bytes, false),
               Ending::no_memory);
      scratch_.emplace(
          must(cuda::Mapping::make(memory, cuda::Access::read_write), Ending::no_memory));
    }
  }

  static target::LaunchPlan read_plan(Reader& reader) {
    target::LaunchPlan plan{.scratch_bytes = reader.integer(), .launches = {}};
    const int64_t count = reader.integer();
    for (int64_t i = 0; i < count && reader.ok(); ++i) {
      Launch launch;
      launch.kernel = reader.text();
      for (int64_t& extent : launch.grid) extent = reader.integer();
      for (int64_t& extent : launch.block) extent = reader.integer();
      launch.shared_bytes = reader.integer();
      const std::vector<int64_t> arguments = reader.integers();
      for (size_t j = 0; j + 1 < arguments.size(); j += 2) {
        launch.arguments.push_back(
            {static_cast<LaunchArgument::Kind>(arguments[j]), arguments[j + 1]});
      }
      plan.launches.push_back(std::move(launch));
    }
    if (!reader.ok()) misunderstood();
    return plan;
  }

  cuda::FunctionHandle function_of(const Launch& launch) const {
    cuda::FunctionHandle function = nullptr;
    const cuda::Status status = api().module_function(&function, module_, launch.kernel.c_str());
    if (status == cuda::kNotFound) throw Ended{Ending::no_kernel, status, launch.kernel};
    must(status, Ending::bad_code, "cuModuleGetFunction");
    if (launch.shared_bytes > kStaticSharedMax) {
      const cuda::Status set = api().function_set_attribute(
          function, static_cast<int>(cuda::FunctionAttribute::dynamic_shared_max),
          static_cast<int>(launch.shared_bytes));
      must(set, Ending::bad_launch, "the device has not so much shared memory");
    }
    return function;
  }

  // mode, bytes to flush, slots. The reply is followed by nanoseconds: of each call where caches
  // are flushed before each, else of the whole batch.
  void run(Reader& reader) {
    const auto mode = static_cast<LaunchMode>(reader.integer());
    const int64_t flush_bytes = reader.integer();
    const std::vector<int64_t> slots = reader.integers();
    const auto is_bound = [&](int64_t slot) { return slots_.contains(slot); };
    if (!reader.ok() || calls_.empty() || !std::ranges::all_of(slots, is_bound)) misunderstood();
    if (mode == LaunchMode::graph) {
      for (const int64_t slot : slots) capture(slot);
    }
    must(api().reset_persisting_l2(), Ending::fault, "cuCtxResetPersistingL2Cache");
    std::vector<int64_t> times;
    if (flush_bytes > 0) {
      for (const int64_t slot : slots) {
        flush(flush_bytes);
        times.push_back(timed([&] { call(slot, mode); }));
      }
    } else {
      times.push_back(timed([&] {
        for (const int64_t slot : slots) call(slot, mode);
      }));
    }
    times_.put(times);
  }

  // By events on the stream: ours alone, since no code of the candidate can reach them.
  template <class Work>
  int64_t timed(const Work& work) {
    must(api().event_record(begin_, stream_), Ending::fault, "cuEventRecord");
    work();
    must(api().event_record(end_, stream_), Ending::fault, "cuEventRecord");
    must(api().stream_synchronize(stream_), Ending::fault, "cuStreamSynchronize");
    float milliseconds = 0;
    must(api().event_elapsed_ms(&milliseconds, begin_, end_), Ending::fault, "cuEventElapsedTime");
    return std::llround(static_cast<double>(milliseconds) * 1e6);
  }

  void call(int64_t number, LaunchMode mode) {
    if (mode == LaunchMode::plain) return launch_all(slots_.at(number));
    must(api().graph_launch(graphs_.at(number).get(), stream_), Ending::bad_launch,
         "cuGraphLaunch");
  }

  void launch_all(const Slot& slot) {
    for (const Call& one : calls_) {
      make_room_for(one.launch->arguments.size());
      for (size_t i = 0; i < one.launch->arguments.size(); ++i) {
        values_[i] = static_cast<int64_t>(value_of(one.launch->arguments[i], slot));
      }
      const auto& grid = one.launch->grid;
      const auto& block = one.launch->block;
      const auto narrow = [](int64_t extent) { return static_cast<unsigned>(extent); };
      must(api().launch(one.function, narrow(grid[0]), narrow(grid[1]), narrow(grid[2]),
                        narrow(block[0]), narrow(block[1]), narrow(block[2]),
                        narrow(one.launch->shared_bytes), stream_, pointers_.data(), nullptr),
           Ending::bad_launch, "the driver refuses the launch of " + one.launch->kernel);
    }
  }

  // Values and pointers to them, with zeros behind; made again for a plan with more of them.
  void make_room_for(size_t arguments) {
    const size_t wanted = arguments + kParameterBytesMax;
    if (!values_.empty() && pointers_.size() >= wanted) return;
    values_.assign(wanted + kParameterBytesMax / sizeof(int64_t), 0);
    pointers_.clear();
    for (size_t i = 0; i < wanted; ++i) pointers_.push_back(&values_[i]);
  }

  uint64_t value_of(const LaunchArgument& argument, const Slot& slot) const {
    const auto at = static_cast<size_t>(argument.value);
    switch (argument.kind) {
      case LaunchArgument::Kind::input:
        if (at < slot.inputs.size()) return slot.inputs[at].data;
        break;
      case LaunchArgument::Kind::output:
        if (at < slot.outputs.size()) return slot.outputs[at].data;
        break;
      case LaunchArgument::Kind::scratch:
        if (scratch_) return scratch_->address() + static_cast<uint64_t>(argument.value);
        break;
      case LaunchArgument::Kind::integer:
        return static_cast<uint64_t>(argument.value);
    }
    misunderstood();
  }

  void capture(int64_t number) {
    if (graphs_.contains(number)) return;
    must(api().stream_begin_capture(stream_, cuda::kCaptureThreadLocal), Ending::fault,
         "cuStreamBeginCapture");
    launch_all(slots_.at(number));
    cuda::GraphHandle graph = nullptr;
    must(api().stream_end_capture(stream_, &graph), Ending::bad_launch, "cuStreamEndCapture");
    cuda::GraphExecHandle exec = nullptr;
    const cuda::Status status = api().graph_instantiate(&exec, graph, 0);
    (void)api().graph_destroy(graph);
    must(status, Ending::bad_launch, "cuGraphInstantiate");
    graphs_.emplace(number, std::unique_ptr<cuda::CUgraphExec_st, DestroyGraph>(exec, {&api()}));
  }

  void flush(int64_t bytes) {
    if (!flushed_ || flushed_->bytes() < bytes) {
      flushed_.reset();
      const cuda::Allocation memory =
          must(cuda::Allocation::create(*driver_, ordinal_, bytes, false), Ending::no_memory);
      flushed_.emplace(
          must(cuda::Mapping::make(memory, cuda::Access::read_write), Ending::no_memory));
    }
    must(api().fill_bytes(flushed_->address(), 0, static_cast<size_t>(bytes), stream_),
         Ending::fault, "cuMemsetD8Async");
  }

  struct DestroyGraph {
    const cuda::Api* api;
    void operator()(cuda::GraphExecHandle graph) const { (void)api->graph_exec_destroy(graph); }
  };

  std::string library_;
  std::unique_ptr<cuda::Driver> driver_;
  int ordinal_ = 0;
  std::optional<cuda::Context> context_;
  cuda::StreamHandle stream_ = nullptr;
  cuda::EventHandle begin_ = nullptr, end_ = nullptr;
  std::map<int64_t, Slot> slots_;
  cuda::ModuleHandle module_ = nullptr;
  target::LaunchPlan plan_;
  std::vector<Call> calls_;  // into plan_
  std::vector<int64_t> values_;  // of the arguments of one launch
  std::vector<void*> pointers_;  // to them
  std::optional<cuda::Mapping> scratch_, flushed_;
  std::map<int64_t, std::unique_ptr<cuda::CUgraphExec_st, DestroyGraph>> graphs_;
  Writer times_;
};

}  // namespace

int child_main(const std::string& library) { return LauncherProcess(library).serve(); }

}  // namespace ke::launcher
