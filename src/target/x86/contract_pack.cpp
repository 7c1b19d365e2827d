// SPDX-License-Identifier: Apache-2.0
//
// Packing: operands are copied into panels that the register tile walks with stride one. A panel
// of the left operand holds tile_m rows, a panel of the right one tile_n columns; elements of one k
// are adjacent. A last panel of the right operand is padded with zeros; rows that a last panel of
// the left one lacks are never read.
#include <fmt/format.h>

#include <algorithm>

#include "target/x86/contract_print.hpp"
#include "target/x86/vector_printer.hpp"

namespace ke::x86 {
namespace {

// Panels are transposed in square blocks of 32-byte vectors.
int64_t square_of(const ContractShape& shape) { return 32 / ir::bytes_of(shape.dtype); }

bool needs_transposition(const Operand& operand) {
  return operand.strided && operand.strided->depth == 1 && operand.strided->row != 1;
}

// Whether whole panels leave steps of k, or panels leave rows, to an element-wise loop.
bool leaves_elements(const ContractCode& code, const Operand& operand, int64_t extent,
                     int64_t tile) {
  if (extent % tile != 0 || !operand.strided) return true;
  if (operand.strided->row == 1) return false;
  if (operand.strided->depth != 1) return true;
  const int64_t square = square_of(code.shape);
  return code.shape.k % square != 0 ||
         (code.grid.blocks_k > 1 && code.schedule.block_k % square != 0);
}

std::vector<ir::TensorId> loads_of(const ir::ExprPtr& value) {
  std::vector<ir::TensorId> tensors;
  ir::walk(value, [&](const ir::Expr& expr) {
    if (expr.kind == ir::Expr::Kind::load) tensors.push_back(expr.tensor);
  });
  return tensors;
}

void print_transpose_f32(target::CodeWriter& out) {
  out.lines(
      R"(// to[k * kTo + i] = from[i * kFrom + k] for i, k < 8; rows from kRows on are zero.
template <int kRows, int64_t kFrom, int64_t kTo>
static inline void transpose(const float* from, float* to) {
  f32x8 row[8] = {}, pair[8];
  for (int i = 0; i < kRows; ++i) row[i] = load_f32x8(from + i * kFrom);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shuffle(row[i], row[i + 1], (i32x8){0, 8, 1, 9, 4, 12, 5, 13});
    pair[i + 1] = __builtin_shuffle(row[i], row[i + 1], (i32x8){2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      row[i + 2 * j] =
          __builtin_shuffle(pair[i + j], pair[i + j + 2], (i32x8){0, 1, 8, 9, 4, 5, 12, 13});
      row[i + 2 * j + 1] =
          __builtin_shuffle(pair[i + j], pair[i + j + 2], (i32x8){2, 3, 10, 11, 6, 7, 14, 15});
    }
  }
  for (int k = 0; k < 4; ++k) {
    const f32x8 low = __builtin_shuffle(row[k], row[k + 4], (i32x8){0, 1, 2, 3, 8, 9, 10, 11});
    store_f32x8(to + k * kTo, low);
  }
  for (int k = 4; k < 8; ++k) {
    const f32x8 high =
        __builtin_shuffle(row[k - 4], row[k], (i32x8){4, 5, 6, 7, 12, 13, 14, 15});
    store_f32x8(to + k * kTo, high);
  }
}
)");
}

void print_transpose_f64(target::CodeWriter& out) {
  out.lines(
      R"(// to[k * kTo + i] = from[i * kFrom + k] for i, k < 4; rows from kRows on are zero.
template <int kRows, int64_t kFrom, int64_t kTo>
static inline void transpose(const double* from, double* to) {
  f64x4 row[4] = {}, pair[4];
  for (int i = 0; i < kRows; ++i) row[i] = load_f64x4(from + i * kFrom);
  for (int i = 0; i < 4; i += 2) {
    pair[i] = __builtin_shuffle(row[i], row[i + 1], (i64x4){0, 4, 2, 6});
    pair[i + 1] = __builtin_shuffle(row[i], row[i + 1], (i64x4){1, 5, 3, 7});
  }
  for (int k = 0; k < 2; ++k) {
    store_f64x4(to + k * kTo, __builtin_shuffle(pair[k], pair[k + 2], (i64x4){0, 1, 4, 5}));
  }
  for (int k = 2; k < 4; ++k) {
    store_f64x4(to + k * kTo, __builtin_shuffle(pair[k - 2], pair[k], (i64x4){2, 3, 6, 7}));
  }
}
)");
}

void print_transpose(ContractCode& code) {
  const bool single = code.shape.dtype == ir::DType::float32;
  for (const char* key : {"load:", "store:"}) {
    code.context.helpers.insert(std::string(key) + (single ? "f32x8" : "f64x4"));
  }
  code.context.helpers.insert(single ? "i32x8" : "i64x4");
  single ? print_transpose_f32(code.out) : print_transpose_f64(code.out);
}

std::vector<AxisBinding> bindings(const ContractCode& code, std::string m, std::string n,
                                  bool vector) {
  std::vector<AxisBinding> axes;
  for (int axis = 0; axis < code.shape.m_axis(); ++axis)
    axes.push_back({fmt::format("iB{}", axis)});
  axes.push_back({std::move(m)});
  axes.push_back({std::move(n), vector});
  axes.push_back({"(iK + stepK)"});
  return axes;
}

// to[...] = the operand's expression, one element or one vector of n.
void print_element(ContractCode& code, const ir::ExprPtr& value, const std::string& target,
                   int lanes, std::vector<AxisBinding> axes) {
  VectorPrinter printer(code.context, lanes, std::move(axes));
  Value result = printer.print_cast(printer.print(value), code.shape.dtype);
  if (lanes > 1) result = printer.as_vector(result);
  code.out.lines(printer.invariant());
  code.out.lines(printer.statements());
  if (lanes == 1) return code.out.line(fmt::format("*({}) = {};", target, result.text));
  code.context.helpers.insert("store:" + code.vector);
  code.out.line(fmt::format("store_{}({}, {});", code.vector, target, result.text));
}

// --- The left operand ---------------------------------------------------------------------------

// Squares of the panel, the last group of rows first: each may spill into the next k, which is
// written afterwards.
void print_transposed_rows(ContractCode& code, const StridedOperand& a) {
  const int64_t square = square_of(code.shape), rows = code.schedule.tile_m;
  code.out.open(fmt::format("if (rowsHere == kTileM)"));
  code.out.open(fmt::format("for (; stepK + {0} <= kCount; stepK += {0})", square));
  for (int64_t first = (rows - 1) / square * square; first >= 0; first -= square) {
    code.out.line(fmt::format(
        "transpose<{}, {}, kTileM>(packedFrom + {} + stepK, packedTo + stepK * kTileM + {});",
        std::min(square, rows - first), a.row, first * a.row, first));
  }
  if (code.schedule.prefetch && code.grid.blocks_k > 1) {
    code.out.line("// The same rows of the next block of k are far away in memory.");
    code.out.open("for (int64_t rowI = 0; rowI < kTileM; ++rowI)");
    code.line(
        fmt::format("__builtin_prefetch(packedFrom + rowI * {} + stepK + kBlockK, 0, 2);", a.row));
    code.out.close();
  }
  code.out.close();
  code.out.close();
}

void print_pack_a(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const Operand& a = code.shape.a;
  out.line("// Rows [iM, iM + rowCount) over [iK, iK + kCount), in panels of kTileM rows.");
  code.open_function(
      fmt::format("static void pack_a({}int64_t iM, int64_t rowCount, int64_t iK, int64_t kCount, "
                  "void* argument, {}* packedTo)",
                  code.batch_parameters(), code.element),
      loads_of(a.value));
  out.open("for (int64_t rowP = 0; rowP < rowCount; rowP += kTileM, packedTo += kTileM * kCount)");
  out.line("const int64_t rowsHere = rowCount - rowP < kTileM ? rowCount - rowP : kTileM;");
  out.line("int64_t stepK = 0;");
  if (!a.strided) {
    out.open("for (; stepK < kCount; ++stepK)");
    out.open("for (int64_t rowI = 0; rowI < rowsHere; ++rowI)");
    print_element(code, a.value, "packedTo + stepK * kTileM + rowI", 1,
                  bindings(code, "(iM + rowP + rowI)", "int64_t{0}", false));
    out.close();
    out.close();
  } else {
    out.line(fmt::format("const {}* const packedFrom = {}{} + (iM + rowP) * {} + iK * {};",
                         code.element, code.context.pointer(a.strided->tensor),
                         code.batch_offset(*a.strided), a.strided->row, a.strided->depth));
    if (needs_transposition(a)) print_transposed_rows(code, *a.strided);
    if (a.strided->row == 1) {
      out.open("if (rowsHere == kTileM)");
      out.open("for (; stepK < kCount; ++stepK)");
      code.line(
          fmt::format("__builtin_memcpy(packedTo + stepK * kTileM, packedFrom + stepK * {}, kTileM "
                      "* sizeof({}));",
                      a.strided->depth, code.element));
      out.close();
      out.close();
    }
    if (leaves_elements(code, a, code.shape.m, code.schedule.tile_m)) {
      out.open("for (; stepK < kCount; ++stepK)");
      out.open("for (int64_t rowI = 0; rowI < rowsHere; ++rowI)");
      code.line(fmt::format("packedTo[stepK * kTileM + rowI] = packedFrom[rowI * {} + stepK * {}];",
                            a.strided->row, a.strided->depth));
      out.close();
      out.close();
    }
  }
  out.close();
  out.close();
  out.line("");
}

// --- The right operand --------------------------------------------------------------------------

void print_whole_panel(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const Operand& b = code.shape.b;
  out.open("if (colCount == kTileN)");
  if (!b.strided) {
    out.open("for (; stepK < kCount; ++stepK)");
    out.open("for (int64_t colJ = 0; colJ < kTileN; colJ += kLanes)");
    print_element(code, b.value, "packedTo + stepK * kTileN + colJ", static_cast<int>(code.lanes()),
                  bindings(code, "int64_t{0}", "(iN + colJ)", true));
    out.close();
    out.close();
  } else if (needs_transposition(b)) {
    const int64_t square = square_of(code.shape);
    out.open(fmt::format("for (; stepK + {0} <= kCount; stepK += {0})", square));
    out.open(fmt::format("for (int64_t colJ = 0; colJ < kTileN; colJ += {})", square));
    out.line(
        fmt::format("transpose<{0}, {1}, kTileN>(packedFrom + colJ * {1} + stepK, packedTo + stepK "
                    "* kTileN + colJ);",
                    square, b.strided->row));
    out.close();
    out.close();
  }
  out.close();
}

void print_panel_elements(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const Operand& b = code.shape.b;
  out.open("for (; stepK < kCount; ++stepK)");
  out.open("for (int64_t colJ = 0; colJ < colCount; ++colJ)");
  if (b.strided) {
    code.line(fmt::format("packedTo[stepK * kTileN + colJ] = packedFrom[colJ * {} + stepK * {}];",
                          b.strided->row, b.strided->depth));
  } else {
    print_element(code, b.value, "packedTo + stepK * kTileN + colJ", 1,
                  bindings(code, "int64_t{0}", "(iN + colJ)", false));
  }
  out.close();
  if (code.shape.n % code.schedule.tile_n != 0) {
    out.open("for (int64_t colJ = colCount; colJ < kTileN; ++colJ)");
    out.line("packedTo[stepK * kTileN + colJ] = 0;");
    out.close();
  }
  out.close();
}

void print_pack_b(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const Operand& b = code.shape.b;
  out.line("// One panel: columns [iN, iN + colCount) over [iK, iK + kCount), padded to kTileN.");
  code.open_function(
      fmt::format("static void pack_b_panel({}int64_t iN, int64_t colCount, int64_t iK, "
                  "int64_t kCount, void* argument, {}* packedTo)",
                  code.batch_parameters(), code.element),
      loads_of(b.value));
  out.line("int64_t stepK = 0;");
  if (b.strided) {
    out.line(fmt::format("const {}* const packedFrom = {}{} + iN * {} + iK * {};", code.element,
                         code.context.pointer(b.strided->tensor), code.batch_offset(*b.strided),
                         b.strided->row, b.strided->depth));
  }
  print_whole_panel(code);
  if (leaves_elements(code, b, code.shape.n, code.schedule.tile_n)) print_panel_elements(code);
  out.close();
  out.line("");
}

// Rows of the right operand lie as they are used: some at a time are spread over the panels, so
// that memory is read in long runs.
void print_pack_b_rows(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const StridedOperand& b = *code.shape.b.strided;
  out.line("// Panels of the columns [iN, endN) over [iK, iK + kCount), a few rows at a time.");
  code.open_function(fmt::format("static void pack_b_rows({}int64_t iN, int64_t endN, int64_t iK, "
                                 "int64_t kCount, void* argument, {}* packedTo)",
                                 code.batch_parameters(), code.element),
                     {b.tensor});
  code.line(fmt::format("const {}* const packedFrom = {}{} + iN + iK * {};", code.element,
                        code.context.pointer(b.tensor), code.batch_offset(b), b.depth));
  out.open("for (int64_t firstK = 0; firstK < kCount; firstK += 8)");
  out.line("const int64_t endK = kCount - firstK < 8 ? kCount : firstK + 8;");
  out.open("for (int64_t colP = 0; colP < endN - iN; colP += kTileN)");
  const bool has_edge = code.shape.n % code.schedule.tile_n != 0;
  if (has_edge) {
    out.line("const int64_t colsLeft = endN - iN - colP;");
    out.line("const int64_t colCount = colsLeft < kTileN ? colsLeft : kTileN;");
  }
  out.open("for (int64_t stepK = firstK; stepK < endK; ++stepK)");
  out.line(
      fmt::format("{}* const rowTo = packedTo + colP * kCount + stepK * kTileN;", code.element));
  code.line(fmt::format("const {}* const rowFrom = packedFrom + stepK * {} + colP;", code.element,
                        b.depth));
  if (has_edge) out.open("if (colCount == kTileN)");
  out.line(fmt::format("__builtin_memcpy(rowTo, rowFrom, kTileN * sizeof({}));", code.element));
  if (has_edge) {
    out.close(" else {");
    out.open("  for (int64_t colJ = 0; colJ < kTileN; ++colJ)");
    out.line("  rowTo[colJ] = colJ < colCount ? rowFrom[colJ] : 0;");
    out.close();
    out.line("}");
  }
  out.close();
  out.close();
  out.close();
  out.close();
  out.line("");
}

// The task that packs some panels of the whole right operand.
void print_pack_b_task(ContractCode& code) {
  target::CodeWriter& out = code.out;
  code.open_function("static void pack_b(int64_t task, void* argument)", {}, true);
  out.line("const int64_t iN = task % kPackGroups * kPackColumns;");
  out.line("const int64_t iK = task / kPackGroups % kBlocksK * kBlockK;");
  const bool batched = !code.shape.batch.empty();
  if (batched) out.line("const int64_t batchId = task / (kPackGroups * kBlocksK);");
  int64_t below = 1;
  for (int axis = code.shape.m_axis(); axis-- > 0;) {
    const int64_t extent = code.shape.batch[static_cast<size_t>(axis)].extent;
    out.line(fmt::format("const int64_t iB{} = batchId / {} % {};", axis, below, extent));
    below *= extent;
  }
  out.line("const int64_t kCount = kK - iK < kBlockK ? kK - iK : kBlockK;");
  out.line("const int64_t colCount = kN - iN < kPackColumns ? kN - iN : kPackColumns;");
  out.line(
      fmt::format("{0}* const packedB = ({0}*)({1} + kPackedB);", code.element, code.scratch()));
  code.line(
      fmt::format("{}({}iN, {}, iK, kCount, argument, packedB + {} * kPanelsN * kTileN + "
                  "iN * kCount);",
                  code.packs_b_by_rows() ? "pack_b_rows" : "pack_b_panel", code.batch_arguments(),
                  code.packs_b_by_rows() ? "iN + colCount" : "colCount",
                  batched ? "(batchId * kK + iK)" : "iK"));
  out.close();
  out.line("");
}

}  // namespace

void ContractCode::open_function(const std::string& head, const std::vector<ir::TensorId>& tensors,
                                 bool with_scratch) {
  const size_t width = 96;
  size_t comma = std::string::npos;
  if (head.size() > width) comma = head.rfind(", ", width);
  if (comma == std::string::npos) {
    out.open(head);
  } else {
    out.line(head.substr(0, comma + 1));
    out.open("    " + head.substr(comma + 2));
  }
  std::string rest = arguments.unpack;
  std::string kept;
  const auto wanted = [&](const std::string& text) {
    if (with_scratch && text.ends_with("." + scratch() + ";")) return true;
    return std::any_of(tensors.begin(), tensors.end(), [&](ir::TensorId id) {
      return text.ends_with("arguments." + context.pointer(id) + ";");
    });
  };
  const size_t first = rest.find('\n') + 1;
  for (size_t begin = first; begin < rest.size();) {
    const size_t end = std::min(rest.find('\n', begin), rest.size());
    const std::string text = rest.substr(begin, end - begin);
    if (wanted(text)) kept += text + "\n";
    begin = end + 1;
  }
  if (!kept.empty()) out.lines(rest.substr(0, first) + kept);
}

void ContractCode::line(const std::string& text) {
  const size_t width = 98 - 2 * static_cast<size_t>(out.level());
  std::string rest = text;
  std::string margin;
  while (margin.size() + rest.size() > width) {
    const size_t comma = rest.rfind(", ", width - margin.size());
    if (comma == std::string::npos) break;
    out.line(margin + rest.substr(0, comma + 1));
    rest = rest.substr(comma + 2);
    margin = "    ";
  }
  out.line(margin + rest);
}

std::string ContractCode::batch_parameters() const {
  std::string text;
  for (int axis = 0; axis < shape.m_axis(); ++axis) text += fmt::format("int64_t iB{}, ", axis);
  return text;
}

std::string ContractCode::batch_arguments() const {
  std::string text;
  for (int axis = 0; axis < shape.m_axis(); ++axis) text += fmt::format("iB{}, ", axis);
  return text;
}

std::string ContractCode::batch_offset(const StridedOperand& operand) const {
  std::string text;
  for (size_t axis = 0; axis < operand.batch.size(); ++axis) {
    if (operand.batch[axis] != 0) text += fmt::format(" + iB{} * {}", axis, operand.batch[axis]);
  }
  if (operand.base != 0) text += fmt::format(" + {}", operand.base);
  return text;
}

void print_packing(ContractCode& code) {
  const bool packs_a = code.schedule.pack_a != Packing::none;
  const bool packs_b = code.schedule.pack_b != Packing::none;
  if ((packs_a && needs_transposition(code.shape.a)) ||
      (packs_b && needs_transposition(code.shape.b))) {
    print_transpose(code);
    code.out.line("");
  }
  if (packs_a) print_pack_a(code);
  if (packs_b) code.packs_b_by_rows() ? print_pack_b_rows(code) : print_pack_b(code);
  if (code.schedule.pack_b == Packing::whole) print_pack_b_task(code);
}

}  // namespace ke::x86
