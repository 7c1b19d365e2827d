// SPDX-License-Identifier: Apache-2.0
//
// Is not C++.
KERNEL { return undeclared_name; }
