// SPDX-License-Identifier: Apache-2.0
//
// In the templates below F is the float vector type and I the integer vector of the same lanes.
// Multiplications and additions are meant to contract to fused ones (-ffp-contract=fast). The
// polynomials are our own minimax fits; the reductions are the classical ones (Cody & Waite,
// "Software Manual for the Elementary Functions", 1980; log after Tang, TOMS 16, 1990).
#include "target/x86/vector_math.hpp"

#include <fmt/format.h>

#include <array>

#include "target/x86/helpers.hpp"

namespace ke::x86 {
namespace {

struct MathTemplate {
  std::string_view what;
  std::string_view uses;  // keys without the type, separated by blanks
  std::string_view text;
};

constexpr std::array kMath = {
    MathTemplate{"abs", "", R"(static inline F abs_of(F x) {
  return (F)((I)x & 0x7fffffff);
}
)"},
    MathTemplate{"scale", "", R"(// x * 2^n for n in [-252, 254], rounded once.
static inline F scale_of(F x, I n) {
  const I half = n >> 1;
  return x * (F)((half + 127) << 23) * (F)((n - half + 127) << 23);
}
)"},
    MathTemplate{"expm1_reduced", "", R"(// e^r - 1 for |r| <= ln(2) / 2.
static inline F expm1_reduced(F r) {
  F q = r * 0.000199150311f + 0.00139420599f;
  q = q * r + 0.00833327172f;
  q = q * r + 0.0416663419f;
  q = q * r + 0.166666668f;
  q = q * r + 0.5f;
  return r + r * r * q;
}
)"},
    MathTemplate{"exp", "scale expm1_reduced", R"(// e^x = 2^n e^r with n = round(x / ln 2).
static inline F exp_of(F x) {
  const F highest = F{} + 89.0f, lowest = F{} - 104.0f;
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const F shifted = x * 1.44269504f + 12582912.0f;  // the low mantissa bits hold n
  const F n = shifted - 12582912.0f;
  const F r = (x - n * 0.693145752f) - n * 1.42860677e-06f;
  return scale_of(expm1_reduced(r) + 1.0f, (I)shifted - 0x4b400000);
}
)"},
    MathTemplate{"exp2", "scale expm1_reduced", R"(static inline F exp2_of(F x) {
  const F highest = F{} + 129.0f, lowest = F{} - 151.0f;
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const F shifted = x + 12582912.0f;
  const F r = (x - (shifted - 12582912.0f)) * 0.693147181f;
  return scale_of(expm1_reduced(r) + 1.0f, (I)shifted - 0x4b400000);
}
)"},
    MathTemplate{"expm1", "abs expm1_reduced", R"(// e^x - 1 = 2^n (e^r - 1) + (2^n - 1).
static inline F expm1_of(F value) {
  const F highest = F{} + 89.0f, lowest = F{} - 18.0f;
  F x = value > highest ? highest : value;
  x = x < lowest ? lowest : x;
  const F shifted = x * 1.44269504f + 12582912.0f;
  const F n = shifted - 12582912.0f;
  const F r = (x - n * 0.693145752f) - n * 1.42860677e-06f;
  const F half_power = (F)(((I)shifted - 0x4b400000 + 126) << 23);  // 2^(n - 1)
  const F result = 2.0f * (expm1_reduced(r) * half_power + (half_power - 0.5f));
  return abs_of(value) < 1e-8f ? value : result;
}
)"},
    MathTemplate{"log_reduced", "", R"(// log(2^e (1 + f)) for 1 + f in [sqrt(1/2), sqrt(2)).
static inline F log_reduced(F f, F e) {
  const F s = f / (f + 2.0f);
  const F z = s * s;
  const F half_square = 0.5f * f * f;
  F series = z * 0.236105263f + 0.285358896f;
  series = series * z + 0.400003562f;
  series = (series * z + 0.666666656f) * z;
  const F tail = s * (half_square + series) + e * 1.42860677e-06f;
  return e * 0.693145752f - ((half_square - tail) - f);
}
)"},
    MathTemplate{"log_special", "", R"(// log of zero, negative numbers, infinity and NaN.
static inline F log_special(F x, F result) {
  const F infinity = F{} + __builtin_inff(), nan = F{} + __builtin_nanf("");
  result = x == infinity ? infinity : result;
  result = x == 0.0f ? -infinity : result;
  return (x >= 0.0f) ? result : nan;
}
)"},
    MathTemplate{"log", "log_reduced log_special", R"(static inline F log_of(F x) {
  const I subnormal = x < 1.17549435e-38f;
  const F normal = subnormal ? x * 8388608.0f : x;
  const I e = ((I)normal - 0x3f3504f3) >> 23;
  const F f = (F)((I)normal - (e << 23)) - 1.0f;
  const I exponent = e - (subnormal & 23);
  return log_special(x, log_reduced(f, __builtin_convertvector(exponent, F)));
}
)"},
    MathTemplate{"log2", "log log_special", R"(static inline F log2_of(F x) {
  const I subnormal = x < 1.17549435e-38f;
  const F normal = subnormal ? x * 8388608.0f : x;
  const I e = ((I)normal - 0x3f3504f3) >> 23;
  const F mantissa = log_of((F)((I)normal - (e << 23)));
  const F whole = __builtin_convertvector(e - (subnormal & 23), F);
  return log_special(x, mantissa * 1.44269502f + (mantissa * 1.92596299e-08f + whole));
}
)"},
    MathTemplate{"log10", "log log_special", R"(static inline F log10_of(F x) {
  const I subnormal = x < 1.17549435e-38f;
  const F normal = subnormal ? x * 8388608.0f : x;
  const I e = ((I)normal - 0x3f3504f3) >> 23;
  const F mantissa = log_of((F)((I)normal - (e << 23)));
  const F whole = __builtin_convertvector(e - (subnormal & 23), F);
  const F small = mantissa * -1.01030502e-08f + whole * -1.43209995e-08f;
  return log_special(x, whole * 0.301030010f + (mantissa * 0.434294492f + small));
}
)"},
    MathTemplate{"log1p", "log_reduced log_special", R"(static inline F log1p_of(F x) {
  const F u = x + 1.0f;
  const I e = ((I)u - 0x3f3504f3) >> 23;
  const F lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  const F power = (F)((127 - e) << 23);  // 2^-e
  const F f = ((F)((I)u - (e << 23)) - 1.0f) + (e < 100 ? lost * power : F{});
  return log_special(u, log_reduced(f, __builtin_convertvector(e, F)));
}
)"},
    MathTemplate{"copysign", "", R"(static inline F copysign_of(F magnitude, F sign) {
  return (F)(((I)magnitude & 0x7fffffff) | ((I)sign & (int32_t)0x80000000));
}
)"},
    MathTemplate{"tanh", "abs exp copysign", R"(static inline F tanh_of(F x) {
  const F a = abs_of(x);
  const F z = x * x;
  F p = z * 0.00214753686f - 0.00818267386f;
  p = p * z + 0.0217029671f;
  p = p * z - 0.0539472043f;
  p = p * z + 0.133332098f;
  p = p * z - 0.333333309f;
  const F large = 1.0f - 2.0f / (exp_of(a + a) + 1.0f);
  return a < 0.625f ? x + x * z * p : copysign_of(large, x);
}
)"},
    MathTemplate{"erf", "abs copysign", R"(static inline F erf_of(F x) {
  const F a = abs_of(x);
  const F z = x * x;
  F p = z * 7.18800802e-05f - 0.000780579634f;
  p = p * z + 0.00516486401f;
  p = p * z - 0.026841443f;
  p = p * z + 0.112832919f;
  p = p * z - 0.376125991f;
  p = p * z + 0.128379166f;
  // erf(a) = 1 - c / q(a)^8 where it is not small; c keeps q just below a power of two for small a,
  // where its rounding matters. q overflows to infinity, and then erf is 1.
  F q = a * 0.000812150771f - 0.00619802531f;
  q = q * a + 0.0278583951f;
  q = q * a - 0.0544499159f;
  q = q * a + 0.11683356f;
  q = q * a + 0.0571462885f;
  q = q * a + 0.230893523f;
  q = q * a + 1.40255141f;
  q = q * q;
  q = q * q;
  const F large = 1.0f - 15.5306387f / (q * q);
  return a < 1.1f ? x + x * p : copysign_of(large, x);
}
)"},
    MathTemplate{"sin_reduced", "", R"(// sin(r + n pi / 2) for |r| <= pi / 4.
static inline F sin_reduced(F r, I n) {
  const F z = r * r;
  F s = z * 2.71756813e-06f - 0.00019839257f;
  s = s * z + 0.00833332915f;
  s = s * z - 0.166666666f;
  F c = z * 2.44312392e-05f - 0.00138873063f;
  c = c * z + 0.0416666457f;
  const F sine = r + r * z * s, cosine = 1.0f - 0.5f * z + z * z * c;
  const I odd = -(n & 1);
  return (F)((I)(odd ? cosine : sine) ^ ((n & 2) << 30));
}
)"},
    MathTemplate{"sin", "sin_reduced any_large", R"(static inline F sin_of(F x) {
  if (any_large(x)) {
    F result = F{};
    for (int lane = 0; lane < W; ++lane) result[lane] = __builtin_sinf(x[lane]);
    return result;
  }
  const F shifted = x * 0.636619772f + 12582912.0f;
  const F n = shifted - 12582912.0f;
  const F r = ((x - n * 1.57079637f) + n * 4.37113883e-08f) + n * 1.71512451e-15f;
  return sin_reduced(r, (I)shifted);
}
)"},
    MathTemplate{"cos", "sin_reduced any_large", R"(static inline F cos_of(F x) {
  if (any_large(x)) {
    F result = F{};
    for (int lane = 0; lane < W; ++lane) result[lane] = __builtin_cosf(x[lane]);
    return result;
  }
  const F shifted = x * 0.636619772f + 12582912.0f;
  const F n = shifted - 12582912.0f;
  const F r = ((x - n * 1.57079637f) + n * 4.37113883e-08f) + n * 1.71512451e-15f;
  return sin_reduced(r, (I)shifted + 1);
}
)"},
    MathTemplate{"any_large", "abs",
                 R"(// Some |x| is beyond what a short reduction by pi / 2 can do.
static inline bool any_large(F x) {
  const I large = abs_of(x) > 20000.0f;
  int32_t any = 0;
  for (int lane = 0; lane < W; ++lane) any |= large[lane];
  return any != 0;
}
)"},
    MathTemplate{"rsqrt", "sqrt", R"(static inline F rsqrt_of(F x) {
  return 1.0f / sqrt_of(x);
}
)"},
    MathTemplate{"sign", "", R"(static inline F sign_of(F x) {
  return __builtin_convertvector((x < 0.0f) - (x > 0.0f), F);
}
)"},
};

