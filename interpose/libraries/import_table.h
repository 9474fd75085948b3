// The functions that the program's binaries import, replaced in the memory of the process. Another way than defining
// them in a library that is preloaded: it changes only processes that ask for it, and finds functions of libraries
// that are not visible to all.
#pragma once

namespace numsan {

/// A function that is called in the place of another one.
struct ReplacedImport {
    const char* name;  ///< of the function in the library that has it
    void* ours;
    void** theirs;  ///< is given the other one, before anything calls ours
};

/// [MT] Binaries that the process has now call ours. numsan's own do not, nor do those that find functions by dlsym.
/// Of two libraries that have the function, as in two namespaces of dlmopen, the first one's users do. Asks
/// the dynamic linker, so it may be called inside it, but under no lock that it could wait for. Throws std::bad_alloc.
void replace_imports(const ReplacedImport* imports, int count);

}  // namespace numsan
