#include "host/kernels/kernel_events.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <new>

#include "host/ops/op_traits.h"

namespace numsan {
namespace {

using Use = KernelParameter::Use;

constexpr int32_t kMostBuffersOfALaunch = 16;  ///< further ones are not looked at
constexpr size_t kMostKernels = 1 << 13;       ///< names of further ones are not looked into
constexpr int64_t kStride = 1;

uint64_t this_thread_number() noexcept {
    static constinit std::atomic<uint64_t> last{0};
    static thread_local constinit uint64_t mine = 0;
    if (mine == 0) mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

/// One of the numbers that a kernel is given by value is infinite: it masks or begins a minimum with it.
bool is_infinite(const KernelParameter& parameter, const void* argument) {
    const auto is = [&](auto value) {
        std::memcpy(&value, argument, sizeof value);
        return std::isinf(value);
    };
    if (parameter.use != Use::Number) return false;
    return parameter.dtype == DType::Float64 ? is(double{}) : is(float{});
}

bool is_given_infinity(const SeenLaunch& launch, const KernelSignature& signature) {
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
        if (is_infinite(signature.parameters[i], launch.arguments[i])) return true;
    }
    return false;
}

template <class T>
T loaded(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Memory of this process that may not be there, through the kernel: an error in place of a fault.
template <class T>
std::optional<T> read_if_there(const void* from) {
    T value{};
    const iovec to{&value, sizeof value}, remote{const_cast<void*>(from), sizeof value};
    return process_vm_readv(getpid(), &to, 1, &remote, 1, 0) == sizeof value ? std::optional(value) : std::nullopt;
}

constexpr uint64_t kNowhere = ~uint64_t(0);

/// The pointer in an argument that a user speaks of. A kernel may have fewer arguments than he says: where there is none
/// it is one into memory that nobody has.
uint64_t declared_pointer(const SeenLaunch& launch, const KernelParameter& parameter) {
    const auto argument = read_if_there<const char*>(launch.arguments + parameter.argument);
    return argument ? read_if_there<uint64_t>(*argument + parameter.offset).value_or(kNowhere) : kNowhere;
}

/// Where a buffer of that many numbers ends; of none, nowhere.
uint64_t end_of_count(uint64_t address, const KernelParameter& parameter) {
    const uint64_t bytes = info(parameter.dtype).element_bytes();
    return parameter.count > 0 ? address + static_cast<uint64_t>(parameter.count) * bytes : ~uint64_t(0);
}

const void* pointer(uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

/// Views of one event, with the sizes that they point to.
struct KernelEvents::Views {
    TensorView read[kMostBuffersOfALaunch], written[kMostBuffersOfALaunch];
    int64_t sizes[2 * kMostBuffersOfALaunch];
    int32_t reads = 0, writes = 0;
    bool complete = true;  ///< false: something that it may write has no view

    TensorView& add(uint64_t address, DType dtype, const DeviceMemory::Buffer& buffer, bool is_written);
};

OpInfo KernelEvents::new_op(const std::string& name, OpClass op_class) {
    const bool mutates = op_class != OpClass::HostRead;
    return {names_.emplace_back(name).c_str(), "", op_class, mutates, next_id_++, IntegerOp::None};
}

KernelEvents::Kernel& KernelEvents::kernel_of(const char* symbol) {
    const std::string_view name = symbol != nullptr ? symbol : "(unnamed)";
    if (const auto known = kernels_.find(name); known != kernels_.end()) return known->second;
    if (kernels_.size() >= kMostKernels) return others_;
    Kernel made;
    if (std::optional<KernelSignature> signature = kernel_signature(symbol)) {
        made.typed = true;
        made.signature = std::move(*signature);
    }
    if (const auto* const declared = manifest_.find(name, made.signature.name); declared != nullptr) {
        made.typed = true;
        if (made.signature.name.empty()) made.signature.name = name;
        made.signature.parameters = *declared;
        made.signature.declared = true;
    }
    made.op = new_op((made.typed ? made.signature.name : std::string(name)) + std::string(kKernelMark), OpClass::Other);
    return kernels_.emplace(name, std::move(made)).first->second;
}

const OpInfo& KernelEvents::call_op(const char* call, OpClass op_class) {
    const auto known = calls_.find(std::string_view(call));
    if (known != calls_.end()) return known->second;
    const std::string name = call + std::string(op_class == OpClass::HostRead ? "" : kLibraryCallMark);
    return calls_.emplace(call, new_op(name, op_class)).first->second;
}

/// A view of what begins at `address` in the buffer; its sizes are for the caller to set.
TensorView& KernelEvents::Views::add(uint64_t address, DType dtype, const DeviceMemory::Buffer& buffer,
                                     bool is_written) {
    int32_t& count = is_written ? writes : reads;
    TensorView& view = (is_written ? written : read)[count++];
    view = {};
    view.data = view.impl = pointer(address);
    view.storage = view.storage_data = pointer(buffer.allocation);
    view.storage_bytes = buffer.allocation_bytes;
    // What it was computed from is not known: it is no more the program's data than a result.
    view.flags = kLater | (is_written ? kWritten : kRequiresGrad);
    view.device_index = -1;  // that of the thread's context
    view.dtype = dtype;
    view.device = Device::Cuda;
    view.argument = static_cast<int16_t>(count - 1);
    return view;
}

bool KernelEvents::view(Views& views, uint64_t address, DType dtype, bool written, uint64_t end) {
    const int32_t count = written ? views.writes : views.reads;
    const uint32_t bytes = info(dtype).element_bytes();
    const std::optional<DeviceMemory::Buffer> buffer = memory_.at(address, dtype, end);
    if (!buffer || count == kMostBuffersOfALaunch || address % bytes != 0) return false;
    int64_t& size = views.sizes[2 * count + (written ? 1 : 0)];
    size = buffer->bytes / bytes;
    views.complete = views.complete && !(written && buffer->cut);
    if (size == 0) return true;
    TensorView& view = views.add(address, dtype, *buffer, written);
    view.numel = size;
    view.sizes = &size;
    view.strides = &kStride;
    view.flags |= kContiguous;
    view.ndim = 1;
    return true;
}

bool KernelEvents::view(Views& views, const LibraryCall::Buffer& given, bool written) {
    const std::optional<DeviceMemory::Buffer> buffer = memory_.at(given.address, given.dtype);
    const int64_t extent = given.extent();
    const auto offset = buffer ? static_cast<int64_t>(given.address - buffer->allocation) : 0;
    if (!buffer || extent == 0 || extent > buffer->allocation_bytes - offset) return false;
    TensorView& view = views.add(given.address, given.dtype, *buffer, written);
    int64_t dense = 1;
    view.numel = 1;
    view.flags |= kContiguous;
    for (int32_t d = given.ndim - 1; d >= 0; --d) {
        if (given.sizes[d] != 1 && given.strides[d] != dense) view.flags &= ~uint32_t(kContiguous);
        dense *= given.sizes[d];
    }
    view.numel = dense;
    view.sizes = given.sizes;
    view.strides = given.strides;
    view.ndim = given.ndim;
    return true;
}

template <class Take>
void KernelEvents::each_buffer(const SeenLaunch& launch, const Kernel& kernel, Take take) {
    for (const KernelParameter& parameter : kernel.signature.parameters) {
        const Use use = parameter.use;
        if (use != Use::Reads && use != Use::Writes && use != Use::Others) continue;
        const uint64_t address = kernel.signature.declared ? declared_pointer(launch, parameter)
                                                           : loaded<uint64_t>(launch.arguments[parameter.argument]);
        if (address != 0) take(address, parameter);
    }
}

uint64_t KernelEvents::end_of(const SeenLaunch& launch, const Kernel& kernel, uint64_t address) {
    constexpr uint64_t kApart = 256;  // what is nearer is a place in the same buffer: a neighbour, a row
    uint64_t end = ~uint64_t(0);
    each_buffer(launch, kernel, [&](uint64_t other, const KernelParameter&) {
        if (other >= address + kApart) end = std::min(end, other);
    });
    return end;
}

void KernelEvents::add_unknown(Views& views, uint64_t address, DType dtype, uint64_t end) {
    const TensorView* const begin = views.written;
    const auto is_it = [&](const TensorView& other) { return other.data == pointer(address); };
    if (memory_.is_known(address) || std::any_of(begin, begin + views.writes, is_it)) return;
    if (view(views, address, dtype, false, end) && view(views, address, dtype, true, end)) memory_.known(address);
}

void KernelEvents::look_at_unknown(const Views& views, const DeviceQueue& queue) noexcept {
    if (views.writes == 0) return;
    OpEvent event = event_of(contents_, queue);
    event.inputs = views.read;
    event.input_count = views.reads;
    event.outputs = views.written;
    event.output_count = views.writes;
    sink_.ignore(true);
    sink_.op_end(event);
    sink_.ignore(false);
}

OpEvent KernelEvents::event_of(const OpInfo& op, const DeviceQueue& queue) const {
    OpEvent event{};
    event.op = &op;
    event.thread = this_thread_number();
    event.forward_sequence = ~uint64_t(0);
    event.graph_task = -1;
    event.on_device = true;
    event.queue = queue;
    return event;
}

void KernelEvents::before_launch(const SeenLaunch& launch) noexcept {
    Views views;
    {
        const std::lock_guard lock(mutex_);
        try {
            const Kernel& kernel = kernel_of(launch.symbol);
            if (!kernel.typed || launch.arguments == nullptr || launch.captured) return;
            // Where one of its buffers begins another ends.
            each_buffer(launch, kernel, [&](uint64_t address, const KernelParameter& parameter) {
                parameter.use == Use::Others ? memory_.has_integers(address)
                                             : memory_.has_type(address, parameter.dtype);
            });
            each_buffer(launch, kernel, [&](uint64_t address, const KernelParameter& parameter) {
                if (parameter.use != Use::Others)
                    add_unknown(views, address, parameter.dtype, end_of(launch, kernel, address));
            });
        } catch (const std::bad_alloc&) {
            return;  // a bad value that was there before may be taken for one of this kernel's
        }
    }
    look_at_unknown(views, launch.queue);
}

void KernelEvents::after_launch(const SeenLaunch& launch) noexcept {
    Views views;
    const OpInfo* op = nullptr;
    bool fills = false;
    {
        const std::lock_guard lock(mutex_);
        try {
            Kernel& kernel = kernel_of(launch.symbol);
            if (launch.captured) {
                ++captured_;
                return;
            }
            op = &kernel.op;
            const bool readable = kernel.typed && launch.arguments != nullptr;
            views.complete = readable && !kernel.signature.has(Use::Unknown);
            if (readable) {
                each_buffer(launch, kernel, [&](uint64_t address, const KernelParameter& parameter) {
                    if (parameter.use == Use::Others) return memory_.written(address);
                    const uint64_t end = end_of(launch, kernel, address);
                    // It may go on beyond a place that it is given, too: a neighbour in the same buffer.
                    if (parameter.use == Use::Writes) memory_.goes_on(address, end);
                    const uint64_t last = std::min(end, end_of_count(address, parameter));
                    view(views, address, parameter.dtype, false, last);  // what it may write it may read, too
                    if (parameter.use == Use::Writes && !view(views, address, parameter.dtype, true, last))
                        views.complete = false;
                });
                fills = is_given_infinity(launch, kernel.signature);
            }
            const bool told = readable && kernel.signature.has(Use::Writes);
            ++(views.complete     ? kernel.scanned
               : views.writes > 0 ? kernel.partly
               : told             ? kernel.elsewhere
                                  : kernel.unseen);
            if (!views.complete) memory_.all_written();
            for (int32_t i = 0; i < views.writes; ++i) memory_.known(reinterpret_cast<uint64_t>(views.written[i].data));
        } catch (const std::bad_alloc&) {
            memory_.all_written();
            return;
        }
    }
    if (views.writes == 0) return;
    OpEvent event = event_of(*op, launch.queue);
    event.inputs = views.read;
    event.input_count = views.reads;
    event.outputs = views.written;
    event.output_count = views.writes;
    event.infinite_scalar = fills;
    event.launches = launch.launches;
    sink_.op_end(event);
}

void KernelEvents::before_call(const LibraryCall& call) noexcept {
    if (call.captured) return;
    Views views;
    {
        const std::lock_guard lock(mutex_);
        try {
            for (int i = 0; i < call.count; ++i) memory_.has_type(call.buffers[i].address, call.buffers[i].dtype);
            for (int i = 0; i < call.count; ++i) {
                const LibraryCall::Buffer& buffer = call.buffers[i];
                uint64_t end = ~uint64_t(0);
                for (int k = 0; k < call.count; ++k) {
                    if (call.buffers[k].address > buffer.address) end = std::min(end, call.buffers[k].address);
                }
                add_unknown(views, buffer.address, buffer.dtype, end);
            }
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    look_at_unknown(views, call.queue);
}

void KernelEvents::after_call(const LibraryCall& call) noexcept {
    Views views;
    const OpInfo* op = nullptr;
    {
        const std::lock_guard lock(mutex_);
        try {
            if (call.captured) {
                ++captured_;
                return;
            }
            op = &call_op(call.name, OpClass::Other);
            views.complete = call.complete;
            for (int i = 0; i < call.count; ++i) {
                const LibraryCall::Buffer& buffer = call.buffers[i];
                if (buffer.read) view(views, buffer, false);
                if (buffer.written && !view(views, buffer, true)) views.complete = false;
            }
            ++(views.complete ? calls_scanned_ : views.writes > 0 ? calls_partly_ : calls_elsewhere_);
            if (call.scratch != 0) memory_.written(call.scratch);
            if (!views.complete) memory_.all_written();
            for (int32_t i = 0; i < views.writes; ++i) memory_.known(reinterpret_cast<uint64_t>(views.written[i].data));
        } catch (const std::bad_alloc&) {
            memory_.all_written();
            return;
        }
    }
    if (views.writes == 0) return;
    OpEvent event = event_of(*op, call.queue);
    event.inputs = views.read;
    event.input_count = views.reads;
    event.outputs = views.written;
    event.output_count = views.writes;
    event.scalars = call.numbers;
    event.scalar_count = call.number_count;
    event.launches = call.launches;
    sink_.op_end(event);
}

void KernelEvents::after_unknown_launch() noexcept {
    const std::lock_guard lock(mutex_);
    memory_.all_written();
}

void KernelEvents::allocated(uint64_t address, int64_t bytes, bool of_host) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        memory_.allocated(address, bytes, of_host);
    } catch (const std::bad_alloc&) {
        // Memory that is not known is not looked at.
    }
}

void KernelEvents::freed(uint64_t address) noexcept {
    const std::lock_guard lock(mutex_);
    memory_.freed(address);
}

void KernelEvents::written(uint64_t address) noexcept {
    const std::lock_guard lock(mutex_);
    memory_.written(address);
}

void KernelEvents::forget() noexcept {
    const std::lock_guard lock(mutex_);
    memory_.forget();
}

void KernelEvents::copied(const char* call, uint64_t to, uint64_t from, int64_t bytes,
                          const DeviceQueue& queue) noexcept {
    Views handed, unknown;
    const OpInfo* op = nullptr;
    {
        const std::lock_guard lock(mutex_);
        try {
            if (memory_.knows(to)) return memory_.written(to);
            const std::optional<uint64_t> buffer = memory_.beginning_of(from);
            const std::optional<DType> dtype = buffer ? memory_.type_at(*buffer) : std::nullopt;
            if (!dtype || !view(handed, from, *dtype, false)) return;
            add_unknown(unknown, *buffer, *dtype);
            op = &call_op(call, OpClass::HostRead);
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    if (handed.reads == 0) return;
    TensorView& source = handed.read[0];
    const int64_t numbers = bytes / info(source.dtype).element_bytes();
    handed.sizes[0] = source.numel = std::min(numbers, source.numel);
    if (source.numel == 0) return;
    look_at_unknown(unknown, queue);
    OpEvent event = event_of(*op, queue);
    event.inputs = handed.read;
    event.input_count = 1;
    sink_.op_end(event);
}

KernelEvents::Counts KernelEvents::counts() const {
    Counts counts;
    const std::lock_guard lock(mutex_);
    counts.captured = captured_;
    counts.scanned = calls_scanned_;
    counts.partly = calls_partly_;
    counts.elsewhere = calls_elsewhere_;
    for (const auto& [symbol, kernel] : kernels_) {
        counts.scanned += kernel.scanned;
        counts.partly += kernel.partly;
        counts.elsewhere += kernel.elsewhere;
        if (kernel.unseen > 0) counts.unseen[kernel.op.name] += kernel.unseen;
    }
    if (others_.unseen > 0) counts.unseen[others_.op.name] += others_.unseen;
    return counts;
}

}  // namespace numsan
