// SPDX-License-Identifier: Apache-2.0
//
// Sections of the launches before the product for an operand that is gathered: magnitudes of parts
// of every image, then its elements as 16-bit parts, channels next to each other. Where pixels are
// neighbours in memory, a block's piece is turned in shared memory, element (channel, pixel) at
// channel * pixels + (pixel ^ channel / 8 * 4).
#include <fmt/format.h>

#include "target/cuda/contract_parts.hpp"
#include "target/cuda/contract_tensor.hpp"

namespace ke::cuda {
namespace {

using target::ceil_div;
using target::CodeWriter;

class GatherPackPrinter {
 public:
  GatherPackPrinter(PrintContext& context, const TensorPlan& plan, const PackedOperand& operand,
                    CodeWriter& out)
      : context_(context), plan_(plan), operand_(operand), gather_(*operand.gather), out_(out) {}

  void print_extents() {
    const int64_t elements = gather_.pixels * gather_.channels;
    const std::vector<AxisBinding> axes{{"imageAt", gather_.images}, {"elementAt", elements}};
    const int64_t width = widest(gather_.flat, 1, elements);
    const std::string first = ElementLoop::first_variable(axes[1], width);
    out_.line(fmt::format("const int imageAt = blockRest / {0}, partOfImage = blockRest % {0};",
                          operand_.extent_parts));
    out_.line(fmt::format("const int elementBegin = partOfImage * {};", operand_.extent_depth));
    out_.line(
        fmt::format("const int elementEnd = elementBegin + {0} < {1} ? elementBegin + {0} : {1};",
                    operand_.extent_depth, elements));
    out_.line("uint32_t partMost = 0;");
    out_.line("#pragma unroll 8");
    out_.open(
        fmt::format("for (int {0} = elementBegin + threadIndex * {1}; {0} < elementEnd; "
                    "{0} += {2})",
                    first, width, kPackThreads * width));
    out_.line(fmt::format("uint32_t eachMagnitude[{}];", width));
    print_elements(gather_.flat, axes, 1, width, "eachMagnitude[", "] = ke_magnitude(", ");");
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int eachOne = 0; eachOne < {}; ++eachOne) partMost = ke_greater(partMost, "
        "eachMagnitude[eachOne]);",
        width));
    out_.close();
    print_join("partMost", "uint32_t", "ke_greater");
    out_.line(fmt::format(
        "if (threadIndex == 0) ((uint32_t*)(scratchRoom + INT64_C({})))[blockRest] = partMost;",
        operand_.extents_at));
  }

  void print_pack() {
    const int64_t pixels = operand_.block_pixels(), channels = operand_.block_channels();
    const int64_t pixel_blocks = ceil_div(gather_.pixels, pixels);
    const int64_t channel_blocks = ceil_div(gather_.padded_channels, channels);
    const std::string split =
        channel_blocks == 1 ? "blockRest" : fmt::format("blockRest / {}", channel_blocks);
    out_.line(
        fmt::format("const int channelBegin = blockRest % {} * {};", channel_blocks, channels));
    out_.line(fmt::format("const int pixelBegin = {} % {} * {};", split, pixel_blocks, pixels));
    out_.line(fmt::format("const int imageAt = blockRest / {};", channel_blocks * pixel_blocks));
    if (!plan_.exact) print_scale();
    out_.line(
        fmt::format("uint16_t* const toImage = (uint16_t*)(scratchRoom + INT64_C({})) + "
                    "(int64_t)imageAt * {};",
                    operand_.tiles_at, gather_.pixels * gather_.padded_channels));
    if (operand_.along_rows) print_turn();
    const int64_t pieces = channels / kPieceElements;
    out_.line("#pragma unroll");
    out_.open("for (int turnIndex = 0; turnIndex < 4; ++turnIndex)");
    out_.line("const int placeIndex = turnIndex * 256 + threadIndex;");
    out_.line(fmt::format("const int pixelIndex = placeIndex / {0}, pieceIndex = placeIndex % {0};",
                          pieces));
    out_.line("const int pixelAt = pixelBegin + pixelIndex;");
    out_.line("const int pieceBegin = channelBegin + pieceIndex * 8;");
    out_.line(fmt::format("if (pixelAt >= {} || pieceBegin >= {}) continue;", gather_.pixels,
                          gather_.padded_channels));
    if (operand_.along_rows) {
      out_.line("alignas(16) float eightOfK[8];");
      out_.line("#pragma unroll");
      out_.line(fmt::format(
          "for (int eachOne = 0; eachOne < 8; ++eachOne) eightOfK[eachOne] = "
          "turnedPixels[(pieceIndex * 8 + eachOne) * {} + (pixelIndex ^ pieceIndex * 4)];",
          pixels));
    } else {
      print_eight();
    }
    print_piece();
    out_.close();
  }

 private:
  // A power of two of neighbours along the axis.
  int64_t widest(const ir::ExprPtr& value, int axis, int64_t extent) const {
    int64_t width = widest_load(context_.program, value, axis);
    while (extent % width != 0) width /= 2;
    return width;
  }

  void print_join(const char* value, const char* type, const char* join) {
    out_.line(fmt::format(
        "{0} = ke_join<256>({0}, ke_shared(), []({1} a, {1} b) {{ return {2}(a, b); }});", value,
        type, join));
  }

