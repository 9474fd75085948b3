// What an operator was called with and what it wrote, kept by the adapter for the core: plain data over the C boundary.
#pragma once

#include <cstdint>

namespace numsan {

enum class HeldKind : uint8_t {
    None,
    Tensor,
    Number,   ///< `number`
    Integer,  ///< `integer`
    Complex,  ///< `number`, `imaginary`
    Bool,     ///< `integer`
    String,
    List,  ///< the `items` values behind it, and what belongs to those, are its elements
    DType,
    Device,
    Layout,
    MemoryFormat,
    Generator,
    LeftOut,  ///< `text` says why; null: its `bytes` are too many
};

/// One argument, result or element of a list. Lists come before their elements.
struct HeldValue {
    HeldKind kind = HeldKind::None;
    const char* name = nullptr;  ///< of the argument, in the schema; null: it has none
    const char* text = nullptr;  ///< String, DType, Device, Layout, MemoryFormat, Generator, LeftOut
    double number = 0;
    double imaginary = 0;
    int64_t integer = 0;
    int64_t items = 0;
    // Of a tensor, also of one that is left out where that much is known.
    const void* impl = nullptr;  ///< the tensor's own; only an address once the op has returned
    int32_t tensor = -1;         ///< which of HeldView::tensors has its values; values of one tensor object share them
    const char* dtype = nullptr;
    const char* device = nullptr;
    const int64_t* sizes = nullptr;
    const int64_t* strides = nullptr;
    int32_t ndim = 0;
    int64_t bytes = 0;  ///< of its elements
    bool requires_grad = false;
    bool overwritten = false;  ///< the op writes it without reading it: its values were not kept and are zero
};

/// Values in host memory, contiguous, as they were.
struct HeldTensor {
    const char* format;  ///< as safetensors has it: F32, BF16, F8_E4M3, ...
    const int64_t* sizes;
    int32_t ndim;
    const void* data;  ///< null: all zero
    int64_t bytes;
};

struct HeldView {
    const char* name;
    const char* overload;
    const char* schema;
    const HeldValue* arguments;
    int32_t argument_count;  ///< elements of lists included
    const HeldValue* results;
    int32_t result_count;
    const HeldTensor* tensors;
    int32_t tensor_count;
    int32_t threads;              ///< that the host's operators may use
    const HeldTensor* generator;  ///< state of the host's generator before an op that draws from it; null: it does not
};

/// A call that is kept; opaque to the core.
struct HeldCall;

/// [MT] Nothing throws. Null functions: nothing is held.
struct HoldApi {
    /// Within op_end, of the op that it reports: its arguments, those that it wrote as they were before, and its
    /// results. They are copies from here on: no tensor of the program's is referenced. Of several calls within one
    /// op_end each takes a reference to the same. Null: nothing was held, or there is no memory.
    HeldCall* (*keep)();
    /// The forward op that made an autograd node, as far as its tensors are alive and unchanged: called while that node
    /// runs. Null: it is not known any more.
    HeldCall* (*keep_forward)(uint64_t thread, uint64_t sequence);
    /// Gives back a reference. Frees memory, and calls nothing of the program's.
    void (*drop)(HeldCall* held);
    int64_t (*bytes)(const HeldCall* held);  ///< that its tensors have in memory
    /// Valid until it is dropped.
    const HeldView* (*view)(const HeldCall* held);
    /// From now on nothing is held, on any thread; what was kept stays.
    void (*stop)();
};

}  // namespace numsan
