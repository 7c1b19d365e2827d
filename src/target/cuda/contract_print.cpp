// SPDX-License-Identifier: Apache-2.0
//
// Printing of contractions. While one slice of the operands is multiplied, the next is on its way
// to registers, and from there goes to the other half of shared memory: registers on the way let
// operands be computed (prologues) and turned ([k][m] whatever memory has). Elements past an edge
// are zero in shared memory, so that only loads and stores know edges.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/contract.hpp"
#include "target/cuda/contract_parts.hpp"

namespace ke::cuda {
namespace {

using target::ceil_div;
using target::CodeWriter;
using target::ContractShape;
using target::Operand;

// Elements behind each row in shared memory: fewer bank conflicts.
constexpr int64_t kTilePadding = 4;
constexpr int64_t kCombineBlock = 256;

// How the threads of a block fetch one operand's slice.
struct Fetch {
  const Operand* operand = nullptr;
  std::string name;   // "A", "B"
  int row_axis = 0;   // canonical axis of the slice's rows: m or n
  int64_t rows = 0;   // of the slice
  int lane_axis = 0;  // neighbouring threads go along it
  int64_t width = 1;  // neighbours a thread fetches at once
  int64_t turns = 1;  // a thread
};

class ContractPrinter {
 public:
  ContractPrinter(PrintContext& context, const ContractShape& shape,
                  const ContractSchedule& schedule)
      : context_(context), shape_(shape), schedule_(schedule) {
    axes_ = contract_axes(context, shape);
    element_ = target::compute_type(shape.dtype);
    fetches_ = {fetch_of(shape.a, "A", shape.m_axis(), schedule.block_m),
                fetch_of(shape.b, "B", shape.n_axis(), schedule.block_n)};
  }

  Result<KernelCode> run() {
    const int64_t tiles = ceil_div(shape_.m, schedule_.block_m) *
                          ceil_div(shape_.n, schedule_.block_n) * shape_.batches();
    if (schedule_.split_k > 1) {
      code_.scratch_bytes = schedule_.split_k * outputs() * bytes_of(shape_.dtype);
    }
    print_main();
    code_.launches.push_back({context_.kernel.name, tiles * schedule_.split_k, 1,
                              schedule_.threads(), shared_elements() * bytes_of(shape_.dtype)});
    if (schedule_.split_k > 1) {
      out_.line("");
      print_combine();
      code_.launches.push_back({context_.kernel.name + "_combine",
                                ceil_div(outputs(), kCombineBlock), 1, kCombineBlock, 0});
    }
    code_.functions = out_.take();
    code_.schedule = words();
    return std::move(code_);
  }

 private:
  std::string words() const {
    std::string text = fmt::format(
        "Schedule: m {}, n {}, k {}; blocks of {} x {}, slices of {}, {} x {} sums a thread, {} "
        "threads, {}",
        shape_.m, shape_.n, shape_.k, schedule_.block_m, schedule_.block_n, schedule_.block_k,
        schedule_.tile_m, schedule_.tile_n, schedule_.threads(),
        schedule_.buffers > 1 ? "the next slice on its way" : "one slice at a time");
    if (schedule_.split_k > 1) text += fmt::format("; k in {} parts", schedule_.split_k);
    return text + ".";
  }

  int64_t outputs() const { return shape_.batches() * shape_.m * shape_.n; }
  int64_t pitch(int64_t rows) const { return rows + kTilePadding; }
  int64_t slice_elements() const {
    return schedule_.block_k * (pitch(schedule_.block_m) + pitch(schedule_.block_n));
  }
  int64_t shared_elements() const { return schedule_.buffers * slice_elements(); }
  const std::string& name_of(int axis) const { return axes_[static_cast<size_t>(axis)].variable; }
  int64_t extent_of(int axis) const { return axes_[static_cast<size_t>(axis)].extent; }

  // Along k or along its rows, whichever memory has next to each other.
  Fetch fetch_of(const Operand& operand, std::string name, int row_axis, int64_t rows) const {
    Fetch fetch{&operand, std::move(name), row_axis, rows, shape_.k_axis()};
    if (operand.strided && operand.strided->row == 1) fetch.lane_axis = row_axis;
    const int64_t along = fetch.lane_axis == row_axis ? rows : schedule_.block_k;
    const int64_t most = std::min<int64_t>(4, rows * schedule_.block_k / schedule_.threads());
    fetch.width = std::min(most, widest_load(context_.program, operand.value, fetch.lane_axis));
    while (fetch.width > 1 &&
           (along % fetch.width != 0 || extent_of(fetch.lane_axis) % fetch.width != 0)) {
      fetch.width /= 2;
    }
    fetch.width = std::max<int64_t>(fetch.width, 1);
    fetch.turns = ceil_div(rows * schedule_.block_k, schedule_.threads() * fetch.width);
    return fetch;
  }

