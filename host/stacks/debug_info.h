// The debug information of the binaries that the process has.
#pragma once

#include <cstdint>

#include "host/stacks/libdw.h"

namespace numsan {

/// A snapshot of the process: for one look-up, or a few. Has nothing where libdw is not installed. One thread.
class DebugInfo {
  public:
    DebugInfo();
    ~DebugInfo();
    DebugInfo(const DebugInfo&) = delete;
    DebugInfo& operator=(const DebugInfo&) = delete;

    Dwfl* process() const { return process_; }  ///< null: nothing
    /// The binary that has the address; null: none.
    Dwfl_Module* module_at(uintptr_t address) const;
    /// The compilation unit of an address, and what was added to its addresses; null: none is known.
    static Dwarf_Die* unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias);

  private:
    void close();

    Dwfl_Callbacks callbacks_{};
    Dwfl* process_ = nullptr;
};

}  // namespace numsan