// What the C library calls an operation, without the suffix of its type; empty: not a function.
std::string_view library_name(std::string_view what) {
  constexpr std::string_view same[] = {
      "exp", "exp2",  "expm1", "log",   "log2", "log10", "log1p", "sqrt",    "sin",   "cos",
      "tan", "asin",  "acos",  "atan",  "sinh", "cosh",  "tanh",  "asinh",   "acosh", "atanh",
      "erf", "floor", "ceil",  "trunc", "pow",  "fmod",  "atan2", "copysign"};
  for (const std::string_view name : same) {
    if (name == what) return name;
  }
  if (what == "abs") return "fabs";
  if (what == "round") return "nearbyint";
  return "";
}

bool has_two_operands(std::string_view what) {
  return what == "pow" || what == "fmod" || what == "atan2" || what == "copysign";
}

// A single instruction for whole registers of AVX and AVX-512, or empty.
std::string instruction(std::string_view what, std::string_view type) {
  const int mode = what == "round" ? 8 : what == "floor" ? 9 : what == "ceil" ? 10 : 11;
  const bool rounds = what == "round" || what == "floor" || what == "ceil" || what == "trunc";
  if (!rounds && what != "sqrt") return "";
  struct Form {
    std::string_view type, sqrt, round;
  };
  constexpr Form forms[] = {
      {"f32x8", "__builtin_ia32_sqrtps256(x)", "__builtin_ia32_roundps256(x, {})"},
      {"f64x4", "__builtin_ia32_sqrtpd256(x)", "__builtin_ia32_roundpd256(x, {})"},
      {"f32x16", "__builtin_ia32_sqrtps512_mask(x, x, (uint16_t)-1, 4)",
       "__builtin_ia32_rndscaleps_mask(x, {}, x, (uint16_t)-1, 4)"},
      {"f64x8", "__builtin_ia32_sqrtpd512_mask(x, x, (uint8_t)-1, 4)",
       "__builtin_ia32_rndscalepd_mask(x, {}, x, (uint8_t)-1, 4)"}};
  for (const Form& form : forms) {
    if (form.type != type) continue;
    return rounds ? fmt::format(fmt::runtime(form.round), mode) : std::string(form.sqrt);
  }
  return "";
}

