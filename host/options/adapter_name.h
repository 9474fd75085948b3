// The names of compiled adapters: of those that make and load them, and of the command, which lists them.
#pragma once

#include <string>
#include <vector>

namespace numsan {

/// The file of an adapter for this version of torch. `build` and `torch`: 16 hexadecimal digits that distinguish what
/// was compiled, and against what.
std::string adapter_name(const std::string& version, const std::string& build, const std::string& torch);

/// The versions of torch that a folder's adapters are for, oldest first, each once. Never throws for any folder but for
/// lack of memory.
std::vector<std::string> torches_of_adapters(const std::string& folder);

}  // namespace numsan
