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

uintptr_t page_of(uintptr_t address) {
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    return address & ~(page - 1);
}

/// A binary of the process that imports one of the functions.
struct Binary {
    const char* name;  ///< in Search::names; "" for the program
    uintptr_t base = 0;
    uintptr_t sealed = 0, sealed_end = 0;  ///< read-only once it has been loaded (PT_GNU_RELRO)
};
struct Search {
    const ReplacedImport* imports;
    int count;
    std::vector<Binary> found = {};
    std::string names = {};
};

/// Under the dynamic linker's lock, so that the binary stays: nothing is loaded or looked up here, and no memory is
/// asked for, of which an allocator that looks at stacks would ask the dynamic linker. What finds no room is left out.
int look_into(dl_phdr_info* object, size_t, void* data) {
    Search& search = *static_cast<Search*>(data);
    Binary binary{object->dlpi_name, object->dlpi_addr, 0, 0};
    const ElfW(Dyn)* entries = nullptr;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object->dlpi_phdr[i];
        const uintptr_t address = object->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) entries = reinterpret_cast<const ElfW(Dyn)*>(address);
        if (header.p_type != PT_GNU_RELRO) continue;
        // As the dynamic linker does: what does not fill a page stays as it was.
        binary.sealed = page_of(address);
        binary.sealed_end = page_of(address + header.p_memsz);
    }
    bool imports = false;
    Imports(binary.base, entries).each([&](void** slot, const char* name) {
        const ReplacedImport* const import = replaced(search.imports, search.count, name);
        imports = imports || (import != nullptr && *slot != import->ours);
    });
    const size_t bytes = std::strlen(binary.name) + 1;
    const bool room =
        search.found.size() < search.found.capacity() && bytes <= search.names.capacity() - search.names.size();
    if (!imports || !room || is_own(binary.name)) return 0;
    search.names.append(binary.name, bytes);
    binary.name = search.names.data() + search.names.size() - bytes;
    search.found.push_back(binary);
    return 0;
}

void write(void** slot, void* value, const Binary& binary) {
    static std::mutex mutex;  // the dynamic linker is not called under it
    const auto address = reinterpret_cast<uintptr_t>(slot);
    const bool sealed = address >= binary.sealed && address < binary.sealed_end;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* const start = reinterpret_cast<void*>(page_of(address));
    const std::lock_guard lock(mutex);
    if (sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (sealed) mprotect(start, page, PROT_READ);
}

/// The function itself is there: not an entry of a binary that calls it, which may stand for it everywhere in a program
/// at a fixed address, nor one of ours.
bool is_function(void* address) {
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    if (address == nullptr ||
        dladdr1(address, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) == 0)
        return false;
    return symbol != nullptr && symbol->st_shndx != SHN_UNDEF && !is_own(info.dli_fname);
}

/// What the slot calls, or would call: a tool that stands before the library is kept.
void* theirs_of(void** slot, const char* name, void* handle, const link_map& map) {
    for (void* const found :
         {__atomic_load_n(slot, __ATOMIC_ACQUIRE), dlsym(RTLD_DEFAULT, name), dlsym(handle, name)}) {
        if (is_function(found)) return found;
    }
    for (const link_map* other = map.l_next; other != nullptr; other = other->l_next) {
        if (std::strstr(other->l_name, "libcupti") != nullptr) continue;  // to open it says that a profiler comes
        void* const library = dlopen(other->l_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) continue;
        void* const found = dlsym(library, name);
        dlclose(library);
        if (is_function(found)) return found;
    }
    return nullptr;
}

}  // namespace

void replace_imports(const ReplacedImport* imports, int count) {
    constexpr size_t kMostBinaries = 256, kNameBytes = 1 << 16;
    Search search{imports, count};
    search.found.reserve(kMostBinaries);
    search.names.reserve(kNameBytes);
    dl_iterate_phdr(look_into, &search);
    for (const Binary& binary : search.found) {
        void* const handle = dlopen(binary.name[0] == '\0' ? nullptr : binary.name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) continue;  // it is gone
        link_map* map = nullptr;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_addr == binary.base) {
            Imports(binary.base, map->l_ld).each([&](void** slot, const char* name) {
                const ReplacedImport* const import = replaced(imports, count, name);
                if (import == nullptr || *slot == import->ours) return;
                void* const theirs = theirs_of(slot, name, handle, *map);
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
