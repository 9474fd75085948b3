#include "host/stacks/debug_info.h"

#include <unistd.h>

namespace numsan {
namespace {

/// No search for separate debug information: libdw's own would ask a debuginfod server over the network.
int no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
    return -1;
}

}  // namespace

DebugInfo::DebugInfo() {
    if (!libdw().complete) return;
    callbacks_.find_elf = libdw().dwfl_linux_proc_find_elf;
    callbacks_.find_debuginfo = no_debuginfo;
    process_ = libdw().dwfl_begin(&callbacks_);
    if (process_ && (libdw().dwfl_linux_proc_report(process_, getpid()) != 0 ||
                     libdw().dwfl_report_end(process_, nullptr, nullptr) != 0))
        close();
}

DebugInfo::~DebugInfo() { close(); }

void DebugInfo::close() {
    if (process_) libdw().dwfl_end(process_);
    process_ = nullptr;
}

Dwfl_Module* DebugInfo::module_at(uintptr_t address) const {
    return process_ ? libdw().dwfl_addrmodule(process_, address) : nullptr;
}

// libdw's own search knows only units listed in .debug_aranges, a section that clang does not write, and takes the last
// one that begins before the address, wherever that ends: then each unit is asked.
Dwarf_Die* DebugInfo::unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias) {
    Dwarf_Die* const listed = libdw().dwfl_module_addrdie(module, address, &bias);
    if (listed != nullptr && libdw().dwarf_haspc(listed, address - bias) != 0) return listed;
    Dwarf_Die* unit = nullptr;
    do {
        unit = libdw().dwfl_module_nextcu(module, unit, &bias);
    } while (unit != nullptr && libdw().dwarf_haspc(unit, address - bias) <= 0);
    return unit;
}

}  // namespace numsan
