// Native stacks: _Unwind_Backtrace to capture, libdw (optional, loaded on demand) or dladdr to resolve.
#include "host/stacks/native_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdlib>
#include <string_view>

#include "host/stacks/launch_stub.h"

namespace numsan {
namespace {

struct Unwound {
    uintptr_t address[NativeStacks::kMaxDepth];
    int count = 0;
    int skip = 1;  ///< capture() itself
};

_Unwind_Reason_Code unwind_step(_Unwind_Context* context, void* data) {
    auto& unwound = *static_cast<Unwound*>(data);
    const uintptr_t ip = _Unwind_GetIP(context);
    if (ip == 0 || unwound.count == NativeStacks::kMaxDepth) return _URC_END_OF_STACK;
    if (unwound.skip > 0) {
        --unwound.skip;
        return _URC_NO_REASON;
    }
    unwound.address[unwound.count++] = ip;
    return _URC_NO_REASON;
}

/// The part of libdw that we use, null when it is not installed.
struct Libdw {
    decltype(&::dwfl_begin) begin;
    decltype(&::dwfl_end) end;
    decltype(&::dwfl_linux_proc_report) report;
    decltype(&::dwfl_report_end) report_end;
    decltype(&::dwfl_linux_proc_find_elf) find_elf;
    decltype(&::dwfl_addrmodule) module_at;
    decltype(&::dwfl_module_addrname) name_at;
    decltype(&::dwfl_module_addrdie) unit_at;
    decltype(&::dwfl_module_nextcu) next_unit;
    decltype(&::dwarf_haspc) covers;
    decltype(&::dwarf_getsrc_die) source_at;
    decltype(&::dwarf_linesrc) line_file;
    decltype(&::dwarf_lineno) line_number;
    decltype(&::dwarf_getscopes) scopes;
    decltype(&::dwarf_getscopes_die) scopes_of_die;
    decltype(&::dwarf_tag) tag;
    decltype(&::dwarf_attr) attribute;
    decltype(&::dwarf_formudata) number;
    decltype(&::dwarf_getsrcfiles) files;
    decltype(&::dwarf_filesrc) file_name;
    decltype(&::dwarf_diename) die_name;
    decltype(&::dwarf_formstring) text;
    bool complete = false;
};

template <class Function>
bool load(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

const Libdw& libdw() {
    static const Libdw loaded = [] {
        Libdw dw{};
        void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
        dw.complete =
            library && load(library, "dwfl_begin", dw.begin) && load(library, "dwfl_end", dw.end) &&
            load(library, "dwfl_linux_proc_report", dw.report) && load(library, "dwfl_report_end", dw.report_end) &&
            load(library, "dwfl_linux_proc_find_elf", dw.find_elf) && load(library, "dwfl_addrmodule", dw.module_at) &&
            load(library, "dwfl_module_addrname", dw.name_at) && load(library, "dwfl_module_addrdie", dw.unit_at) &&
            load(library, "dwfl_module_nextcu", dw.next_unit) && load(library, "dwarf_haspc", dw.covers) &&
            load(library, "dwarf_getsrc_die", dw.source_at) && load(library, "dwarf_linesrc", dw.line_file) &&
            load(library, "dwarf_lineno", dw.line_number) && load(library, "dwarf_getscopes", dw.scopes) &&
            load(library, "dwarf_getscopes_die", dw.scopes_of_die) && load(library, "dwarf_tag", dw.tag) &&
            load(library, "dwarf_attr", dw.attribute) && load(library, "dwarf_formudata", dw.number) &&
            load(library, "dwarf_getsrcfiles", dw.files) && load(library, "dwarf_filesrc", dw.file_name) &&
            load(library, "dwarf_diename", dw.die_name) && load(library, "dwarf_formstring", dw.text);
        return dw;
    }();
    return loaded;
}

/// No search for separate debug information: libdw's own would ask a debuginfod server over the network.
int no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
}

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

/// One process snapshot of libdw, for the length of a resolve().
class Symbols {
  public:
    Symbols() {
        if (!libdw().complete) return;
        callbacks_.find_elf = libdw().find_elf;
        callbacks_.find_debuginfo = no_debuginfo;
        dwfl_ = libdw().begin(&callbacks_);
        if (dwfl_ && (libdw().report(dwfl_, getpid()) != 0 || libdw().report_end(dwfl_, nullptr, nullptr) != 0))
            close();
    }
    ~Symbols() { close(); }
    Symbols(const Symbols&) = delete;
    Symbols& operator=(const Symbols&) = delete;

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
        if (Dwfl_Module* module = dwfl_ ? libdw().module_at(dwfl_, address) : nullptr) {
            if (const char* name = libdw().name_at(module, address)) symbol = name;
            add_lines(module, address, at, result);
        }
        at.function = symbol ? demangled(symbol) : "??";
        result.push_back(std::move(at));
        return result;
    }

