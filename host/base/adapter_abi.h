// The C boundary between libnumsan_core.so and libnumsan_torch.so: plain data and function tables, no C++ type with an
// ABI. Both sides are C++20; interpose/runtime/adapter_loader.cpp compiles the adapter. A change of meaning raises
// kAdapterAbi.
#pragma once

#include <cstdint>
#include <cstring>

#include "host/base/device_queue.h"
#include "host/base/held_call.h"
#include "host/base/ids.h"
#include "host/base/scanner.h"
#include "host/base/tensor_view.h"

namespace numsan {

inline constexpr uint32_t kAdapterAbi = 20;

enum class OpClass : uint8_t {
#define NUMSAN_OP_CLASS(id, text) id,
#include "host/base/op_class.def"
#undef NUMSAN_OP_CLASS
};

/// The name of what the kernels do that torch.compile writes: of an operator of class Region, and of births.
inline constexpr const char* kCompiledRegion = "compiled region";

/// What an operator computes of integers, where its result may not fit: see host/ops/op_table.h.
enum class IntegerOp : uint8_t {
    None,
    Add,
    Subtract,
    SubtractFrom,  ///< the first operand from the second
    Multiply,
    Power,
    Cast,
    Gather,  ///< sums and products over dimensions, matrix products
};

/// One operator. Made by the adapter at first sight, never freed. `name` is "aten::log".
struct OpInfo {
    const char* name;
    const char* overload;
    OpClass op_class;
    bool mutates;  ///< the schema marks at least one argument as written
    uint32_t id;   ///< dense, from 0
    IntegerOp integer_op = IntegerOp::None;
};

/// A process group of torch.distributed. Made by the adapter at first sight, never freed.
struct Communicator {
    const char* name;         ///< the same in all its ranks, and no other's in the job
    const char* description;  ///< what it is for: "default_pg", "mesh_tp"; may be empty
    int32_t rank;             ///< of this process among its ranks
    int32_t size;
    const int32_t* ranks;  ///< of the job, one for each of its own; null: not known
};

/// One finished call of an operator, below autograd and outermost. Views are valid during the call only.
struct OpEvent {
    const OpInfo* op;
    const TensorView* inputs;
    const TensorView* outputs;  ///< returned tensors, then written arguments; no tensor twice
    int32_t input_count;
    int32_t output_count;
    uint64_t thread;  ///< torch's thread number
    /// number of the autograd node that this op made, if it made one; ~0 with gradients off
    uint64_t forward_sequence;
    bool grad_enabled;
    bool infinite_scalar;  ///< a scalar argument was +inf, -inf or the dtype's lowest value
    int64_t graph_task;    ///< number of the backward() this thread is inside of, hooks included; -1 outside
    /// Bits of AutogradFact for one of `inputs`; null in made-up events. kFromCompiled only if it `may_wait`: the
    /// name of a node that is written in Python takes the interpreter's lock.
    uint32_t (*autograd_facts)(const void* impl, bool may_wait);
    int32_t scalar_count;  ///< numbers among the arguments, in order: exponents, factors, eps
    const double* scalars;
    bool inner_ops_shown;  ///< the ops that it called have reported its results: a tensor subclass answered
    bool on_device;        ///< a tensor of it is in the memory of a device; then `queue` is set
    DeviceQueue queue;     ///< where this thread's ops on that device go
    const Communicator* communicator = nullptr;  ///< of a collective; null: not known
    LaunchSpan launches = {};                    ///< the core's to fill in: what it ran on a device
};

/// True for lift_fresh and its like: the operand is memory that was just made, by no op, and filled from the program's
/// own values.
inline bool wraps_memory(const OpEvent& event) {
    return event.op->op_class == OpClass::Constant && event.input_count == 1 && event.output_count == 1 &&
           event.inputs[0].storage == event.outputs[0].storage && (event.outputs[0].flags & kWritten) == 0;
}

/// An op over lists that are as long as what it writes: output i is made of operands i, i + n, i + 2n, ...
inline bool is_over_lists(const OpEvent& event) {
    return std::strncmp(event.op->name, "aten::_foreach_", sizeof "aten::_foreach_" - 1) == 0;
}

/// True for a returned tensor in the memory of an operand that the op did not write: a view, whatever the schema says
/// of it (unsafe_split, contiguous).
inline bool is_view(const OpEvent& event, const TensorView& output) {
    if ((output.flags & kWritten) != 0) return false;
    constexpr int32_t kMany = 16;
    // an op over lists: they make new tensors
    if (event.input_count > kMany && event.output_count > kMany) return false;
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (event.inputs[i].storage == output.storage) return true;
    }
    return false;
}

/// An autograd node is about to run on this thread.
struct NodeEvent {
    const char* name;
    uint64_t sequence;  ///< ~0 for nodes without a forward op
    uint64_t forward_thread;
    const TensorView* inputs;  ///< AccumulateGrad: the incoming gradients; of other nodes none are shown
    int32_t input_count;
    const TensorView* variable;  ///< AccumulateGrad: the tensor whose gradient this is; else null
    int64_t graph_task;          ///< number of the backward() call
    DeviceQueue queue;           ///< with a `variable` on a device: where this thread's ops on that device go
};