  // --- The product -------------------------------------------------------------------------------

  void print_main() {
    const bool scratch = schedule_.split_k > 1;
    out_.open(function_head(context_, context_.kernel.name, schedule_.threads(), scratch));
    print_tile();
    const int64_t per_thread = schedule_.tile_m * schedule_.tile_n;
    out_.line(fmt::format("{0}* const allSlices = ({0}*)ke_shared();", element_));
    out_.line(fmt::format("{} tileSums[{}] = {{}};", element_, per_thread));
    for (const Fetch& fetch : fetches_) {
      out_.line(fmt::format("{} next{}[{}];", element_, fetch.name, fetch.turns * fetch.width));
    }
    out_.open("if (kBegin < kEnd)");
    print_fetch("kBegin");
    print_keep("0");
    out_.close();
    out_.line("__syncthreads();");
    const bool two = schedule_.buffers > 1;
    out_.line("int sliceIndex = 0;");
    out_.open(
        fmt::format("for (int kSlice = kBegin; kSlice < kEnd; kSlice += {})", schedule_.block_k));
    out_.line(fmt::format("const bool moreSlices = kSlice + {} < kEnd;", schedule_.block_k));
    out_.open("if (moreSlices)");
    print_fetch(fmt::format("kSlice + {}", schedule_.block_k));
    out_.close();
    print_products();
    if (!two) out_.line("__syncthreads();");
    out_.open("if (moreSlices)");
    if (two) out_.line("sliceIndex = 1 - sliceIndex;");
    print_keep("sliceIndex");
    out_.close();
    out_.line("__syncthreads();");
    out_.close();
    print_outputs();
    out_.close();
  }

  // Which tile, batch and part of k a block has.
  void print_tile() {
    const int64_t tiles_n = ceil_div(shape_.n, schedule_.block_n);
    const int64_t tiles_m = ceil_div(shape_.m, schedule_.block_m);
    out_.line("const int threadIndex = (int)threadIdx.x;");
    out_.line(fmt::format("const int tileN = (int)blockIdx.x % {};", tiles_n));
    out_.line(fmt::format("const int tileM = (int)blockIdx.x / {} % {};", tiles_n, tiles_m));
    out_.line(fmt::format("const int mBegin = tileM * {}, nBegin = tileN * {};", schedule_.block_m,
                          schedule_.block_n));
    out_.line(fmt::format("const int restOfBlock = (int)blockIdx.x / {};", tiles_m * tiles_n));
    print_batch(out_, shape_, axes_, "restOfBlock");
    if (schedule_.split_k == 1) {
      out_.line(fmt::format("const int kBegin = 0, kEnd = {};", shape_.k));
    } else {
      const int64_t part =
          target::round_up(ceil_div(shape_.k, schedule_.split_k), schedule_.block_k);
      out_.line(fmt::format("const int partOfK = restOfBlock / {};", shape_.batches()));
      out_.line(fmt::format("const int kBegin = partOfK * {};", part));
      out_.line(
          fmt::format("const int kEnd = kBegin + {0} < {1} ? kBegin + {0} : {1};", part, shape_.k));
    }
    const int64_t across = schedule_.block_n / schedule_.tile_n;
    out_.line(
        fmt::format("const int threadN = threadIndex % {0}, threadM = threadIndex / {0};", across));
  }

  // Where, in its slice, a thread's group of a turn lies: `across` the lane axis first.
  void print_place(const Fetch& fetch) {
    const bool along_rows = fetch.lane_axis == fetch.row_axis;
    const int64_t groups = (along_rows ? fetch.rows : schedule_.block_k) / fetch.width;
    out_.line(
        fmt::format("const int placeIndex = turnIndex * {} + threadIndex;", schedule_.threads()));
    const int64_t all = fetch.rows * schedule_.block_k / fetch.width;
    if (all % schedule_.threads() != 0) out_.line(fmt::format("if (placeIndex >= {}) break;", all));
    const std::string lane = fetch.width == 1
                                 ? fmt::format("placeIndex % {}", groups)
                                 : fmt::format("placeIndex % {} * {}", groups, fetch.width);
    out_.line(fmt::format("const int sliceRow = {}, sliceDepth = {};",
                          along_rows ? lane : fmt::format("placeIndex / {}", groups),
                          along_rows ? fmt::format("placeIndex / {}", groups) : lane));
  }

  void open_turns(const Fetch& fetch) {
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)", fetch.turns));
  }

