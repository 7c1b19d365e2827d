// SPDX-License-Identifier: Apache-2.0
//
// Walks the section headers: linkers always write them, and a library that had them stripped away
// is refused rather than guessed at.
#include "eval/elf.hpp"

#include <elf.h>

#include <cstring>
#include <optional>

#include "os/file_system.hpp"

namespace ke {
namespace {

constexpr int64_t kLibraryBytesMax = int64_t{256} << 20;

Error broken(const char* what) {
  return Error{Errc::invalid, std::string("the library is damaged: ") + what};
}

class Image {
 public:
  explicit Image(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  std::optional<T> at(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  // A NUL-terminated string inside a string table.
  std::string text(const Elf64_Shdr& table, uint64_t offset) const {
    if (table.sh_offset > bytes_.size() || offset >= table.sh_size ||
        bytes_.size() - table.sh_offset < table.sh_size) {
      return {};
    }
    const char* begin = bytes_.data() + table.sh_offset + offset;
    return std::string(begin, strnlen(begin, table.sh_size - offset));
  }

 private:
  std::string bytes_;
};

void read_needed(const Image& image, const Elf64_Shdr& section, const Elf64_Shdr& names,
                 ElfSummary& summary) {
  for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Dyn); ++i) {
    const auto entry = image.at<Elf64_Dyn>(section.sh_offset + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) return;
    if (entry->d_tag == DT_NEEDED) summary.needed.push_back(image.text(names, entry->d_un.d_val));
  }
}

void read_symbols(const Image& image, const Elf64_Shdr& section, const Elf64_Shdr& names,
                  ElfSummary& summary) {
  for (uint64_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = image.at<Elf64_Sym>(section.sh_offset + i * sizeof(Elf64_Sym));
    if (!symbol) return;
    std::string name = image.text(names, symbol->st_name);
    if (symbol->st_shndx == SHN_UNDEF) {
      summary.imports.push_back(std::move(name));
    } else if (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) {
      summary.exports.push_back(std::move(name));
    }
  }
}

}  // namespace

Result<ElfSummary> summarize_elf(const std::filesystem::path& library) {
  const Image image(TRY(os::read_file(library, kLibraryBytesMax)));
  const auto header = image.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return broken("it is not a 64-bit ELF file");
  }
  if (header->e_type != ET_DYN) return broken("it is not a shared library");
  ElfSummary summary;
  bool dynamic = false;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = image.at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return broken("a section is missing");
    if (section->sh_type != SHT_DYNAMIC && section->sh_type != SHT_DYNSYM) continue;
    const auto names =
        image.at<Elf64_Shdr>(header->e_shoff + uint64_t{section->sh_link} * sizeof(Elf64_Shdr));
    if (!names) return broken("a string table is missing");
    if (section->sh_type == SHT_DYNAMIC) {
      dynamic = true;
      read_needed(image, *section, *names, summary);
    } else {
      read_symbols(image, *section, *names, summary);
    }
  }
  if (!dynamic) return broken("it has no dynamic section");
  return summary;
}

}  // namespace ke