  private:
    /// The compilation unit of an address and what was added to its addresses. libdw's own search knows only units
    /// listed in .debug_aranges, a section that clang does not write, and takes the last one that begins before the
    /// address, wherever that ends: then each unit is asked.
    static Dwarf_Die* unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias) {
        Dwarf_Die* const listed = libdw().unit_at(module, address, &bias);
        if (listed != nullptr && libdw().covers(listed, address - bias) != 0) return listed;
        Dwarf_Die* unit = nullptr;
        do {
            unit = libdw().next_unit(module, unit, &bias);
        } while (unit != nullptr && libdw().covers(unit, address - bias) <= 0);
        return unit;
    }

    /// A path that the compiler wrote relative to the folder in which it ran, as clang does for files below that.
    static std::string path_of(Dwarf_Die* unit, const char* file) {
        Dwarf_Attribute attribute;
        const char* folder =
            file[0] == '/' ? nullptr : libdw().text(libdw().attribute(unit, DW_AT_comp_dir, &attribute));
        return folder != nullptr ? std::string(folder) + "/" + file : file;
    }

    /// Gives `at` the line of `address`, where there is debug information. Then adds the functions inlined there, and
    /// moves `at` out to the place where the outermost of them was called.
    static void add_lines(Dwfl_Module* module, Dwarf_Addr address, SourceFrame& at, std::vector<SourceFrame>& result) {
        if (!libdw().complete) return;
        Dwarf_Addr bias = 0;
        Dwarf_Die* unit = unit_of(module, address, bias);
        if (unit == nullptr) return;
        if (Dwarf_Line* line = libdw().source_at(unit, address - bias)) {
            const char* file = libdw().line_file(line, nullptr, nullptr);
            if (file != nullptr && libdw().line_number(line, &at.line) == 0) at.file = path_of(unit, file);
        }
        Dwarf_Die* containing = nullptr;
        if (libdw().scopes(unit, address - bias, &containing) <= 0) return;
        Dwarf_Die* scopes = nullptr;
        const int count = libdw().scopes_of_die(&containing[0], &scopes);
        for (int i = 0; i < count; ++i) {
            if (libdw().tag(&scopes[i]) == DW_TAG_subprogram) break;
            if (libdw().tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
            const char* name = libdw().die_name(&scopes[i]);
            at.function = name != nullptr ? name : "??";
            result.push_back(at);
            Dwarf_Word file = 0;
            Dwarf_Word line = 0;
            Dwarf_Attribute attribute;
            Dwarf_Files* files = nullptr;
            size_t file_count = 0;
            const bool called =
                libdw().number(libdw().attribute(&scopes[i], DW_AT_call_file, &attribute), &file) == 0 &&
                libdw().number(libdw().attribute(&scopes[i], DW_AT_call_line, &attribute), &line) == 0 &&
                libdw().files(unit, &files, &file_count) == 0 && file < file_count;
            const char* path = called ? libdw().file_name(files, file, nullptr, nullptr) : nullptr;
            if (path == nullptr) break;
            at.file = path_of(unit, path);
            at.line = static_cast<int>(line);
        }
        std::free(scopes);
        std::free(containing);
    }

    void close() {
        if (dwfl_) libdw().end(dwfl_);
        dwfl_ = nullptr;
    }
    Dwfl_Callbacks callbacks_{};
    Dwfl* dwfl_ = nullptr;
};

}  // namespace

__attribute__((noinline)) StackId NativeStacks::capture() noexcept {
    Unwound unwound;
    _Unwind_Backtrace(unwind_step, &unwound);
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
