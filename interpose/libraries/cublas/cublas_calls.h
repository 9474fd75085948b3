// Products of matrices by cuBLAS and cuBLASLt: cublas_calls.def has the functions.
#pragma once

#include "interpose/libraries/import_table.h"

namespace numsan::cublas {

extern const ReplacedImport kImports[];
extern const int kImportCount;

/// Once they were replaced: finds what ours ask of the libraries. Until then they look at nothing.
void find_asked() noexcept;

}  // namespace numsan::cublas
