// A GPU for PTX that translate.py has turned into C++: the threads of a grid are fibers of the thread that calls run().
// What a kernel does with memory is checked, and where its threads wait for each other.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace numsan::ptx {

class Thread;

struct Kernel {
    struct Parameter {
        size_t offset, bytes;
    };

    const char* name;
    void (*body)(Thread&);
    size_t parameter_bytes;  ///< of all, with what lies between
    size_t shared_bytes;
    std::vector<Parameter> parameters;
};

/// How many blocks or threads there are, or the place of one of them.
struct Dim3 {
    Dim3(uint32_t of_x, uint32_t of_y = 1, uint32_t of_z = 1) : x(of_x), y(of_y), z(of_z) {}

    uint32_t count() const { return x * y * z; }
    Dim3 place(uint32_t number) const { return {number % x, number / x % y, number / x / y}; }

    uint32_t x, y, z;
};

/// Memory of a device, which a kernel may read, or write as well.
struct Memory {
    const void* data;
    size_t bytes;
    bool writable = false;
};

struct Launch {
    const Kernel& kernel;
    const void* parameters;  ///< Kernel::parameter_bytes of them
    Dim3 blocks;
    Dim3 threads;                  ///< of a block
    uint32_t together = 1;         ///< blocks that run at the same time
    uint32_t seed = 0;             ///< of the order of blocks and threads; 0: as they are numbered
    std::vector<Memory> memory{};  ///< all of it
};

/// Runs all blocks. The result is empty, or what a thread did that a GPU forbids or leaves open, with the line of the
/// PTX; then the rest was not run. Found are accesses outside of the launch's memory or not aligned, division by zero,
/// threads that wait for ever, at different barriers or in a shuffle that not all lanes of a warp run, and accesses to
/// shared memory that no barrier orders. Several may run at once, over the same memory: atomic operations on it are
/// atomic among them, too. [MT]
std::string run(const Launch& launch);

enum class Shuffle { Up, Down, Bfly, Idx };

class Machine;
class Block;

/// What translated code asks of its thread. `line` is that of the PTX.
class Thread {
  public:
    Thread(Machine& machine, Block& block, uint32_t thread) : machine_(machine), block_(block), thread_(thread) {}

    uint32_t thread() const { return thread_; }
    uint32_t lane() const { return thread_ % 32; }
    uint32_t block() const;
    Dim3 block_in_grid() const;
    Dim3 thread_in_block() const;
    Dim3 blocks() const;
    Dim3 threads() const;
    uint64_t nanoseconds() const;  ///< %globaltimer: a steady clock
    uint64_t parameters() const;

    template <class T, int kCount>
    const T* load_global(uint64_t address, int line) {
        return reinterpret_cast<const T*>(global(address, sizeof(T) * kCount, false, line));
    }
    template <class T, int kCount>
    T* store_global(uint64_t address, int line) {
        return reinterpret_cast<T*>(global(address, sizeof(T) * kCount, true, line));
    }
    template <class T>
    T* atomic_global(uint64_t address, int line) {
        return reinterpret_cast<T*>(global(address, sizeof(T), true, line));
    }
    template <class T, int kCount>
    const T* load_param(uint64_t address, int line) {
        return reinterpret_cast<const T*>(parameter(address, sizeof(T) * kCount, line));
    }
    template <class T, int kCount>
    const T* load_shared(uint64_t address, int line) {
        return reinterpret_cast<const T*>(shared(address, sizeof(T) * kCount, Access::Read, line));
    }
    template <class T, int kCount>
    T* store_shared(uint64_t address, int line) {
        return reinterpret_cast<T*>(shared(address, sizeof(T) * kCount, Access::Write, line));
    }
    template <class T>
    T* atomic_shared(uint64_t address, int line) {
        return reinterpret_cast<T*>(shared(address, sizeof(T), Access::Atomic, line));
    }

    /// bar.sync 0
    void barrier(int line);
    /// shfl.sync
    uint32_t shuffle(Shuffle mode, uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask, int line);
    /// Other threads may see what this one has written, and write: they run first if blocks run at the same time.
    void let_others();
    [[noreturn]] void fault(int line, const std::string& what);

  private:
    friend class Machine;
    friend class Block;
    enum class State { Ready, AtBarrier, InShuffle, Ended };
    enum class Access { Read, Write, Atomic };
    struct Exchange {
        Shuffle mode;
        uint32_t value, lane, clamp, mask, result;
    };

    void* global(uint64_t address, size_t bytes, bool writes, int line);
    const void* parameter(uint64_t address, size_t bytes, int line);
    void* shared(uint64_t address, size_t bytes, Access access, int line);
    void wait(State state, int line);

    Machine& machine_;
    Block& block_;
    const uint32_t thread_;
    State state_ = State::Ready;
    int line_ = 0;  ///< where it waits
    Exchange exchange_{};
};

// What instructions compute, by the PTX ISA.

/// atom: what was there. Other launches, and the host, may be at the same word.
template <class T, class Operation>
T exchange(T* at, Operation operation) {
    const std::atomic_ref<T> word(*at);
    T old = word.load();
    while (!word.compare_exchange_weak(old, operation(old))) {
    }
    return old;
}

/// A shift by as many bits as there are, or more, leaves zeros, or copies of the sign.
template <class T>
T shift_left(T value, uint32_t bits) {
    return bits >= 8 * sizeof(T) ? T(0) : T(value << bits);
}
template <class T>
T shift_right(T value, uint32_t bits) {
    if (bits >= 8 * sizeof(T)) return std::is_signed_v<T> && value < 0 ? T(-1) : T(0);
    return T(value >> bits);
}

/// An operation on both halves of a word.
template <class Operation>
uint32_t each_half(uint32_t a, uint32_t b, Operation operation) {
    const uint32_t low = operation(static_cast<uint16_t>(a), static_cast<uint16_t>(b));
    const uint32_t high = operation(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
}

/// bfi: the lowest bits of `from` in `into`.
template <class T>
T insert_bits(T from, T into, uint32_t position, uint32_t length) {
    for (uint32_t i = 0; i < (length & 255) && i + (position & 255) < 8 * sizeof(T); ++i) {
        const T bit = T(1) << (i + (position & 255));
        into = (from >> i & 1) != 0 ? into | bit : into & ~bit;
    }
    return into;
}

/// prmt: four bytes of the eight, each chosen by a digit of `selector`; with its highest bit the byte's sign instead.
inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t digit = selector >> (4 * i) & 15, byte = bytes >> (8 * (digit & 7)) & 255;
        const uint32_t chosen = (digit & 8) == 0 ? byte : (byte & 128) != 0 ? 255u : 0u;
        result |= chosen << (8 * i);
    }
    return result;
}

}  // namespace numsan::ptx
