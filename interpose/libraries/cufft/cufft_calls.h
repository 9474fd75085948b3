// Fourier transforms by cuFFT: cufft_calls.def has the functions.
#pragma once

#include "interpose/libraries/import_table.h"

namespace numsan::cufft {

extern const ReplacedImport kImports[];
extern const int kImportCount;

}  // namespace numsan::cufft
