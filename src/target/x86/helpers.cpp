// SPDX-License-Identifier: Apache-2.0
//
// Vector types, memory access, lane reductions and integer arithmetic; mathematics is in
// vector_math.cpp. Memory types are i64, i32, i16, i8, u8, f64, f32 and, as stored, f16, bf16 and
// bool; the last three are held in f32, f32 and i32 (a mask) lanes.
#include "target/x86/helpers.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <vector>

#include "base/assert.hpp"
#include "target/x86/vector_math.hpp"

namespace ke::x86 {
namespace {

struct Element {
  std::string_view name;     // "f32"
  std::string_view c_type;   // of one element in memory
  std::string_view held_as;  // element of the vector it is held in
  int bytes;
};

constexpr Element kElements[] = {
    {"f64", "double", "f64", 8},    {"f32", "float", "f32", 4},    {"f16", "uint16_t", "f32", 2},
    {"bf16", "uint16_t", "f32", 2}, {"i64", "int64_t", "i64", 8},  {"i32", "int32_t", "i32", 4},
    {"i16", "int16_t", "i16", 2},   {"i8", "int8_t", "i8", 1},     {"u8", "uint8_t", "u8", 1},
    {"bool", "bool", "i32", 1},     {"u32", "uint32_t", "u32", 4}, {"u16", "uint16_t", "u16", 2}};

const Element* find_element(std::string_view name) {
  for (const Element& element : kElements) {
    if (element.name == name) return &element;
  }
  return nullptr;
}

// A type of a key taken apart: "f32x8" is f32 with eight lanes.
struct Type {
  const Element* element = nullptr;
  int lanes = 1;
  std::string name;  // as in the key
  std::string held() const { return with(element->held_as); }
  std::string with(std::string_view other) const { return fmt::format("{}x{}", other, lanes); }
};

Type parse_type(std::string_view text) {
  Type type;
  type.name = text;
  const size_t x = text.rfind('x');
  const std::string_view element = text.substr(0, x);
  type.element = find_element(element);
  if (type.element != nullptr && x != std::string_view::npos) {
    type.lanes = std::stoi(std::string(text.substr(x + 1)));
  }
  return type;
}

// Fills {V} (vector held), {M} (memory element), {T} (key type), {W} (lanes) in a template.
std::string fill(std::string_view text, const Type& type) {
  std::string result;
  const auto put = [&](std::string_view key) -> std::string {
    if (key == "V") return type.held();
    if (key == "M") return std::string(type.element->c_type);
    if (key == "T") return type.name;
    if (key == "W") return std::to_string(type.lanes);
    if (key == "B") return std::to_string(type.lanes * type.element->bytes);
    return "{" + std::string(key) + "}";
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}') {
      result += put(text.substr(i + 1, 1));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

HelperSource type_definition(const Type& type) {
  return {{},
          fmt::format("typedef {} {} __attribute__((vector_size({})));\n", type.element->c_type,
                      type.name, type.lanes * type.element->bytes)};
}

HelperSource load_helper(const Type& type) {
  const std::string_view name = type.element->name;
  if (name == "bool") {
    return {{type.held(), type.with("u8")},
            fill(R"(static inline {V} load_{T}(const bool* p) {
  )" + type.with("u8") +
                     R"( bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(bytes, {V}) != 0;
}
)",
                 type)};
  }
  if (name == "bf16") {
    return {{type.held(), type.with("u16"), type.with("u32")},
            fill(R"(static inline {V} load_{T}(const uint16_t* p) {
  )" + type.with("u16") +
                     R"( bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return ({V})(__builtin_convertvector(bits, )" +
                     type.with("u32") + R"() << 16);
}
)",
                 type)};
  }
  if (name == "f16") {
    return {{type.held()},
            fill(R"(static inline {V} load_{T}(const uint16_t* p) {
  {V} v = {V}{};
  for (int lane = 0; lane < {W}; ++lane) {
    _Float16 half;
    __builtin_memcpy(&half, p + lane, 2);
    v[lane] = (float)half;
  }
  return v;
}
)",
                 type)};
  }
  return {{type.name},
          fill(R"(static inline {V} load_{T}(const {M}* p) {
  {V} v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
)",
               type)};
}

