/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands of tensor cores: how numbers are scaled, split and packed into tiles. A part of
 * device.h, which includes it.
 */
#ifndef KERNELEVOLVE_DEVICE_OPERANDS_H_
#define KERNELEVOLVE_DEVICE_OPERANDS_H_

/* fp32 rows are scaled by powers of two and split into two fp16 parts, x = hi + lo / 2048. What
 * has no such parts becomes NaN there, which no sum loses: it is computed again in plain
 * arithmetic. */

/* The bits of a magnitude, which are in its order: infinities and NaN are the greatest. */
KE_DEVICE uint32_t ke_magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }
KE_DEVICE uint32_t ke_greater(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* The scale of a row, whose greatest magnitude becomes at least 2^14, and what undoes it. A row
 * outside 2^-60 ... 2^60 has none. */
KE_DEVICE void ke_scale_row(uint32_t most, float& scale, float& inverse) {
  const uint32_t power = most >> 23;
  const bool none = most == 0 || power < 67 || power > 187;
  scale = most == 0 ? 1.0f : __uint_as_float(none ? 0x7fc00000u : (268 - power) << 23);
  inverse = none ? 1.0f : __uint_as_float((power - 14) << 23);
}

/* Parts of an image: their greatest finite magnitude, and the powers of two of each one's. */
struct ke_spread {
  uint32_t most;
  int powers, parts;
};
KE_DEVICE ke_spread ke_spread_of(uint32_t most) {
  const bool counts = most != 0 && most < 0x7f800000u;
  ke_spread one;
  one.most = counts ? most : 0;
  one.powers = counts ? (int)(most >> 23) : 0;
  one.parts = counts ? 1 : 0;
  return one;
}
KE_DEVICE ke_spread ke_joined(ke_spread a, ke_spread b) {
  a.most = ke_greater(a.most, b.most);
  a.powers += b.powers;
  a.parts += b.parts;
  return a;
}
/* One scale for an image. Where few parts stand out, it is that of the others, and what is too
 * large for it has none. */
KE_DEVICE void ke_scale_image(ke_spread image, float& scale, float& inverse) {
  const int ordinary = image.parts == 0 ? 0 : image.powers / image.parts;
  const bool stands_out = (int)(image.most >> 23) > ordinary + 12;
  ke_scale_row(stands_out ? (uint32_t)(ordinary + 4) << 23 : image.most, scale, inverse);
}

/* Where piece c of a row lies in a tile. */
KE_DEVICE int ke_tile_place(int row, int piece) { return row * 128 + (piece ^ row % 8) * 16; }

/* Whether the parts of eight neighbours hold them: the greatest is a normal fp16 number, and the
 * others are not so small beside it that they would be lost. */
KE_DEVICE bool ke_holds(const float* eight, float scale) {
  uint32_t most = 0, least = 0xffffffffu;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint32_t one = ke_magnitude(eight[i]);
    most = ke_greater(most, one);
    least = least < one - 1 ? least : one - 1; /* zero becomes the greatest */
  }
  const float scaled = __uint_as_float(most) * scale;
  const bool fits = scaled >= 6.103515625e-05f && scaled <= 65504.0f;
  return most == 0 || (fits && (most >> 23) - ((least + 1) >> 23) <= 36);
}

/* Eight neighbours along k to a piece of a tile; the second part lies a tile of 16 KiB further, or
 * as far as is said. */
template <int kParts>
KE_DEVICE void ke_pack_f16(char* piece, const float* eight, float scale, int64_t further = 16384) {
  alignas(16) uint16_t high[8], low[8];
  const float own_scale = ke_holds(eight, scale) ? scale : __uint_as_float(0x7fc00000u);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float x = eight[i] * own_scale;
    high[i] = ke_bits_f16(x);
    if (kParts == 2) low[i] = ke_bits_f16((x - ke_load_f16(high + i)) * 2048.0f);
  }
  ke_copy<8>((uint16_t*)piece, high);
  if (kParts == 2) ke_copy<8>((uint16_t*)(piece + further), low);
}
/* Eight numbers that fp16, or bf16, holds as they are. */
KE_DEVICE void ke_pack_exact_f16(char* piece, const float* eight) {
  alignas(16) uint16_t bits[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) bits[i] = ke_bits_f16(eight[i]);
  ke_copy<8>((uint16_t*)piece, bits);
}
KE_DEVICE void ke_pack_bf16(char* piece, const float* eight) {
  alignas(16) uint16_t bits[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) bits[i] = (uint16_t)(__float_as_uint(eight[i]) >> 16);
  ke_copy<8>((uint16_t*)piece, bits);
}

#endif /* KERNELEVOLVE_DEVICE_OPERANDS_H_ */
