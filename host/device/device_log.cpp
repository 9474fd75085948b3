#include "host/device/device_log.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace numsan {
namespace {

constexpr size_t kMaxName = 96;

constexpr size_t aligned(size_t bytes) { return (bytes + 15) / 16 * 16; }

/// Hands out the room behind a record.
class Room {
  public:
    explicit Room(DeviceEvent& event) : next_(reinterpret_cast<char*>(&event) + aligned(sizeof(DeviceEvent))) {}

    template <class T>
    T* take(size_t count) {
        T* at = reinterpret_cast<T*>(next_);
        next_ += aligned(count * sizeof(T));
        return at;
    }
    TensorView* copy(const TensorView* views, int32_t count) {
        TensorView* copies = take<TensorView>(static_cast<size_t>(count));
        for (int32_t i = 0; i < count; ++i) {
            copies[i] = views[i];
            copies[i].integer = IntegerType::None;  // the elements cannot be read through the copy
            const auto dims = static_cast<size_t>(views[i].ndim);
            int64_t* shape = take<int64_t>(2 * dims);
            std::copy_n(views[i].sizes, dims, shape);
            std::copy_n(views[i].strides, dims, shape + dims);
            copies[i].sizes = shape;
            copies[i].strides = shape + dims;
        }
        return copies;
    }
    const char* copy(const char* name) {
        const size_t length = strnlen(name, kMaxName - 1);
        char* text = take<char>(kMaxName);
        std::memcpy(text, name, length);
        text[length] = '\0';
        return text;
    }

  private:
    char* next_;
};

size_t bytes_of(const TensorView* views, int32_t count) {
    size_t bytes = aligned(static_cast<size_t>(count) * sizeof(TensorView));
    for (int32_t i = 0; i < count; ++i) bytes += aligned(2 * static_cast<size_t>(views[i].ndim) * sizeof(int64_t));
    return bytes;
}

size_t host_tensors(const TensorView* views, int32_t count) {
    return static_cast<size_t>(
        std::count_if(views, views + count, [](const TensorView& t) { return (t.flags & kScannable) != 0; }));
}

size_t operands_of_then(const OpEvent& event) {
    return static_cast<size_t>(std::count_if(event.inputs, event.inputs + event.input_count,
                                             [&](const TensorView& t) { return is_of_then(event, t); }));
}

size_t bytes_of(const OpEvent& event, const OpContext& context) {
    const size_t host = host_tensors(event.inputs, event.input_count) + host_tensors(event.outputs, event.output_count);
    return aligned(sizeof(DeviceEvent)) + bytes_of(event.inputs, event.input_count) +
           bytes_of(event.outputs, event.output_count) + aligned(host * sizeof(HostReading)) +
           aligned(operands_of_then(event) * sizeof(HostOperand)) +
           aligned(static_cast<size_t>(event.scalar_count) * sizeof(double)) +
           (context.node != nullptr ? aligned(kMaxName) : 0);
}

/// Precondition: behind `kept` there is room for the rest of bytes_of().
void fill(DeviceEvent& kept, const OpEvent& event, const OpContext& context) {
    const size_t host = host_tensors(event.inputs, event.input_count) + host_tensors(event.outputs, event.output_count);
    Room room(kept);
    kept.kind = DeviceEvent::Kind::Op;
    kept.op = event;
    kept.context = context;
    kept.inputs = room.copy(event.inputs, event.input_count);
    keep_autograd_facts(kept.inputs, event.input_count, context);
    kept.outputs = room.copy(event.outputs, event.output_count);
    kept.host = room.take<HostReading>(host);
    std::fill_n(kept.host, host, HostReading{});
    const size_t operands = operands_of_then(event);
    kept.operands = room.take<HostOperand>(operands);
    std::uninitialized_fill_n(kept.operands, operands, HostOperand{});
    auto* numbers = room.take<double>(static_cast<size_t>(event.scalar_count));
    std::copy_n(event.scalars, event.scalar_count, numbers);
    kept.op.inputs = kept.inputs;
    kept.op.outputs = kept.outputs;
    kept.op.scalars = numbers;
    kept.op.autograd_facts = nullptr;
    kept.context.autograd_facts = nullptr;
    if (context.node != nullptr) kept.context.node = room.copy(context.node);
}

size_t bytes_of(const NodeEvent& event) {
    return aligned(sizeof(DeviceEvent)) + bytes_of(event.inputs, event.input_count) +
           bytes_of(event.variable, event.variable != nullptr ? 1 : 0) + 2 * aligned(kMaxName);
}

/// The same for a node.
void fill(DeviceEvent& kept, const NodeEvent& event, const OpContext& context) {
    Room room(kept);
    kept.kind = DeviceEvent::Kind::Node;
    kept.node = event;
    kept.context = context;
    kept.inputs = room.copy(event.inputs, event.input_count);
    kept.outputs = room.copy(event.variable, event.variable != nullptr ? 1 : 0);
    kept.node.inputs = kept.inputs;
    kept.node.variable = event.variable != nullptr ? kept.outputs : nullptr;
    kept.node.name = room.copy(event.name);
    kept.context.autograd_facts = nullptr;
    if (context.node != nullptr) kept.context.node = room.copy(context.node);
}

}  // namespace