HelperSource store_helper(const Type& type) {
  const std::string_view name = type.element->name;
  if (name == "bool") {
    return {{type.held(), type.with("u8")},
            fill(R"(static inline void store_{T}(bool* p, {V} v) {
  const )" + type.with("u8") +
                     " bytes = __builtin_convertvector(v & 1, " + type.with("u8") +
                     R"();
  __builtin_memcpy(p, &bytes, sizeof bytes);
}
)",
                 type)};
  }
  if (name == "bf16" || name == "f16") {
    const std::string scalar = fmt::format("store_{}", name);
    return {{type.held(), fmt::format("store:{}", name)},
            fill("static inline void store_{T}(uint16_t* p, {V} v) {\n  for (int lane = 0; lane < "
                 "{W}; ++lane) " +
                     scalar + "(p + lane, v[lane]);\n}\n",
                 type)};
  }
  return {{type.name},
          fill(R"(static inline void store_{T}({M}* p, {V} v) {
  __builtin_memcpy(p, &v, sizeof v);
}
)",
               type)};
}

// Single elements of the 16-bit floats.
HelperSource half_store(const Type& type) {
  if (type.element->name == "f16") {
    return {{}, R"(static inline void store_f16(uint16_t* p, float v) {
  const _Float16 half = (_Float16)v;
  __builtin_memcpy(p, &half, 2);
}
)"};
  }
  return {{}, R"(static inline void store_bf16(uint16_t* p, float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  const bool nan = v != v;
  *p = (uint16_t)(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
)"};
}

HelperSource half_load(const Type& type) {
  if (type.element->name == "f16") {
    return {{}, R"(static inline float load_f16(const uint16_t* p) {
  _Float16 half;
  __builtin_memcpy(&half, p, 2);
  return (float)half;
}
)"};
  }
  return {{}, R"(static inline float load_bf16(const uint16_t* p) {
  const uint32_t bits = (uint32_t)*p << 16;
  float v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}
)"};
}

HelperSource stream_helper(const Type& type) {
  const int bytes = type.lanes * type.element->bytes;
  std::string body;
  if (bytes % 32 == 0) {
    for (int part = 0; part < bytes / 32; ++part) {
      body += fmt::format("  __builtin_ia32_movntps256((float*)p + {}, bits.part[{}]);\n", part * 8,
                          part);
    }
  } else {
    body = "  __builtin_memcpy(p, &v, sizeof v);\n";
    return {{type.name},
            fill("static inline void stream_{T}({M}* p, {V} v) {\n" + body + "}\n", type)};
  }
  return {{type.name, "f32x8"},
          fill("// Past the caches; p is aligned to 32 bytes.\nstatic inline void "
               "stream_{T}({M}* p, {V} v) {\n  union {\n    {V} whole;\n    f32x8 part[" +
                   std::to_string(bytes / 32) + "];\n  } bits = {v};\n" + body + "}\n",
               type)};
}

HelperSource gather_helper(const Type& type) {
  std::vector<std::string> uses{type.held()};
  std::string element = "p[lane * stride]";
  if (type.element->bytes == 2 && type.element->held_as == "f32") {
    uses.push_back(fmt::format("load:{}", type.element->name));
    element = fmt::format("load_{}(p + lane * stride)", type.element->name);
  }
  if (type.element->name == "bool") element = "-(int32_t)p[lane * stride]";
  std::string list;
  for (int lane = 0; lane < type.lanes; ++lane) {
    std::string one = element;
    for (size_t at = one.find("lane"); at != std::string::npos; at = one.find("lane")) {
      one.replace(at, 4, std::to_string(lane));
    }
    const bool wrap = lane > 0 && lane % 4 == 0;
    list += (lane == 0 ? "" : wrap ? ",\n      " : ", ") + one;
  }
  return {uses, fill("static inline {V} gather_{T}(const {M}* p, int64_t stride) {\n  return {V}{" +
                         list + "};\n}\n",
                     type)};
}

