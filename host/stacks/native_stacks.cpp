// Native stacks: _Unwind_Backtrace to capture, libdw (optional, loaded on demand) or dladdr to resolve.
#include "host/stacks/native_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdlib>
#include <string_view>

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
    decltype(&::dwfl_module_getsrc) source_at;
    decltype(&::dwfl_lineinfo) line_info;
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
        dw.complete = library && load(library, "dwfl_begin", dw.begin) && load(library, "dwfl_end", dw.end) &&
                      load(library, "dwfl_linux_proc_report", dw.report) &&
                      load(library, "dwfl_report_end", dw.report_end) &&
                      load(library, "dwfl_linux_proc_find_elf", dw.find_elf) &&
                      load(library, "dwfl_addrmodule", dw.module_at) &&
                      load(library, "dwfl_module_addrname", dw.name_at) &&
                      load(library, "dwfl_module_getsrc", dw.source_at) &&
                      load(library, "dwfl_lineinfo", dw.line_info);
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
    for (const std::string_view prefix : {"libtorch", "libc10", "libnumsan", "libc.so", "libc-2", "libpthread", "ld-linux",
                                          "libgcc_s", "libstdc++"}) {
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
        if (dwfl_ && (libdw().report(dwfl_, getpid()) != 0 || libdw().report_end(dwfl_, nullptr, nullptr) != 0)) close();
    }
    ~Symbols() { close(); }
    Symbols(const Symbols&) = delete;
    Symbols& operator=(const Symbols&) = delete;

    /// The frame of a return address; an empty function when the frame is to be left out.
    SourceFrame frame(const void* return_address) const {
        SourceFrame result;
        result.native = true;
        const auto address = reinterpret_cast<uintptr_t>(return_address) - 1;  // inside the call
        Dl_info info{};
        const bool known = dladdr(reinterpret_cast<const void*>(address), &info) != 0 && info.dli_fname;
        if (known && left_out(info.dli_fname)) return result;
        if (known) result.file = info.dli_fname;
        const char* symbol = known ? info.dli_sname : nullptr;
        if (Dwfl_Module* module = dwfl_ ? libdw().module_at(dwfl_, address) : nullptr) {
            if (const char* name = libdw().name_at(module, address)) symbol = name;
            if (Dwfl_Line* line = libdw().source_at(module, address)) {
                int number = 0;
                const char* file = libdw().line_info(line, nullptr, &number, nullptr, nullptr, nullptr);
                if (file) {
                    result.file = file;
                    result.line = number;
                }
            }
        }
        result.function = symbol ? demangled(symbol) : "??";
        return result;
    }

  private:
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
        return table_.insert(hash, std::move(frames), false);
    } catch (...) {
        return 0;
    }
}

std::vector<SourceFrame> NativeStacks::resolve(StackId id) const {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Symbols> symbols;
    std::vector<SourceFrame> result;
    for (const StoredFrame& stored : table_.frames(id)) {
        auto known = known_.find(stored.code);
        if (known == known_.end()) {
            if (!symbols) symbols = std::make_unique<Symbols>();
            known = known_.emplace(stored.code, symbols->frame(stored.code)).first;
        }
        if (!known->second.function.empty()) result.push_back(known->second);
    }
    return result;
}

bool NativeStacks::has_lines() { return libdw().complete; }

}  // namespace numsan
