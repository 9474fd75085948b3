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

const ReplacedImport* replaced(const ReplacedImport* imports, int count, std::string_view name) {
    const auto* const end = imports + count;
    const auto* const found = std::find_if(imports, end, [&](const ReplacedImport& one) { return name == one.name; });
    return found != end ? found : nullptr;
}

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

    /// Calls take(slot, import) for each place from which the binary calls one of the functions. Where it has such a
    /// place for calls alone, another one is for comparing addresses, and left as it is.
    template <class Take>
    void each(const ReplacedImport* imports, int count, Take take) const {
        if (symbols_ == nullptr || names_ == nullptr) return;
        const auto look = [&](const ElfW(Rela) * entries, size_t entry_count, uint64_t type) {
            for (size_t i = 0; i < entry_count; ++i) {
                if (ELF64_R_TYPE(entries[i].r_info) != type) continue;
                const uint64_t symbol = ELF64_R_SYM(entries[i].r_info);
                const ReplacedImport* const import = replaced(imports, count, names_ + symbols_[symbol].st_name);
                if (import == nullptr || (type == kData && calls(symbol))) continue;
                take(reinterpret_cast<void**>(base_ + entries[i].r_offset), *import);
            }
        };
        look(calls_, calls_count_, kJumpSlot);
        look(data_, data_count_, kData);
    }
    /// Calls take(name) for each library that the binary asks for.
    template <class Take>
    void each_needed(const ElfW(Dyn) * entries, Take take) const {
        for (const ElfW(Dyn)* entry = entries; names_ != nullptr && entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_NEEDED) take(names_ + entry->d_un.d_val);
        }
    }

  private:
    /// glibc has made most of these addresses already, but not those of a section that is read-only.
    template <class T>
    const T* at(uintptr_t given) const {
        return reinterpret_cast<const T*>(given < base_ ? base_ + given : given);
    }

    bool calls(uint64_t symbol) const {
        return std::any_of(calls_, calls_ + calls_count_, [&](const ElfW(Rela) & entry) {
            return ELF64_R_TYPE(entry.r_info) == kJumpSlot && ELF64_R_SYM(entry.r_info) == symbol;
        });
    }

    uintptr_t base_;
    const ElfW(Sym) * symbols_ = nullptr;
    const char* names_ = nullptr;
    const ElfW(Rela) * data_ = nullptr, *calls_ = nullptr;
    size_t data_count_ = 0, calls_count_ = 0;
};

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
    uintptr_t begin = ~uintptr_t(0), end = 0;  ///< of its segments
    uintptr_t sealed = 0, sealed_end = 0;      ///< read-only once it has been loaded (PT_GNU_RELRO)
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
    Binary binary{object->dlpi_name, object->dlpi_addr};
    const ElfW(Dyn)* entries = nullptr;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object->dlpi_phdr[i];
        const uintptr_t address = object->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_LOAD) {
            binary.begin = std::min(binary.begin, address);
            binary.end = std::max(binary.end, address + header.p_memsz);
        }
        if (header.p_type == PT_DYNAMIC) entries = reinterpret_cast<const ElfW(Dyn)*>(address);
        if (header.p_type != PT_GNU_RELRO) continue;
        // As the dynamic linker does: what does not fill a page stays as it was.
        binary.sealed = page_of(address);
        binary.sealed_end = page_of(address + header.p_memsz);
    }
    bool imports = false;
    Imports(binary.base, entries).each(search.imports, search.count, [&](void** slot, const ReplacedImport& import) {
        imports = imports || *slot != import.ours;
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

/// What the dynamic linker knows of an address.
struct Known {
    explicit Known(void* address) {
        const void* entry = nullptr;
        Dl_info info{};
        if (address == nullptr || dladdr1(address, &info, const_cast<void**>(&entry), RTLD_DL_SYMENT) == 0) return;
        own = is_own(info.dli_fname);
        const auto* const symbol = static_cast<const ElfW(Sym)*>(entry);
        // A program at a fixed address may have an entry that stands for a function: it calls through a slot.
        is_entry = symbol != nullptr && symbol->st_shndx == SHN_UNDEF;
        is_function = symbol != nullptr && !is_entry && !own;
    }
    bool own = false, is_entry = false, is_function = false;
};

/// What the slot calls, or would call; null where that is not certain. A tool that stands before the library is kept.
void* theirs_of(void** slot, const char* name, void* handle, const Binary& binary, const link_map& map) {
    void* const now = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    const auto address = reinterpret_cast<uintptr_t>(now);
    const Known known(now);
    const bool bound = address < binary.begin || address >= binary.end;  // else its first call finds the function
    if (bound && !known.is_entry) return known.own ? nullptr : now;
    // The version that the binary asks for is not looked at: two libraries that have the function are one too many.
    void* const of_all = dlsym(RTLD_DEFAULT, name);
    void* const of_binary = dlsym(handle, name);
    const bool all = Known(of_all).is_function, own = Known(of_binary).is_function;
    if (all && own) return of_all == of_binary ? of_all : nullptr;
    if (all || own) return all ? of_all : of_binary;
    void* found = nullptr;
    Imports(binary.base, map.l_ld).each_needed(map.l_ld, [&](const char* library) {
        if (found != nullptr || std::strncmp(library, "libcupti", 8) == 0) return;  // opened, it means a profiler
        void* const needed = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        if (needed == nullptr) return;
        void* const there = dlsym(needed, name);
        dlclose(needed);
        if (Known(there).is_function) found = there;
    });
    return found;
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
            Imports(binary.base, map->l_ld).each(imports, count, [&](void** slot, const ReplacedImport& import) {
                if (*slot == import.ours) return;
                void* const theirs = theirs_of(slot, import.name, handle, binary, *map);
                if (theirs == nullptr) return;
                void* none = nullptr;
                __atomic_compare_exchange_n(import.theirs, &none, theirs, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
                if (none == nullptr || none == theirs) write(slot, import.ours, binary);
            });
        }
        dlclose(handle);
    }
}

}  // namespace numsan
