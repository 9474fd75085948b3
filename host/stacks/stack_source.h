// Where stacks and names come from, as an interface: the session asks, interpose/python and native frames answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace numsan {

/// An interned stack; 0 is "no stack". A source may forget a stack: then its id names none, and never another one.
using StackId = uint32_t;

/// One frame, innermost first in a stack. `self` is the module instance of a `torch.nn.Module._call_impl` frame, else
/// null; it identifies and is never dereferenced.
struct SourceFrame {
    std::string file;
    std::string function;
    int line = 0;
    const void* self = nullptr;
    bool native = false;
    bool traced =
        false;  ///< of the program, at the time when the generated code was made that the frame behind it runs
    const void* code = nullptr;  ///< of Python: which code object it runs, where that is known; never dereferenced
};

/// What Python keeps of code that lies in no file: a cell of a notebook, `python -c`, a module in an archive.
struct KeptSource {
    std::string text;              ///< from its first line up to the one that was asked for
    std::optional<int> cell = {};  ///< of a notebook: the number that is shown beside it, from 1
};

/// Names of what is alive now, by identity: modules by object address; parameters, buffers and optimizer state by
/// address of the tensor's implementation (TensorView::impl).
struct LiveNames {
    struct TensorName {
        std::string name;  ///< "model.head.weight", "exp_avg of model.head.weight"
        enum class Role { Parameter, Buffer, Gradient, OptimizerState } role;
        const void* storage = nullptr;  ///< where its values lie, when the look-up knows how to ask
        const void* leaf = nullptr;     ///< of a gradient: the tensor whose it is
        bool optimized = false;         ///< an optimizer's param_groups hold it
    };
    std::map<const void*, std::string> modules;
    std::map<const void*, TensorName> tensors;

    /// A function that Inductor wrote, which runs several ops of a graph at once.
    struct GeneratedKernel {
        std::string name;  ///< "cpp_fused__softmax_log_0"
        std::string file;
        int line = 0;
        bool backward = false;
    };
    /// By the name of the file that stands for the code which torch.fx wrote of the graph.
    std::map<std::string, std::vector<GeneratedKernel>> kernels;

    using CodeLine = std::pair<std::string, int>;  ///< file and line
    /// Lines of code that torch.fx wrote, and the frames of the program that they were made from, innermost first.
    using Traced = std::map<CodeLine, std::vector<SourceFrame>>;
    Traced traced;

    /// Of the lines of TensorReader::sources_of that lie in no file: by file, function and line.
    using Sources = std::map<std::pair<CodeLine, std::string>, KeptSource>;
    Sources sources;
};

/// How a look-up reads tensors (TensorView::impl), each while it is sure to be alive; what is null is not read.
struct TensorReader {
    const void* (*storage_of)(const void* impl) = nullptr;
    const void* (*gradient_of)(const void* impl) = nullptr;
    /// Read storages of gradients, too. Only where no thread of the program gives leaves other gradients any more:
    /// autograd does so without the interpreter's lock, and `leaf.grad = None` lets others run while the leaf still
    /// shows what dies. So nothing can keep a gradient alive that it does not hold already.
    bool gradients_rest = false;
    /// Something is named only beside the one thing that matters: the look-up takes less time and may find less.
    bool brief = false;
    /// A stack has code in it that torch.fx wrote: find what that was made from.
    bool generated = false;
    /// Stacks whose lines are shown: find the text of those that lie in no file.
    std::vector<StackId> sources_of;
};

class StackSource {
  public:
    virtual ~StackSource() = default;

    /// The calling thread's stack, interned. Hot path: no lock of the interpreter, no system call; allocates only for a
    /// stack never seen before. [MT]
    virtual StackId capture() noexcept = 0;

    /// False: frames are those of native code, whose lines take long to be found.
    virtual bool is_python() const noexcept { return true; }

    /// True when a `torch.nn.Module` call is on the stack. Cheap. [MT]
    virtual bool in_module(StackId) const noexcept = 0;

    /// Frames of an interned stack, innermost first; none of one that was forgotten. [MT]
    virtual std::vector<SourceFrame> resolve(StackId) const = 0;

    /// A stack that is kept is forgotten last. Each call of keep() is ended by one of release(). [MT]
    virtual void keep(StackId) const noexcept {}
    virtual void release(StackId) const noexcept {}

    /// Stacks that were forgotten so far. [MT]
    virtual int64_t forgotten() const noexcept { return 0; }

    /// Looks up what is alive. Slow (takes the interpreter's lock): for findings only, and never under a lock of ours.
    virtual LiveNames names(const TensorReader& reader) = 0;

    /// Called on a thread of numsan's, before it asks the program for names. Null: no call.
    void (*on_own_thread)() = nullptr;

    /// Held over a fork, so that the child finds whole tables and free locks.
    virtual void lock() {}
    virtual void unlock() {}
};

}  // namespace numsan