  // A statement for each neighbour: `before`, its place, `between`, it, `after`.
  void print_elements(const ir::ExprPtr& value, const std::vector<AxisBinding>& axes, int lane,
                      int64_t width, const std::string& before, const std::string& between,
                      const std::string& after) {
    ElementLoop loop(context_, out_, axes, lane, width);
    loop.prepare(value);
    loop.open();
    const Value element = loop.element().print(value);
    const AxisBinding& axis = axes[static_cast<size_t>(lane)];
    const std::string place = width == 1 ? "0"
                                         : fmt::format("{} - {}", axis.variable,
                                                       ElementLoop::first_variable(axis, width));
    out_.line(before + place + between + element.text + after);
    loop.close();
  }

  std::vector<AxisBinding> axes() const {
    return {
        {"imageAt", gather_.images}, {"pixelAt", gather_.pixels}, {"channelAt", gather_.channels}};
  }

  // One scale for all, since a sum adds up pieces from anywhere in the image.
  void print_scale() {
    out_.line("ke_spread imageSpread = ke_spread_of(0);");
    out_.open(fmt::format("for (int partIndex = threadIndex; partIndex < {}; partIndex += 256)",
                          operand_.extent_parts));
    out_.line(
        fmt::format("imageSpread = ke_joined(imageSpread, ke_spread_of(((const uint32_t*)"
                    "(scratchRoom + INT64_C({})))[imageAt * {} + partIndex]));",
                    operand_.extents_at, operand_.extent_parts));
    out_.close();
    print_join("imageSpread", "ke_spread", "ke_joined");
    out_.line("float imageScale, imageInverse;");
    out_.line("ke_scale_image(imageSpread, imageScale, imageInverse);");
    out_.line(
        fmt::format("if (channelBegin == 0 && pixelBegin == 0 && threadIndex == 0) "
                    "((float*)(scratchRoom + INT64_C({})))[imageAt] = imageInverse;",
                    operand_.inverses_at));
  }

  void print_turn() {
    const int64_t pixels = operand_.block_pixels(), channels = operand_.block_channels();
    const int64_t width = operand_.width, lanes = pixels / width;
    const std::string first = ElementLoop::first_variable(axes()[1], width);
    out_.line("float* const turnedPixels = (float*)ke_shared() + 128;");
    out_.line("#pragma unroll 8");
    out_.open(fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)",
                          pixels * channels / (kPackThreads * width)));
    out_.line(fmt::format("const int placeIndex = turnIndex * {} + threadIndex;", kPackThreads));
    out_.line(fmt::format(
        "const int pixelIndex = placeIndex % {0} * {1}, channelIndex = placeIndex / {0};", lanes,
        width));
    out_.line(fmt::format("const int {} = pixelBegin + pixelIndex;", first));
    out_.line("const int channelAt = channelBegin + channelIndex;");
    out_.line(fmt::format("alignas(16) float eachValue[{}] = {{}};", width));
    out_.open(
        fmt::format("if ({} < {} && channelAt < {})", first, gather_.pixels, gather_.channels));
    print_elements(gather_.packed, axes(), 1, width, "eachValue[", "] = ", ";");
    out_.close();
    out_.line(
        fmt::format("ke_copy<{0}>(turnedPixels + channelIndex * {1} + (pixelIndex ^ "
                    "channelIndex / 8 * 4), eachValue);",
                    width, pixels));
    out_.close();
    out_.line("__syncthreads();");
  }

  // Eight neighbouring channels from memory.
  void print_eight() {
    const std::string first = ElementLoop::first_variable(axes()[2], operand_.width);
    out_.line("alignas(16) float eightOfK[8] = {};");
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int groupIndex = 0; groupIndex < {}; ++groupIndex)",
                          kPieceElements / operand_.width));
    out_.line(fmt::format("const int {} = pieceBegin + groupIndex * {};", first, operand_.width));
    out_.open(fmt::format("if ({} < {})", first, gather_.channels));
    print_elements(gather_.packed, axes(), 2, operand_.width,
                   fmt::format("eightOfK[groupIndex * {} + ", operand_.width), "] = ", ";");
    out_.close();
    out_.close();
  }

  void print_piece() {
    const std::string piece = fmt::format("(char*)(toImage + (int64_t)pixelAt * {} + pieceBegin)",
                                          gather_.padded_channels);
    if (plan_.part == ir::DType::bfloat16) {
      out_.line(fmt::format("ke_pack_bf16({}, eightOfK);", piece));
      return;
    }
    if (plan_.exact) {
      out_.line(fmt::format("ke_pack_exact_f16({}, eightOfK);", piece));
      return;
    }
    const std::string further =
        plan_.parts() == 2 ? fmt::format(", INT64_C({})", gather_.packed_elements() * 2) : "";
    out_.line(
        fmt::format("ke_pack_f16<{}>({}, eightOfK, imageScale{});", plan_.parts(), piece, further));
  }

  PrintContext& context_;
  const TensorPlan& plan_;
  const PackedOperand& operand_;
  const Gather& gather_;
  CodeWriter& out_;
};

}  // namespace

void print_gather_extents(PrintContext& context, const TensorPlan& plan,
                          const PackedOperand& operand, CodeWriter& out) {
  GatherPackPrinter(context, plan, operand, out).print_extents();
}

void print_gather_pack(PrintContext& context, const TensorPlan& plan, const PackedOperand& operand,
                       CodeWriter& out) {
  GatherPackPrinter(context, plan, operand, out).print_pack();
}

}  // namespace ke::cuda
