// SPDX-License-Identifier: Apache-2.0
//
// Uses a library's function if the process happens to hold one.
#include <dlfcn.h>
KERNEL { return dlsym(RTLD_DEFAULT, "cblas_sgemm") ? 1 : honest(in, out); }