  // Global memory to registers, the slice at `depth_first`.
  void print_fetch(const std::string& depth_first) {
    for (const Fetch& fetch : fetches_) {
      open_turns(fetch);
      print_place(fetch);
      const AxisBinding& lane = axes_[static_cast<size_t>(fetch.lane_axis)];
      const auto declare = [&](int axis, const std::string& text) {
        const bool wide = axis == fetch.lane_axis;
        const std::string name =
            wide ? ElementLoop::first_variable(lane, fetch.width) : name_of(axis);
        out_.line(fmt::format("const int {} = {};", name, text));
        return name;
      };
      const std::string row = declare(
          fetch.row_axis,
          fmt::format("{} + sliceRow", fetch.row_axis == shape_.m_axis() ? "mBegin" : "nBegin"));
      const std::string depth =
          declare(shape_.k_axis(), fmt::format("{} + sliceDepth", depth_first));
      out_.line("#pragma unroll");
      out_.line(fmt::format(
          "for (int eachOne = 0; eachOne < {0}; ++eachOne) next{1}[turnIndex * {0} + eachOne] = 0;",
          fetch.width, fetch.name));
      out_.open(fmt::format("if ({} < {} && {} < kEnd)", row, extent_of(fetch.row_axis), depth));
      ElementLoop loop(context_, out_, axes_, fetch.lane_axis, fetch.width);
      loop.prepare(fetch.operand->value);
      loop.open();
      const Value value = loop.element().print(fetch.operand->value);
      const std::string index =
          fetch.width == 1 ? "turnIndex"
                           : fmt::format("turnIndex * {} + {} - {}", fetch.width, lane.variable,
                                         ElementLoop::first_variable(lane, fetch.width));
      out_.line(fmt::format("next{}[{}] = {};", fetch.name, index, value.text));
      loop.close();
      out_.close();
      out_.close();
    }
  }

  std::string slice_of(const Fetch& fetch, const std::string& slice) const {
    const int64_t offset = fetch.name == "A" ? 0 : schedule_.block_k * pitch(schedule_.block_m);
    std::string text = schedule_.buffers == 1
                           ? std::string("allSlices")
                           : fmt::format("allSlices + {} * {}", slice, slice_elements());
    return offset == 0 ? text : fmt::format("{} + {}", text, offset);
  }

  // Registers to shared memory.
  void print_keep(const std::string& slice) {
    for (const Fetch& fetch : fetches_) {
      const bool along_rows = fetch.lane_axis == fetch.row_axis;
      open_turns(fetch);
      print_place(fetch);
      out_.line(fmt::format("{}* const toSlice = {} + sliceDepth * {} + sliceRow;", element_,
                            slice_of(fetch, slice), pitch(fetch.rows)));
      out_.line("#pragma unroll");
      out_.line(fmt::format(
          "for (int eachOne = 0; eachOne < {0}; ++eachOne) toSlice[eachOne{1}] = next{2}[turnIndex "
          "* {0} + eachOne];",
          fetch.width, along_rows ? "" : fmt::format(" * {}", pitch(fetch.rows)), fetch.name));
      out_.close();
    }
  }

