// Types of debug information, as what a kernel does with an argument of such a type.
#pragma once

#include <vector>

#include "host/kernels/kernel_signature.h"
#include "host/stacks/libdw.h"

namespace numsan {

/// Adds the parts of an argument of that type: of a struct those of its members. What is laid out in another way, or
/// has very many parts, is one of unknown use. Throws std::bad_alloc.
void add_parts_of(const Dwarf_Die& type, int16_t argument, std::vector<KernelParameter>& parts);

}  // namespace numsan
