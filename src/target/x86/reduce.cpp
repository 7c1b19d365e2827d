// SPDX-License-Identifier: Apache-2.0
#include "target/x86/skeleton.hpp"
namespace ke::x86 {
const SkeletonPrinter& reduce_skeleton() { return map_skeleton(); }
}  // namespace ke::x86
