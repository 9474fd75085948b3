// Native stacks: return addresses to capture, libdw (optional, loaded on demand) or dladdr to resolve.
#include "host/stacks/native_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "host/stacks/debug_info.h"
#include "host/stacks/launch_stub.h"
#include "host/stacks/return_addresses.h"

namespace numsan {
namespace {

std::string demangled(const char* name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && text ? text : name;
    std::free(text);
    return result;
}

bool left_out(std::string_view path) {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    for (const std::string_view prefix : {"libtorch", "libc10", "libnumsan", "libcuda.so", "libcudart", "libcupti",
                                          "libc.so", "libc-2", "libpthread", "ld-linux", "libgcc_s", "libstdc++"}) {
        if (file.starts_with(prefix)) return true;
    }
    return false;
}

/// What is known of return addresses, for the length of a resolve().
class Symbols {
  public:
    /// The frames of a return address, innermost first: functions that the compiler inlined there, then the one it
    /// belongs to. Empty when it is to be left out.
    std::vector<SourceFrame> frames(const void* return_address) const {
        const auto address = reinterpret_cast<uintptr_t>(return_address) - 1;  // inside the call
        Dl_info info{};
        const bool known = dladdr(reinterpret_cast<const void*>(address), &info) != 0 && info.dli_fname;
        if (known && left_out(info.dli_fname)) return {};
        SourceFrame at;
        at.native = true;
        if (known) at.file = info.dli_fname;
        const char* symbol = known ? info.dli_sname : nullptr;
        std::vector<SourceFrame> result;
        if (Dwfl_Module* module = debug_info_.module_at(address)) {
            if (const char* name = libdw().dwfl_module_addrname(module, address)) symbol = name;
            add_lines(module, address, at, result);
        }
        at.function = symbol ? demangled(symbol) : "??";
        result.push_back(std::move(at));
        return result;
    }

  private:
    /// A path that the compiler wrote relative to the folder in which it ran, as clang does for files below that.
    static std::string path_of(Dwarf_Die* unit, const char* file) {
        Dwarf_Attribute attribute;
        const char* folder =
            file[0] == '/' ? nullptr : libdw().dwarf_formstring(libdw().dwarf_attr(unit, DW_AT_comp_dir, &attribute));
        return folder != nullptr ? std::string(folder) + "/" + file : file;
    }

    /// Gives `at` the line of `address`, where there is debug information. Then adds the functions inlined there, and
    /// moves `at` out to the place where the outermost of them was called.
    static void add_lines(Dwfl_Module* module, Dwarf_Addr address, SourceFrame& at, std::vector<SourceFrame>& result) {
        if (!libdw().complete) return;
        Dwarf_Addr bias = 0;
        Dwarf_Die* unit = DebugInfo::unit_of(module, address, bias);
        if (unit == nullptr) return;
        if (Dwarf_Line* line = libdw().dwarf_getsrc_die(unit, address - bias)) {
            const char* file = libdw().dwarf_linesrc(line, nullptr, nullptr);
            if (file != nullptr && libdw().dwarf_lineno(line, &at.line) == 0) at.file = path_of(unit, file);
        }
        Dwarf_Die* containing = nullptr;
        if (libdw().dwarf_getscopes(unit, address - bias, &containing) <= 0) return;
        Dwarf_Die* scopes = nullptr;
        const int count = libdw().dwarf_getscopes_die(&containing[0], &scopes);
        for (int i = 0; i < count; ++i) {
            if (libdw().dwarf_tag(&scopes[i]) == DW_TAG_subprogram) break;
            if (libdw().dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
            const char* name = libdw().dwarf_diename(&scopes[i]);
            at.function = name != nullptr ? name : "??";
            result.push_back(at);
            Dwarf_Word file = 0;
            Dwarf_Word line = 0;
            Dwarf_Attribute attribute;
            Dwarf_Files* files = nullptr;
            size_t file_count = 0;
            const bool called =
                libdw().dwarf_formudata(libdw().dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &file) == 0 &&
                libdw().dwarf_formudata(libdw().dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line) == 0 &&
                libdw().dwarf_getsrcfiles(unit, &files, &file_count) == 0 && file < file_count;
            const char* path = called ? libdw().dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
            if (path == nullptr) break;
            at.file = path_of(unit, path);
            at.line = static_cast<int>(line);
        }
        std::free(scopes);
        std::free(containing);
    }

    DebugInfo debug_info_;
};

}  // namespace

__attribute__((noinline)) StackId NativeStacks::capture() noexcept {
    ReturnAddresses unwound;
    read_return_addresses(unwound);
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < unwound.count; ++i) {
        hash = (hash ^ unwound.address[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    if (const StackId known = table_.find(hash)) return known;
    try {
        std::vector<StoredFrame> frames;
        frames.reserve(unwound.count);
        for (int i = 0; i < unwound.count; ++i) {
            frames.push_back({reinterpret_cast<const void*>(unwound.address[i]), nullptr, 0});
        }
        return table_.insert(hash, std::move(frames), false).id;
    } catch (...) {
        return 0;
    }
}

std::vector<SourceFrame> NativeStacks::resolve(StackId id) const {
    std::lock_guard lock(mutex_);
    if (known_.size() >= kMostKnown) known_.clear();  // they can be looked up again
    std::unique_ptr<Symbols> symbols;
    std::vector<SourceFrame> result;
    for (const StoredFrame& stored : table_.frames(id)) {
        auto known = known_.find(stored.code);
        if (known == known_.end()) {
            if (!symbols) symbols = std::make_unique<Symbols>();
            known = known_.emplace(stored.code, symbols->frames(stored.code)).first;
        }
        result.insert(result.end(), known->second.begin(), known->second.end());
    }
    leave_out_launch_stub(result);
    return result;
}

bool NativeStacks::has_lines() { return libdw().complete; }

}  // namespace numsan