struct TypeParts {
  std::string_view element;
  int lanes = 1;
};

TypeParts parts_of(std::string_view type) {
  const size_t x = type.find('x');
  if (x == std::string_view::npos) return {type, 1};
  return {type.substr(0, x), std::stoi(std::string(type.substr(x + 1)))};
}

// Letters F, I and W that stand alone become the types and the lane count.
std::string instantiate(std::string_view text, std::string_view f, std::string_view i, int lanes) {
  const auto is_word = [](char c) { return (std::isalnum(c) != 0) || c == '_'; };
  std::string result;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool alone =
        (k == 0 || !is_word(text[k - 1])) && (k + 1 == text.size() || !is_word(text[k + 1]));
    if (alone && text[k] == 'F') {
      result += f;
    } else if (alone && text[k] == 'I') {
      result += i;
    } else if (alone && text[k] == 'W') {
      result += std::to_string(lanes);
    } else {
      result += text[k];
    }
  }
  return result;
}

HelperSource from_template(const MathTemplate& entry, std::string_view type, int lanes) {
  const std::string integers = fmt::format("i32x{}", lanes);
  HelperSource source{{std::string(type), integers},
                      instantiate(entry.text, type, integers, lanes)};
  std::string_view rest = entry.uses;
  while (!rest.empty()) {
    const size_t end = rest.find(' ');
    source.uses.push_back(fmt::format("{}:{}", rest.substr(0, end), type));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return source;
}

// The C library's function, for each lane.
HelperSource lane_by_lane(std::string_view what, std::string_view type, TypeParts parts) {
  const std::string call =
      fmt::format("__builtin_{}{}", library_name(what), parts.element == "f32" ? "f" : "");
  const std::string_view scalar = parts.element == "f32" ? "float" : "double";
  const bool two = has_two_operands(what);
  if (parts.lanes == 1) {
    return {{},
            fmt::format("static inline {0} {1}_of({0} x{2}) {{\n  return {3}(x{4});\n}}\n", scalar,
                        what, two ? fmt::format(", {} y", scalar) : "", call, two ? ", y" : "")};
  }
  return {{std::string(type)},
          fmt::format("static inline {0} {1}_of({0} x{2}) {{\n  {0} result = {0}{{}};\n"
                      "  for (int lane = 0; lane < {3}; ++lane) result[lane] = {4}(x[lane]{5});\n"
                      "  return result;\n}}\n",
                      type, what, two ? fmt::format(", {} y", type) : "", parts.lanes, call,
                      two ? ", y[lane]" : "")};
}

const MathTemplate* find_template(std::string_view what) {
  for (const MathTemplate& entry : kMath) {
    if (entry.what == what) return &entry;
  }
  return nullptr;
}

// sign and rsqrt, which are no functions of the C library.
HelperSource small_double(std::string_view what, std::string_view type, TypeParts parts) {
  const std::string_view integers = "i64";
  if (what == "rsqrt") {
    return {{fmt::format("sqrt:{}", type)},
            fmt::format("static inline {0} rsqrt_of({0} x) {{\n  return 1 / sqrt_of(x);\n}}\n",
                        parts.lanes > 1          ? type
                        : parts.element == "f32" ? "float"
                                                 : "double")};
  }
  if (parts.lanes == 1) {
    const std::string_view scalar = parts.element == "f32" ? "float" : "double";
    return {{},
            fmt::format("static inline {0} sign_of({0} x) {{\n  return ({0})((x > 0) - (x < 0));"
                        "\n}}\n",
                        scalar)};
  }
  return {{std::string(type), fmt::format("{}x{}", integers, parts.lanes)},
          fmt::format("static inline {0} sign_of({0} x) {{\n"
                      "  return __builtin_convertvector((x < 0.0) - (x > 0.0), {0});\n}}\n",
                      type)};
}

}  // namespace