bool is_of_then(const OpEvent& event, const TensorView& input) {
    return input.device == Device::Cpu && (input.flags & kNumber) == 0 && input.storage != nullptr &&
           std::none_of(event.outputs, event.outputs + event.output_count,
                        [&](const TensorView& output) { return output.storage == input.storage; });
}

DeviceEvent* DeviceLog::reserve(size_t bytes, uint64_t numbers, uint64_t window) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if ((next_sequence_ + numbers).number - answered_.number > window) return nullptr;
    uint64_t begin = end_;
    if (begin % kBytes + bytes > kBytes) begin += kBytes - begin % kBytes;  // what is left of the ring stays unused
    if (begin + bytes - begin_ > kBytes) return nullptr;
    if (begin != end_ && kBytes - end_ % kBytes >= sizeof(DeviceEvent)) {
        // The reader finds a record without an event there.
        auto* gap = new (&ring_[end_ % kBytes]) DeviceEvent{};
        gap->bytes = 0;
    }
    auto* event = new (&ring_[begin % kBytes]) DeviceEvent{};
    event->bytes = static_cast<uint32_t>(bytes);
    event->sequence = next_sequence_;
    event->numbers = numbers;
    next_sequence_ = next_sequence_ + numbers;
    end_ = begin + bytes;
    count_.fetch_add(1, std::memory_order_release);
    return event;
}

DeviceEvent* DeviceLog::add(const OpEvent& event, const OpContext& context, uint64_t numbers,
                            uint64_t window) noexcept {
    DeviceEvent* kept = reserve(bytes_of(event, context), numbers, window);
    if (kept != nullptr) fill(*kept, event, context);
    return kept;
}

DeviceEvent* DeviceLog::keep(const DeviceEvent& event) noexcept {
    void* memory = ::operator new(event.bytes, std::nothrow);
    if (memory == nullptr) return nullptr;
    auto* kept = new (memory) DeviceEvent{};
    if (event.kind == DeviceEvent::Kind::Node) {
        fill(*kept, event.node, event.context);
    } else {
        fill(*kept, event.op, event.context);
    }
    for (int32_t i = 0; i < event.op.input_count; ++i) {  // replays find other values on the host, or none
        if (kept->inputs[i].device == Device::Cpu) kept->inputs[i].flags &= ~uint32_t(kScannable);
    }
    kept->makes_node = event.makes_node;
    kept->accumulates = event.accumulates;
    kept->made = event.made;
    kept->sequence = event.sequence;
    kept->numbers = event.numbers;
    kept->read = event.read;
    kept->handed = event.handed;
    kept->watched = event.watched;
    kept->watch = event.watch;
    kept->capture = event.capture;
    kept->governs = event.governs;
    return kept;
}

void DeviceLog::drop(const DeviceEvent* kept) noexcept {
    kept->~DeviceEvent();
    ::operator delete(const_cast<DeviceEvent*>(kept));
}

DeviceEvent* DeviceLog::add(const NodeEvent& event, const OpContext& context, uint64_t numbers,
                            uint64_t window) noexcept {
    DeviceEvent* kept = reserve(bytes_of(event), numbers, window);
    if (kept != nullptr) fill(*kept, event, context);
    return kept;
}

DeviceEvent* DeviceLog::add(DeviceEvent::Kind kind) noexcept {
    DeviceEvent* kept = reserve(aligned(sizeof(DeviceEvent)), 0, ~uint64_t(0));
    if (kept != nullptr) kept->kind = kind;
    return kept;
}

DeviceEvent* DeviceLog::front() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (begin_ == end_) return nullptr;
    uint64_t at = begin_ % kBytes;
    auto* event = reinterpret_cast<DeviceEvent*>(&ring_[at]);
    if (kBytes - at < sizeof(DeviceEvent) || event->bytes == 0) {
        begin_ += kBytes - at;
        event = reinterpret_cast<DeviceEvent*>(&ring_[0]);
    }
    return event->ready.load(std::memory_order_acquire) ? event : nullptr;
}

void DeviceLog::pop() noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto* event = reinterpret_cast<DeviceEvent*>(&ring_[begin_ % kBytes]);
    answered_ = std::max(answered_, event->sequence + event->numbers);
    delete event->look_back;
    begin_ += event->bytes;
    event->~DeviceEvent();
    count_.fetch_sub(1, std::memory_order_release);
}

void DeviceLog::forget() noexcept {
    begin_ = end_;
    answered_ = next_sequence_;
    count_.store(0, std::memory_order_release);
}

}  // namespace numsan
