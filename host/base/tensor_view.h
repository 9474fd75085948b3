// What a scanner and the ledger need to know of one tensor. Plain data across the C boundary to the adapter; never
// owns.
#pragma once

#include <cstdint>

#include "host/base/dtype.h"
#include "host/base/integer_type.h"

namespace numsan {

enum class Device : uint8_t { Cpu, Cuda, Other };

/// Bits of TensorView::flags.
enum TensorFlag : uint32_t {
    kRequiresGrad = 1u << 0,
    kLeaf = 1u << 1,       ///< leaf of the autograd graph; with kRequiresGrad: a parameter
    kWritten = 1u << 2,    ///< an argument that the op wrote (in place, out=, or a void op)
    kReturned = 1u << 3,   ///< a value that the op returned
    kScannable = 1u << 4,  ///< dense, strided, floating or complex, with storage: `data` may be read
    /// of a look back: died, or was written since; its value is not known (then not kScannable)
    kUnavailable = 1u << 6,
    kNumber = 1u << 5,  ///< a Python number that the dispatcher wrapped as a tensor
    kLater = 1u << 7,   ///< as kScannable, but in a device's memory: `data` is an address there, written in its queue
    kContiguous = 1u << 12,  ///< known to be so; what has not the flag may be, too
};

/// What autograd knows of an operand; asked for few, see OpEvent::autograd_facts.
enum AutogradFact : uint32_t {
    kViewOfParameter = 1,  ///< a view of a leaf that requires a gradient
    kFromCompiled = 2,     ///< the result of a region that torch.compile turned into kernels of its own
};
inline constexpr int kAutogradFactsShift = 8;  ///< where TensorView::flags of an event that is judged later have it

/// One tensor as the op saw it. `data` points at the first logical element; `sizes` and `strides` are in elements,
/// `ndim` long, and valid only during the call that hands the view over. `storage` identifies the storage (never
/// dereferenced).
struct TensorView {
    const void* data;
    const void* storage;
    const void* storage_data;
    const void* impl;  ///< identity of the tensor object (never dereferenced by the core)
    int64_t storage_bytes;
    int64_t numel;
    const int64_t* sizes;
    const int64_t* strides;
    uint32_t flags;
    int16_t ndim;
    int16_t device_index;
    DType dtype;
    Device device;
    int16_t argument;     ///< position among the op's arguments, or among its returns
    IntegerType integer;  ///< not None: then never kScannable; `data` is set in host memory
};

inline bool is_parameter(const TensorView& t) { return (t.flags & (kRequiresGrad | kLeaf)) == (kRequiresGrad | kLeaf); }

}  // namespace numsan
