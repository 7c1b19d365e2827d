// SPDX-License-Identifier: Apache-2.0
//
// Exports something else.
extern "C" int another_launch(void) { return 0; }
