// SPDX-License-Identifier: Apache-2.0
#include "domain/conditions.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace ke {

std::string to_text(const Conditions& conditions) {
  std::string text =
      fmt::format("{}, {}, libraries {}, judge {}", enum_name(conditions.precision),
                  conditions.dtype, conditions.libraries, conditions.judge_version);
  // Named only where they are not what they always were: nodes judged before stay known.
  if (conditions.determinism != Determinism::bitwise) {
    text += fmt::format(", determinism {}", enum_name(conditions.determinism));
  }
  if (conditions.shape_cases > 1) {
    text += fmt::format(", {} shape cases", conditions.shape_cases);
  }
  return text;
}

Json encode(const Conditions& conditions) {
  return Json{{"precision", enum_name(conditions.precision)},
              {"dtype", conditions.dtype},
              {"libraries", conditions.libraries},
              {"determinism", enum_name(conditions.determinism)},
              {"shape_cases", conditions.shape_cases},
              {"judge_version", conditions.judge_version}};
}

Result<Conditions> decode_conditions(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the run's conditions"));
  const auto precision = parse_enum<Precision>(TRY(fields.get<std::string>("precision")));
  const auto determinism = parse_enum<Determinism>(TRY(fields.get<std::string>("determinism")));
  if (!precision || !determinism) {
    return Error{Errc::invalid, "the run's conditions name a precision or determinism unknown "
                                "to this version"};
  }
  Conditions conditions{.precision = *precision,
                        .dtype = TRY(fields.get<std::string>("dtype")),
                        .libraries = TRY(fields.get<std::string>("libraries")),
                        .determinism = *determinism,
                        .shape_cases = TRY(fields.get<int32_t>("shape_cases")),
                        .judge_version = TRY(fields.get<int32_t>("judge_version"))};
  TRY(fields.finish());
  return conditions;
}

}  // namespace ke
