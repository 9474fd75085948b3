// Which kinds of non-finite value a run of memory holds, without counting them: the pass for tensors that are known to
// be bad.
#pragma once

#include <cstdint>

#include "host/base/dtype.h"
#include "host/base/health.h"

namespace numsan {

/// Kinds among `lanes` real lanes that follow each other from `data`. Any alignment. For types with infinities (IEEE).
/// [MT]
KindSet gather_kinds(const DTypeInfo& type, const void* data, int64_t lanes) noexcept;

}  // namespace numsan
