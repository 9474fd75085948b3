// Memory that runs out once, on demand: the next allocation of 4096 bytes fails.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<bool> armed{false};
}

extern "C" void arm() { armed = true; }

void* operator new(std::size_t bytes) {
    if (bytes == 4096 && armed.exchange(false)) throw std::bad_alloc();
    if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