HelperSource load_if_helper(const Type& type) {
  std::string element = "p[lane * stride]";
  std::vector<std::string> uses{type.held(), type.with("i32"), fmt::format("load:{}", type.name),
                                fmt::format("all:{}", type.with("i32"))};
  if (type.element->bytes == 2 && type.element->held_as == "f32") {
    uses.push_back(fmt::format("load:{}", type.element->name));
    element = fmt::format("load_{}(p + lane * stride)", type.element->name);
  }
  if (type.element->name == "bool") element = "-(int32_t)p[lane * stride]";
  return {uses, fill(R"(// Lanes whose mask is zero are not read.
static inline {V} load_if_{T}(const {M}* p, int64_t stride, )" +
                         type.with("i32") + R"( mask) {
  if (stride == 1 && all_of(mask)) return load_{T}(p);
  {V} v = {V}{};
  for (int lane = 0; lane < {W}; ++lane) {
    if (mask[lane]) v[lane] = )" +
                         element + R"(;
  }
  return v;
}
)",
                     type)};
}

std::string lane_tree(int first, int count, const auto& join) {
  if (count == 1) return fmt::format("v[{}]", first);
  return join(lane_tree(first, count / 2, join), lane_tree(first + count / 2, count / 2, join));
}

HelperSource across_lanes(std::string_view what, const Type& type) {
  std::vector<std::string> uses{type.name};
  const std::string scalar(type.element->c_type);
  if (what == "sum" || what == "product") {
    const std::string_view op = what == "sum" ? "+" : "*";
    const auto join = [&](const std::string& a, const std::string& b) {
      return fmt::format("({} {} {})", a, op, b);
    };
    return {uses, fmt::format("static inline {0} {1}_of_lanes({2} v) {{\n  return ({0}){3};\n}}\n",
                              scalar, what, type.name, lane_tree(0, type.lanes, join))};
  }
  if (what == "maximum" || what == "minimum") {
    uses.push_back(fmt::format("{}:{}", what, type.element->name));
    std::string text = fmt::format("static inline {} {}_of_lanes({} v) {{\n  {} r = v[0];\n",
                                   scalar, what, type.name, scalar);
    text += fmt::format("  for (int lane = 1; lane < {}; ++lane) r = {}_of(r, v[lane]);\n",
                        type.lanes, what);
    return {uses, text + "  return r;\n}\n"};
  }
  const std::string_view op = what == "all" ? "&" : "|";
  const auto join = [&](const std::string& a, const std::string& b) {
    return fmt::format("({} {} {})", a, op, b);
  };
  std::string test = lane_tree(0, type.lanes, join) + " != 0";
  if (type.name == "i32x8") {
    test =
        fmt::format("__builtin_ia32_movmskps256((f32x8)v) {}", what == "all" ? "== 0xff" : "!= 0");
    uses.push_back("f32x8");
  }
  return {uses, fmt::format("static inline bool {}_of({} v) {{\n  return {};\n}}\n", what,
                            type.name, test)};
}

