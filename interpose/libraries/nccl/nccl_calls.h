// Transfers between ranks by NCCL: nccl_calls.def has the functions.
#pragma once

#include "interpose/libraries/import_table.h"

namespace numsan::nccl {

extern const ReplacedImport kImports[];
extern const int kImportCount;

/// Once they were replaced: finds what ours ask of the library. Until then they look at nothing.
void find_asked() noexcept;

}  // namespace numsan::nccl