/// Functions of torch that may be replaced, with torch's own signatures.
struct TorchCalls {
    void* node_callbacks;   ///< at::getStepCallbacksUnlessEmpty, not for operators
    void* scope_callbacks;  ///< at::getStepCallbacks
    void* accumulate;       ///< torch::autograd::AccumulateGrad::apply
    void* accumulate_seen;  ///< of torch's own: the address by which the process's libraries know `accumulate`
};
/// From now on `ours` are called in the place of torch's, those that are null excepted. False where they are not to be
/// had; else torch's own are in `theirs`. Whether torch calls them so that ours are found is left to the caller to see.
using ReplaceTorchCalls = bool (*)(const TorchCalls& ours, TorchCalls& theirs);

/// An exception of Python's on its way out of an operator. The three objects are references that it owns.
struct RaisedError {
    void* type = nullptr;
    void* value = nullptr;
    void* traceback = nullptr;
    const char* text = nullptr;  ///< what it says, for who does not know of Python; valid until the next one
};

/// What the adapter calls. [MT] Any thread. Nothing throws.
struct CoreApi {
    uint32_t abi;
    void (*op_end)(const OpEvent*);
    void (*op_failed)(const OpEvent*);  ///< an op threw: no outputs; its operands are as it left them
    void (*node_begin)(const NodeEvent*);
    void (*node_end)();
    void (*scope_begin)(const char* name);  ///< USER_SCOPE: Optimizer.step#SGD.step, numsan:ignore, ...
    void (*scope_end)(const char* name);
    void (*before_write)(const void* storage);  ///< of a device: an op of this thread is about to write it in place
    void (*before_wait)();                      ///< an op of this thread is about to hand a device's values to the host
    void (*skipped)(const char* why);           ///< an output was not looked at; `why` is a literal
    void (*fail)(const char* why);              ///< internal failure: one line, then everything off
    ReplaceTorchCalls replace_torch_calls = nullptr;  ///< null: they are not to be had
    /// More than 0: the arguments of each op are held while it runs, so that HoldApi can keep up to so many bytes of
    /// them. Read once, when the adapter is attached.
    int64_t held_bytes = 0;
    /// Copies bytes of a device's memory to the host, once the queue has done all that it was given. False: it is being
    /// captured, or the device cannot be read. Null: it is not to be asked.
    bool (*read_device)(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) = nullptr;
    // With the option `break`, else null.
    void (*after_op)() = nullptr;  ///< after op_end, while the views of that event are valid: the program may stop here
    /// Then, and from where exceptions get to the program: true when there is one to be thrown.
    bool (*take_error)(RaisedError&) = nullptr;
    void (*drop_error)(RaisedError&) = nullptr;  ///< gives its references back
    /// Where ops are measured or their kernels watched, else null: an op of this thread is about to run, after all else
    /// that is said of it before it does. One that throws is not said to have ended.
    void (*op_begin)() = nullptr;
    /// The kinds of values that are not finite in a tensor in host memory. Null: regions that torch.compile made
    /// kernels of are not looked into.
    KindSet (*bad_kinds)(const TensorView& tensor) = nullptr;
};

/// Weak references to storages (TensorView::storage). [MT] Nothing throws. What is watched may die, but its address is
/// not used anew before `unwatch`. `pin`: false when it has died; after true it lives until `unpin`, and `data`
/// and `bytes` are what it has now: its memory may have been exchanged or freed while it lived. `pin`, `unpin`
/// and `unwatch` may take the interpreter's lock and run the program's own code: under no lock of ours.
struct StorageApi {
    void (*watch)(const void* storage);
    void (*unwatch)(const void* storage);
    bool (*pin)(const void* storage, const void** data, int64_t* bytes);
    void (*unpin)(const void* storage);
};

/// What the core calls. `thread_start` makes the calling thread's ops visible; it does nothing on a thread that is
/// visible already.
struct AdapterApi {
    uint32_t abi;
    void (*thread_start)();
    void (*stop)();                               ///< no event after this returns, on any thread that checks
    const char* hook;                             ///< "fallback" or "record_function"
    const void* (*storage_of)(const void* impl);  ///< of a tensor that is alive, null when it has none
    /// That of a tensor that is alive, as an address only: it may be dead by the time it is known. Null: it has none.
    const void* (*gradient_of)(const void* impl);
    StorageApi storages;
    /// on torch's own pool, and only where an op of the calling thread has used it; null: there is none
    ShareWork share;
    HoldApi hold = {};  ///< null where CoreApi::held_bytes is 0
    /// Calls `run` with torch as it is outside every operator, on this thread, and numsan's hook off. With
    /// CoreApi::after_op, else null.
    void (*outside_ops)(void (*run)(void* argument), void* argument) = nullptr;
};

inline bool uses_record_function(const AdapterApi& adapter) {
    return std::strcmp(adapter.hook, "record_function") == 0;
}

/// Exported by the adapter. Returns null, and a reason in `why`, when it cannot see ops.
using TorchAttach = const AdapterApi* (*)(const CoreApi* core, const char** why);
inline constexpr char kTorchAttachSymbol[] = "numsan_torch_attach";

}  // namespace numsan
