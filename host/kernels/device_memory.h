// What a program without a framework has allocated on its devices, and what its buffers hold, as far as calls of the
// driver's show it. Memory has no type there: a buffer has that of the kernel which was last given it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "host/base/dtype.h"

namespace numsan {

/// A program may keep many buffers in one allocation. Where one of them ends is not known: it is taken to go on to
/// where values of another type begin, or to the end of the allocation. Not [MT]. Throws std::bad_alloc.
class DeviceMemory {
  public:
    /// Of beginnings within one allocation; further ones are not told apart.
    static constexpr size_t kMostBuffers = 512;
    /// What is beyond this of a buffer is not part of it.
    static constexpr int64_t kMostBytes = int64_t(1) << 30;

    struct Buffer {
        uint64_t begin;
        int64_t bytes;
        uint64_t allocation;  ///< where that begins
        int64_t allocation_bytes;
        bool cut;  ///< it has more than kMostBytes
    };

    /// `of_host`: the host may write it at any time, so its values are never known.
    void allocated(uint64_t address, int64_t bytes, bool of_host);
    void freed(uint64_t address);
    /// Calls were missed: nothing is known any more.
    void forget();

    /// From `address` to the end of the buffer of that type, or to `end` where that is nearer; none for memory that was
    /// not seen to be allocated.
    std::optional<Buffer> at(uint64_t address, DType dtype, uint64_t end = ~uint64_t(0)) const;
    bool knows(uint64_t address) const { return allocation_of(address) != nullptr; }
    /// A kernel was given integers at `address`.
    void has_integers(uint64_t address);

    /// A kernel was given the buffer that begins at `address` as one of numbers of this type.
    void has_type(uint64_t address, DType dtype);
    /// Where the buffer begins that `address` lies in; none of memory that is not known.
    std::optional<uint64_t> beginning_of(uint64_t address) const;
    /// The type of what lies at `address`: that of the last beginning before it. None where no kernel was given it, or
    /// it was integers.
    std::optional<DType> type_at(uint64_t address) const;

    /// Whether the values of the buffer that begins at `address` are known by what kernels were seen to write there.
    bool is_known(uint64_t address) const;
    void known(uint64_t address);
    /// Something else wrote into the allocation at `address`: a copy, the host.
    void written(uint64_t address);
    /// A kernel that was given the buffer at `address` may have gone on into the one of that allocation that begins at
    /// `end`, if one does.
    void goes_on(uint64_t address, uint64_t end);
    /// Something may have written anywhere.
    void all_written() { all_written_at_ = ++clock_; }

  private:
    struct Beginning {
        std::optional<DType> dtype;  ///< none: integers
        uint64_t known_at = 0;       ///< by the clock; 0: never
    };
    struct Allocation {
        int64_t bytes = 0;
        bool of_host = false;
        uint64_t written_at = 0;
        std::map<uint64_t, Beginning> beginnings;
    };

    const std::pair<const uint64_t, Allocation>* allocation_of(uint64_t address) const;
    Beginning* beginning(uint64_t address);

    std::map<uint64_t, Allocation> allocations_;
    uint64_t clock_ = 0;  ///< counts what happens to memory
    uint64_t all_written_at_ = 0;
};

}  // namespace numsan
