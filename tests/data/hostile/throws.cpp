// SPDX-License-Identifier: Apache-2.0
//
// Lets an exception out.
KERNEL { throw 1; }
