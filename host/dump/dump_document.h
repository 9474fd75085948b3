// A call that was kept as the header of a safetensors file: docs/dumps.md says what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/held_call.h"
#include "host/finding/finding.h"
#include "host/finding/run_summary.h"
#include "host/options/options.h"
#include "host/report/atomic_file.h"

namespace numsan {

struct DumpContent {
    const HeldView* op = nullptr;
    const HeldView* forward = nullptr;  ///< of the node that the op ran in; null: there was none, or nothing is known
    std::string node;                   ///< empty: it ran in none
    int64_t limit = 0;                  ///< bytes, the option dump_limit: what was left out is said with it
};

/// A file's parts in their order. They point into the kept calls and into `header`.
struct DumpFile {
    std::string header;
    std::vector<FilePart> parts;
};

/// May throw std::bad_alloc.
DumpFile dump_file(const DumpContent& content, const Finding& finding, const RunSummary& run);

/// 2.1 GB, 640 bytes: powers of ten.
std::string bytes_text(int64_t bytes);

}  // namespace numsan
