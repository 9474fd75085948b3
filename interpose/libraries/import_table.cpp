#include "interpose/libraries/import_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {
namespace {

#if defined(__aarch64__)
constexpr uint64_t kJumpSlot = R_AARCH64_JUMP_SLOT, kData = R_AARCH64_GLOB_DAT;
#else
constexpr uint64_t kJumpSlot = R_X86_64_JUMP_SLOT, kData = R_X86_64_GLOB_DAT;
#endif

/// What a binary imports, as its dynamic section says.
class Imports {
  public:
    Imports(uintptr_t base, const ElfW(Dyn) * entries) : base_(base) {
        for (const ElfW(Dyn)* entry = entries; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
            switch (entry->d_tag) {
                case DT_SYMTAB: symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr); break;
                case DT_STRTAB: names_ = at<char>(entry->d_un.d_ptr); break;
                case DT_RELA: data_ = at<ElfW(Rela)>(entry->d_un.d_ptr); break;
                case DT_RELASZ: data_count_ = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
                case DT_JMPREL: calls_ = at<ElfW(Rela)>(entry->d_un.d_ptr); break;
                case DT_PLTRELSZ: calls_count_ = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
                default: break;
            }
        }
    }

    /// Calls take(slot, name) for each place that holds the address of a function of another binary.
    template <class Take>
    void each(Take take) const {
        if (symbols_ == nullptr || names_ == nullptr) return;
        const auto look = [&](const ElfW(Rela) * entries, size_t count) {
            for (size_t i = 0; entries != nullptr && i < count; ++i) {
                const uint64_t type = ELF64_R_TYPE(entries[i].r_info);
                if (type != kJumpSlot && type != kData) continue;
                const ElfW(Sym)& symbol = symbols_[ELF64_R_SYM(entries[i].r_info)];
                take(reinterpret_cast<void**>(base_ + entries[i].r_offset), names_ + symbol.st_name);
            }
        };
        look(calls_, calls_count_);
        look(data_, data_count_);
    }

  private:
    /// glibc has made most of these addresses already, but not those of a section that is read-only.
    template <class T>
    const T* at(uintptr_t given) const {
        return reinterpret_cast<const T*>(given < base_ ? base_ + given : given);
    }

    uintptr_t base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const ElfW(Rela) * data_ = nullptr, *calls_ = nullptr;
    size_t data_count_ = 0, calls_count_ = 0;
};

const ReplacedImport* replaced(const ReplacedImport* imports, int count, std::string_view name) {
    const auto* const end = imports + count;
    const auto* const found = std::find_if(imports, end, [&](const ReplacedImport& one) { return name == one.name; });
    return found != end ? found : nullptr;
}

bool is_own(std::string_view name) {
    const size_t slash = name.rfind('/');
    return name.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("libnumsan");
}

/// A binary of the process that imports one of the functions.
struct Binary {
    std::string name;  ///< "" for the program
    uintptr_t base = 0;
    uintptr_t sealed = 0, sealed_end = 0;  ///< read-only once it has been loaded (PT_GNU_RELRO)
};
struct Search {
    const ReplacedImport* imports;
    int count;
    std::vector<Binary> found;
};

/// Under the dynamic linker's lock, so that the binary stays: nothing is loaded or looked up here.
int look_into(dl_phdr_info* object, size_t, void* data) {
    Search& search = *static_cast<Search*>(data);
    Binary binary{object->dlpi_name, object->dlpi_addr};
    const ElfW(Dyn)* entries = nullptr;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object->dlpi_phdr[i];
        const uintptr_t address = object->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) entries = reinterpret_cast<const ElfW(Dyn)*>(address);
        if (header.p_type != PT_GNU_RELRO) continue;
        binary.sealed = address;
        binary.sealed_end = address + header.p_memsz;
    }
    bool imports = false;
    Imports(binary.base, entries).each([&](void** slot, const char* name) {
        const ReplacedImport* const import = replaced(search.imports, search.count, name);
        imports = imports || (import != nullptr && *slot != import->ours);
    });
    if (imports && !is_own(binary.name)) search.found.push_back(std::move(binary));
    return 0;
}

void write(void** slot, void* value, const Binary& binary) {
    static std::mutex mutex;  // the dynamic linker is not called under it
    const auto address = reinterpret_cast<uintptr_t>(slot);
    const bool sealed = address >= binary.sealed && address < binary.sealed_end;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    void* const start = reinterpret_cast<void*>(address & ~(page - 1));
    const std::lock_guard lock(mutex);
    if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (sealed) mprotect(start, page, PROT_READ);
}

}  // namespace

void replace_imports(const ReplacedImport* imports, int count) {
    Search search{imports, count, {}};
    dl_iterate_phdr(look_into, &search);
    for (const Binary& binary : search.found) {
        void* const handle = dlopen(binary.name.empty() ? nullptr : binary.name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) continue;  // it is gone
        link_map* map = nullptr;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_addr == binary.base) {
            Imports(binary.base, map->l_ld).each([&](void** slot, const char* name) {
                const ReplacedImport* const import = replaced(imports, count, name);
                if (import == nullptr || *slot == import->ours) return;
                void* const theirs = dlsym(handle, name);
                if (theirs == nullptr) return;
                void* none = nullptr;
                __atomic_compare_exchange_n(import->theirs, &none, theirs, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
                if (none == nullptr || none == theirs) write(slot, import->ours, binary);
            });
        }
        dlclose(handle);
    }
}

}  // namespace numsan
