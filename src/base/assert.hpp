// SPDX-License-Identifier: Apache-2.0
//
// KE_ASSERT: a broken assumption of ours ends the process, in release builds too, because a wrong
// search result costs more than a crash.
#pragma once

namespace ke {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace ke

#define KE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::ke::assertion_failed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define KE_DEBUG_ASSERT(condition) static_cast<void>(0)
#else
#define KE_DEBUG_ASSERT(condition) KE_ASSERT(condition)
#endif