// "prefix_sum": each lane with all before it, in steps that double what a lane has met. "suffix":
// with all after it.
HelperSource scan_helper(std::string_view what, const Type& type) {
  const std::string_view op = what.substr(7);
  const bool forward = what.starts_with("prefix");
  std::string text = fmt::format("static inline {0} {1}_of({0} v) {{\n", type.name, what);
  std::vector<std::string> uses{type.name};
  const bool extreme = op == "maximum" || op == "minimum";
  if (extreme) uses.push_back(fmt::format("{}:{}", op, type.name));
  // An extreme may meet itself twice, a sum or a product may not.
  const std::string_view none = extreme ? "v" : "none";
  if (!extreme) {
    text += fmt::format("  const {0} none = {0}{{}}{1};\n", type.name, op == "sum" ? "" : " + 1");
  }
  for (int step = 1; step < type.lanes; step *= 2) {
    std::string list;
    for (int lane = 0; lane < type.lanes; ++lane) {
      const int from = forward ? lane - step : lane + step;
      const bool met = from >= 0 && from < type.lanes;
      list += fmt::format(", {}", met ? from : type.lanes + lane);
    }
    const std::string other = fmt::format("__builtin_shufflevector(v, {}{})", none, list);
    text += extreme ? fmt::format("  v = {}_of({}, v);\n", op, other)
                    : fmt::format("  v = v {} {};\n", op == "sum" ? "+" : "*", other);
  }
  return {uses, text + "  return v;\n}\n"};
}

// max and min that let a NaN through.
HelperSource extreme(std::string_view what, const Type& type) {
  const std::string_view op = what == "maximum" ? ">" : "<";
  const bool floating = type.element->name[0] == 'f';
  const std::string name(type.lanes > 1 ? type.name : std::string(type.element->c_type));
  const std::string_view either = type.lanes > 1 ? "|" : "||";
  return {
      type.lanes > 1 ? std::vector<std::string>{type.name} : std::vector<std::string>{},
      fmt::format("static inline {0} {1}_of({0} a, {0} b) {{\n  return (a {2} b){3} ? a : b;\n}}"
                  "\n",
                  name, what, op, floating ? fmt::format(" {} (a != a)", either) : "")};
}

struct IntegerTemplate {
  std::string_view what, uses, text;
};

// On int64_t; narrower types are widened by the caller, which also wraps the result.
constexpr IntegerTemplate kIntegers[] = {
    {"div", "", R"(static inline int64_t div_of(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? -a : a / b;
}
)"},
    {"fmod", "", R"(static inline int64_t fmod_of(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
)"},
    {"floor_div", "div fmod", R"(static inline int64_t floor_div_of(int64_t a, int64_t b) {
  const int64_t rest = fmod_of(a, b);
  return div_of(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}
)"},
    {"mod", "fmod", R"(static inline int64_t mod_of(int64_t a, int64_t b) {
  const int64_t rest = fmod_of(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
    {"pow", "", R"(static inline int64_t pow_of(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b != 0; b >>= 1, a *= a) {
    if (b & 1) result *= a;
  }
  return result;
}
)"},
    {"shift_left", "", R"(static inline int64_t shift_left_of(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b);
}
)"},
    {"shift_right", "",
     R"(static inline int64_t shift_right_of(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}
)"}};

// Python's remainder and floor division of floats, consistent with each other.
std::optional<HelperSource> float_division(std::string_view what, const Type& type) {
  const bool narrow = type.element->name == "f32";
  const std::string suffix = narrow ? "f" : "";
  const std::string scalar(type.element->c_type);
  if (what == "mod") {
    return HelperSource{{},
                        fmt::format(R"(static inline {0} mod_of({0} a, {0} b) {{
  {0} rest = __builtin_fmod{1}(a, b);
  if (rest != 0 && (b < 0) != (rest < 0)) rest += b;
  return rest;
}}
)",
                                    scalar, suffix)};
  }
  if (what != "floor_div") return std::nullopt;
  return HelperSource{{},
                      fmt::format(R"(static inline {0} floor_div_of({0} a, {0} b) {{
  if (b == 0) return a / b;
  const {0} rest = __builtin_fmod{1}(a, b);
  {0} quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return __builtin_copysign{1}(0, a / b);
  const {0} whole = __builtin_floor{1}(quotient);
  return quotient - whole > ({0})0.5 ? whole + 1 : whole;
}}
)",
                                  scalar, suffix)};
}

