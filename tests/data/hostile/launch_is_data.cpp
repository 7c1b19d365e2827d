// SPDX-License-Identifier: Apache-2.0
//
// Exports a number under the name of the function.
extern "C" {
extern long not_code asm("ke_launch");
__attribute__((visibility("default"))) long not_code = 0;
}