std::optional<HelperSource> math_helper(std::string_view what, std::string_view type) {
  const TypeParts parts = parts_of(type);
  if (parts.element != "f32" && parts.element != "f64") return std::nullopt;
  const MathTemplate* entry = find_template(what);
  if (parts.element == "f32" && entry != nullptr && parts.lanes > 1) {
    return from_template(*entry, type, parts.lanes);
  }
  const std::string single = instruction(what, type);
  if (!single.empty()) {
    return HelperSource{
        {std::string(type)},
        fmt::format("static inline {0} {1}_of({0} x) {{\n  return {2};\n}}\n", type, what, single)};
  }
  if (what == "rsqrt" || what == "sign") return small_double(what, type, parts);
  if (library_name(what).empty()) return std::nullopt;
  const bool same_as_vector =
      entry != nullptr && parts.element == "f32" && !has_two_operands(what) && what != "abs";
  if (same_as_vector) {  // one element gives the same bits alone as in a vector
    return HelperSource{{fmt::format("{}:f32x8", what)},
                        fmt::format("static inline float {0}_of(float x) {{\n"
                                    "  return {0}_of(f32x8{{}} + x)[0];\n}}\n",
                                    what)};
  }
  return lane_by_lane(what, type, parts);
}

}  // namespace ke::x86
