// SPDX-License-Identifier: Apache-2.0
//
// Units that must not be mixed up. Times inside the program are chrono durations; in JSON and SQL
// they are integers whose names end in _ns or _ms.
#pragma once

#include <chrono>
#include <cstdint>

namespace ke {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

constexpr int64_t operator""_KiB(unsigned long long n) { return static_cast<int64_t>(n) << 10; }
constexpr int64_t operator""_MiB(unsigned long long n) { return static_cast<int64_t>(n) << 20; }
constexpr int64_t operator""_GiB(unsigned long long n) { return static_cast<int64_t>(n) << 30; }

}  // namespace ke
