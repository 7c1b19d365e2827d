// SPDX-License-Identifier: Apache-2.0
//
// What the judge, the runner host and a runner say to each other: packets on private socket pairs.
// The judge believes nothing that a runner says but that it is ready for the next command; a reply
// can only end an evaluation badly. Numbers travel in the machine's own form: both ends are one
// program.
//
//   judge -> host      spawn (+ the runner's socket), reap
//   host  -> judge     HostReply (+ a pidfd)
//   judge -> runner    bind (+ memory files), load (+ the library), run
//   runner -> judge    RunnerReply
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.hpp"

namespace ke::runner {

inline constexpr int64_t kPacketBytesMax = 128 << 10;
inline constexpr int32_t kCallsPerBatchMax = 16'384;
inline constexpr int kHostSocket = 3;  // the host's end, as a descriptor of its process

enum class HostCommand : int64_t { spawn = 1, reap };
enum class RunnerCommand : int64_t { bind = 1, load, run };

struct HostReply {
  int64_t ok = 0;
  int64_t pid = 0;        // spawn: in the judge's pid namespace
  int64_t exit_code = 0;  // reap
  int64_t signal = 0;     // reap
  char text[512] = {};    // spawn: the protections, or what failed
};

// How one command ended. All but `done` end the runner.
enum class Ending : int64_t {
  done = 0,
  no_library,   // dlopen refused it: text
  no_symbol,    // it lacks ke_launch
  bad_scratch,  // wants more than the limit, or less than nothing
  returned,     // ke_launch returned `code`
  threw,        // a C++ exception left the kernel
  fault,        // signal `code` at an address of kind `where`
  no_memory,    // the runner could not map or allocate
};

// Where a faulting address lay.
enum class Where : int64_t {
  elsewhere = 0,
  input,
  input_guard,
  output,
  output_guard,
  scratch_guard
};

struct RunnerReply {
  Ending ending = Ending::done;
  int64_t code = 0;
  Where where = Where::elsewhere;
  char text[256] = {};
};

// Shape and type of one tensor, as both ends need it.
struct TensorLayout {
  ir::DType dtype = ir::DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

// --- Packing -----------------------------------------------------------------------------------

class Writer {
 public:
  void put(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::vector<int64_t>& values) {
    put(static_cast<int64_t>(values.size()));
    for (int64_t value : values) put(value);
  }
  void put(const std::string& text) {
    put(static_cast<int64_t>(text.size()));
    bytes_ += text;
  }
  void put(const TensorLayout& layout) {
    put(static_cast<int64_t>(layout.dtype));
    put(layout.shape);
    put(layout.strides);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reading past the end yields zeros and makes ok() false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  int64_t integer() {
    int64_t value = 0;
    if (left_.size() < sizeof value) {
      ok_ = false;
      left_ = {};
      return 0;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    const int64_t count = integer();
    if (count < 0 || count > static_cast<int64_t>(left_.size() / sizeof(int64_t))) ok_ = false;
    for (int64_t i = 0; ok_ && i < count; ++i) values.push_back(integer());
    return values;
  }
  std::string text() {
    const int64_t size = integer();
    if (size < 0 || size > static_cast<int64_t>(left_.size())) ok_ = false;
    if (!ok_) return {};
    std::string text(left_.substr(0, static_cast<size_t>(size)));
    left_.remove_prefix(text.size());
    return text;
  }
  TensorLayout layout() {
    TensorLayout layout;
    layout.dtype = static_cast<ir::DType>(integer());
    layout.shape = integers();
    layout.strides = integers();
    return layout;
  }
  bool ok() const { return ok_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

template <class T>
std::string_view packet_of(const T& reply) {
  return {reinterpret_cast<const char*>(&reply), sizeof reply};
}

// Absent unless the packet has exactly the reply's size.
template <class T>
std::optional<T> reply_of(std::string_view packet) {
  if (packet.size() != sizeof(T)) return std::nullopt;
  T reply;
  std::memcpy(static_cast<void*>(&reply), packet.data(), sizeof reply);
  reply.text[sizeof(reply.text) - 1] = 0;
  return reply;
}

template <size_t n>
void put_text(char (&to)[n], std::string_view text) {
  const size_t count = text.size() < n - 1 ? text.size() : n - 1;
  std::memcpy(to, text.data(), count);
  to[count] = 0;
}

}  // namespace ke::runner
