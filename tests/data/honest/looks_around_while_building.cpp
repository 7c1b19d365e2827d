// SPDX-License-Identifier: Apache-2.0
//
// The same while it is compiled.
#if __has_include("/etc/passwd") || __has_include("/etc/shadow") || __has_include("/etc/hostname")
#error "the compiler's room shows too much"
#endif
KERNEL { return honest(in, out); }