  void print_products() {
    const int64_t tile_m = schedule_.tile_m, tile_n = schedule_.tile_n;
    out_.line(
        fmt::format("const {}* const sliceA = {};", element_, slice_of(fetches_[0], "sliceIndex")));
    out_.line(
        fmt::format("const {}* const sliceB = {};", element_, slice_of(fetches_[1], "sliceIndex")));
    out_.line("#pragma unroll");
    out_.open(
        fmt::format("for (int sliceDepth = 0; sliceDepth < {}; ++sliceDepth)", schedule_.block_k));
    out_.line(fmt::format("alignas(16) {} aWords[{}], bWords[{}];", element_, tile_m, tile_n));
    const auto load = [&](const char* to, const char* slice, int64_t tile, int64_t block,
                          const char* thread) {
      out_.line("#pragma unroll");
      out_.line(
          fmt::format("for (int quadIndex = 0; quadIndex < {0}; ++quadIndex) ke_copy<4>({1} + 4 * "
                      "quadIndex, {2} + sliceDepth * "
                      "{3} + quadIndex * {4} + {5} * 4);",
                      tile / 4, to, slice, pitch(block), block * 4 / tile, thread));
    };
    load("aWords", "sliceA", tile_m, schedule_.block_m, "threadM");
    load("bWords", "sliceB", tile_n, schedule_.block_n, "threadN");
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int iSum = 0; iSum < {}; ++iSum)", tile_m));
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int jSum = 0; jSum < {0}; ++jSum) tileSums[iSum * {0} + jSum] += "
                    "aWords[iSum] * bWords[jSum];",
                    tile_n));
    out_.close();
    out_.close();
  }

  // --- What becomes of the sums ------------------------------------------------------------------

  // Rows and quads of columns of a thread's tile.
  void print_outputs() {
    const int64_t tile_m = schedule_.tile_m, tile_n = schedule_.tile_n;
    const std::string &m = name_of(shape_.m_axis()), &n = name_of(shape_.n_axis());
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int iSum = 0; iSum < {}; ++iSum)", tile_m));
    out_.line(fmt::format("const int {} = mBegin + iSum / 4 * {} + threadM * 4 + iSum % 4;", m,
                          schedule_.block_m * 4 / tile_m));
    if (shape_.m % schedule_.block_m != 0) {
      out_.line(fmt::format("if ({} >= {}) continue;", m, shape_.m));
    }
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int quadIndex = 0; quadIndex < {}; ++quadIndex)", tile_n / 4));
    const bool quads = shape_.n % 4 == 0;
    const std::string quad =
        ElementLoop::first_variable(axes_[static_cast<size_t>(shape_.n_axis())], 4);
    out_.line(fmt::format("const int {} = nBegin + quadIndex * {} + threadN * 4;", quad,
                          schedule_.block_n * 4 / tile_n));
    if (shape_.n % schedule_.block_n != 0) {
      out_.line(fmt::format("if ({} >= {}) continue;", quad, shape_.n));
    }
    const std::string sum =
        fmt::format("tileSums[iSum * {} + quadIndex * 4 + {} - {}]", tile_n, n, quad);
    if (quads) {
      print_quad(sum, 4);
    } else {
      out_.line("#pragma unroll");
      out_.open(fmt::format("for (int {0} = {1}; {0} < {1} + 4; ++{0})", n, quad));
      out_.open(fmt::format("if ({} < {})", n, shape_.n));
      print_quad(sum, 1);
      out_.close();
      out_.close();
    }
    out_.close();
    out_.close();
  }

  void print_quad(const std::string& sum, int64_t width) {
    if (schedule_.split_k == 1) return print_epilogue(context_, out_, shape_, axes_, {sum, width});
    const std::string &m = name_of(shape_.m_axis()), &n = name_of(shape_.n_axis());
    const bool loop = width > 1;
    const std::string first =
        ElementLoop::first_variable(axes_[static_cast<size_t>(shape_.n_axis())], width);
    if (loop) {
      out_.line("#pragma unroll");
      out_.open(fmt::format("for (int {0} = {1}; {0} < {1} + {2}; ++{0})", n, first, width));
    }
    out_.line(fmt::format("(({}*)scratchRoom)[((int64_t)restOfBlock * {} + {}) * {} + {}] = {};",
                          element_, shape_.m, m, shape_.n, n, sum));
    if (loop) out_.close();
  }

  // Adds the parts of k up, in order, and goes on as without a split.
  void print_combine() {
    out_.open(function_head(context_, context_.kernel.name + "_combine", kCombineBlock, true));
    out_.line("const int64_t outputIndex = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;");
    out_.line(fmt::format("if (outputIndex >= {}) return;", outputs()));
    out_.line(fmt::format("{} wholeSum = 0;", element_));
    out_.open(
        fmt::format("for (int partIndex = 0; partIndex < {}; ++partIndex)", schedule_.split_k));
    out_.line(
        fmt::format("wholeSum += ((const {}*)scratchRoom)[partIndex * INT64_C({}) + outputIndex];",
                    element_, outputs()));
    out_.close();
    out_.line(
        fmt::format("const int {} = (int)(outputIndex % {});", name_of(shape_.n_axis()), shape_.n));
    out_.line(fmt::format("const int {} = (int)(outputIndex / {} % {});", name_of(shape_.m_axis()),
                          shape_.n, shape_.m));
    out_.line(fmt::format("const int restOfBlock = (int)(outputIndex / {});", shape_.m * shape_.n));
    print_batch(out_, shape_, axes_, "restOfBlock");
    print_epilogue(context_, out_, shape_, axes_, {"wholeSum", 1});
    out_.close();
  }

  PrintContext& context_;
  const ContractShape& shape_;
  const ContractSchedule& schedule_;
  std::vector<AxisBinding> axes_;  // batch..., m, n, k
  std::string_view element_;
  std::vector<Fetch> fetches_;
  CodeWriter out_;
  KernelCode code_;
};

}  // namespace

Result<KernelCode> print_contract_kernel(PrintContext& context, const ContractShape& shape,
                                         const ContractSchedule& schedule) {
  TRY(expect_int_extents(context, shape));
  return ContractPrinter(context, shape, schedule).run();
}

}  // namespace ke::cuda