std::optional<HelperSource> scalar_division(std::string_view what, const Type& type) {
  if (type.element->name[0] == 'f') return float_division(what, type);
  for (const IntegerTemplate& entry : kIntegers) {
    if (entry.what != what) continue;
    HelperSource source{{}, std::string(entry.text)};
    std::string_view rest = entry.uses;
    while (!rest.empty()) {
      const size_t end = rest.find(' ');
      source.uses.push_back(fmt::format("{}:i64", rest.substr(0, end)));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    return source;
  }
  return std::nullopt;
}

HelperSource iota_helper(const Type& type) {
  std::string list;
  for (int lane = 0; lane < type.lanes; ++lane) list += fmt::format("{}{}", lane ? ", " : "", lane);
  return {{type.name}, fmt::format("static const {0} lane_of_{0} = {{{1}}};\n", type.name, list)};
}

std::optional<HelperSource> memory_helper(std::string_view what, const Type& type) {
  const bool one = type.lanes == 1;
  if (what == "load") return one ? half_load(type) : load_helper(type);
  if (what == "store") return one ? half_store(type) : store_helper(type);
  if (what == "stream") return stream_helper(type);
  if (what == "gather") return gather_helper(type);
  if (what == "load_if") return load_if_helper(type);
  if (what == "iota") return iota_helper(type);
  return std::nullopt;
}

// Rounds to a 16-bit float and back, lane by lane.
HelperSource round_helper(const Type& type) {
  const std::string_view name = type.element->name;
  const std::string scalar_key = fmt::format("round_to:{}", name);
  if (type.lanes > 1) {
    return {{type.held(), scalar_key},
            fill("static inline {V} round_to_{T}({V} v) {\n  for (int lane = 0; lane < {W}; "
                 "++lane) v[lane] = round_to_" +
                     std::string(name) + "(v[lane]);\n  return v;\n}\n",
                 type)};
  }
  return {{fmt::format("load:{}", name), fmt::format("store:{}", name)},
          fill("static inline float round_to_{T}(float v) {\n  uint16_t bits;\n  store_{T}(&bits, "
               "v);\n  return load_{T}(&bits);\n}\n",
               type)};
}

HelperSource find_source(std::string_view key) {
  const size_t colon = key.find(':');
  if (colon == std::string_view::npos) return type_definition(parse_type(key));
  const std::string_view what = key.substr(0, colon), rest = key.substr(colon + 1);
  const Type type = parse_type(rest);
  KE_ASSERT(type.element != nullptr);
  if (auto source = memory_helper(what, type)) return *source;
  if (what == "round_to") return round_helper(type);
  if (what == "maximum" || what == "minimum") return extreme(what, type);
  if (what.starts_with("prefix_") || what.starts_with("suffix_")) return scan_helper(what, type);
  if (what.ends_with("_lanes")) return across_lanes(what.substr(0, what.size() - 6), type);
  if (what == "all" || what == "any") return across_lanes(what, type);
  if (auto source = scalar_division(what, type); source && type.lanes == 1) return *source;
  if (auto source = math_helper(what, rest)) return *source;
  assertion_failed(std::string(key).c_str(), __FILE__, __LINE__);
}

// Appends the sources of what `key` uses, then its own. Types go apart, before all functions.
struct Sources {
  std::set<std::string> done;
  std::string types, functions;

  void add(const std::string& key) {
    if (!done.insert(key).second) return;
    const HelperSource source = find_source(key);
    for (const std::string& used : source.uses) add(used);
    if (key.find(':') == std::string::npos) {
      types += source.text;
    } else {
      functions += source.text + "\n";
    }
  }
};

}  // namespace

std::string helper_sources(const std::set<std::string>& keys) {
  Sources sources;
  for (const std::string& key : keys) sources.add(key);
  return sources.types + (sources.types.empty() ? "" : "\n") + sources.functions;
}

}  // namespace ke::x86
