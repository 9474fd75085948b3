// libdw, which reads debug information: loaded where it is installed.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

namespace numsan {

/// Its functions, under their own names; null without it.
struct Libdw {
#define NUMSAN_LIBDW(function) decltype(&::function) function;
#include "host/stacks/libdw.def"
#undef NUMSAN_LIBDW
    bool complete;  ///< it has all of them
};

/// [MT] Loads it on the first call.
const Libdw& libdw();

}  // namespace numsan
