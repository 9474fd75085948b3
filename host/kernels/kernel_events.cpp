#include "host/kernels/kernel_events.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "host/ops/op_traits.h"
#include "host/options/one_line.h"

namespace numsan {
namespace {

using Use = KernelParameter::Use;

constexpr size_t kMostKernels = 1 << 13;  ///< names of further ones are not looked into

uint64_t this_thread_number() noexcept {
    static constinit std::atomic<uint64_t> last{0};
    static thread_local constinit uint64_t mine = 0;
    if (mine == 0) mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
    return mine;
}

}  // namespace

OpInfo KernelEvents::new_op(const std::string& name, OpClass op_class) {
    const bool mutates = op_class != OpClass::HostRead;
    return {names_.emplace_back(name).c_str(), "", op_class, mutates, next_id_++, IntegerOp::None};
}

static std::string_view shown_symbol(const char* symbol) { return symbol != nullptr ? symbol : "(unnamed)"; }

void KernelEvents::meet(const char* symbol) {
    const std::string_view name = shown_symbol(symbol);
    {
        const std::lock_guard lock(mutex_);
        if (kernels_.find(name) != kernels_.end() || kernels_.size() >= kMostKernels) return;
    }
    Kernel made;
    std::optional<KernelSignature> named = kernel_signature(symbol);
    made.typed = named.has_value();
    if (named) made.signature = std::move(*named);
    if (parameters_of_ != nullptr && (!made.typed || made.signature.has(Use::Unknown))) add_stub(symbol, made);
    if (made.signature.name.empty()) made.signature.name = name;
    const std::lock_guard lock(mutex_);
    if (kernels_.find(name) != kernels_.end()) return;  // another thread launched it meanwhile
    add_declared(name, made);
    made.op = new_op(made.signature.name + std::string(kKernelMark), OpClass::Other);
    kernels_.emplace(name, std::move(made));
}

void KernelEvents::add_stub(const char* symbol, Kernel& kernel) {
    if (time_left_.load(std::memory_order_relaxed) <= 0) {
        unread_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::optional<StubParameters> stub = parameters_of_(symbol);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
    time_left_.fetch_sub(taken.count(), std::memory_order_relaxed);
    if (!stub || (kernel.typed ? stub->count != kernel.signature.count : !can_read_arguments())) return;
    // Another binary may have a kernel with the same C name, and other arguments.
    for (KernelParameter& part : stub->parts) part.declared = !kernel.typed;
    kernel.typed = true;
    kernel.signature.count = stub->count;
    kernel.signature.parameters = std::move(stub->parts);
}

KernelEvents::Kernel& KernelEvents::kernel_of(const char* symbol) {
    const auto known = kernels_.find(shown_symbol(symbol));
    return known != kernels_.end() ? known->second : others_;
}

/// Why a kernel cannot be as it is described: it has no such parameter, or numbers of another type. Empty: it can.
static std::string contradiction(const std::vector<KernelParameter>& declared, const KernelSignature& signature) {
    const std::string& shown = signature.with_parameters.empty() ? signature.name : signature.with_parameters;
    const std::string kernel = "`" + one_line(shown, 200) + "`";
    for (const KernelParameter& one : declared) {
        const std::string said = "argument " + std::to_string(one.argument);
        if (one.argument >= signature.count) return "there is no " + said + " in " + kernel;
        for (const KernelParameter& known : signature.parameters) {
            const bool same = known.argument == one.argument && known.offset == one.offset;
            const bool numbers = known.use == Use::Reads || known.use == Use::Writes;
            if (same && numbers && known.dtype != one.dtype)
                return said + " of " + kernel + " is " + info(known.dtype).name + ", not " + info(one.dtype).name;
        }
    }
    return "";
}

void KernelEvents::add_declared(std::string_view symbol, Kernel& kernel) {
    KernelSignature& signature = kernel.signature;
    for (const std::string_view name :
         {symbol, std::string_view(signature.with_parameters), std::string_view(signature.name)}) {
        const auto* const declared = manifest_.find(name);
        if (declared == nullptr) continue;
        if (std::string why = kernel.typed ? contradiction(*declared, signature) : ""; !why.empty()) {
            contradicted_.emplace(name, std::move(why));
            continue;
        }
        met_.insert(std::string(name));
        std::vector<KernelParameter>& all = signature.parameters;
        const auto is_declared = [&](const KernelParameter& known) {
            return std::any_of(declared->begin(), declared->end(),
                               [&](const KernelParameter& one) { return one.argument == known.argument; });
        };
        all.erase(std::remove_if(all.begin(), all.end(), is_declared), all.end());
        all.insert(all.end(), declared->begin(), declared->end());
        kernel.typed = true;
        return;
    }
}

void KernelEvents::add_unknown(EventViews& views, uint64_t address, DType dtype, uint64_t end) {
    if (memory_.is_known(address) || views.writes_at(address)) return;
    const bool shown = views.add(memory_, address, dtype, false, end) && views.add(memory_, address, dtype, true, end);
    if (shown) memory_.known(address);
}

void KernelEvents::look_at_unknown(const EventViews& views, const DeviceQueue& queue) noexcept {
    if (views.writes == 0) return;
    OpEvent event = event_of(contents_, queue);
    views.show_in(event);
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
    EventViews views;
    try {
        meet(launch.symbol);
    } catch (const std::bad_alloc&) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        try {
            const Kernel& kernel = kernel_of(launch.symbol);
            if (!kernel.typed || launch.arguments == nullptr || launch.captured) return;
            // Where one of its buffers begins another ends.
            const std::vector<GivenBuffer> buffers = buffers_of(launch, kernel.signature);
            for (const auto& [address, parameter] : buffers) {
                parameter->use == Use::Others ? memory_.has_integers(address)
                                              : memory_.has_type(address, parameter->dtype);
            }
            for (const auto& [address, parameter] : buffers) {
                if (parameter->use != Use::Others)
                    add_unknown(views, address, parameter->dtype, end_of(buffers, address));
            }
        } catch (const std::bad_alloc&) {
            return;  // a bad value that was there before may be taken for one of this kernel's
        }
    }
    look_at_unknown(views, launch.queue);
}

void KernelEvents::after_launch(const SeenLaunch& launch) noexcept {
    EventViews views;
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
            std::vector<GivenBuffer> buffers;
            if (readable) {
                buffers = buffers_of(launch, kernel.signature);
                fills = gives_infinity(launch, kernel.signature);
            }
            for (const auto& [address, parameter] : buffers) {
                if (parameter->use == Use::Others) {
                    memory_.written(address);
                    continue;
                }
                const bool writes = parameter->use == Use::Writes;
                const uint64_t end = end_of(buffers, address);
                // It may go on beyond a place that it is given, too: a neighbour in the same buffer.
                if (writes) memory_.goes_on(address, end);
                const uint64_t last = std::min(end, end_of_count(address, *parameter));
                views.add(memory_, address, parameter->dtype, false, last);  // what it may write it may read, too
                if (writes && !views.add(memory_, address, parameter->dtype, true, last)) views.complete = false;
            }
            const bool told = readable && kernel.signature.has(Use::Writes);
            ++(views.complete     ? kernel.scanned
               : views.writes > 0 ? kernel.partly
               : told             ? kernel.elsewhere
                                  : kernel.unseen);
            if (!views.complete) memory_.all_written();
            for (const auto& [address, parameter] : buffers) {  // of one that was looked at in part no more is known
                if (parameter->count == 0 && views.writes_at(address)) memory_.known(address);
            }
        } catch (const std::bad_alloc&) {
            memory_.all_written();
            return;
        }
    }
    if (views.writes == 0) return;
    OpEvent event = event_of(*op, launch.queue);
    views.show_in(event);
    event.infinite_scalar = fills;
    event.launches = launch.launches;
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
    EventViews handed, unknown;
    const OpInfo* op = nullptr;
    {
        const std::lock_guard lock(mutex_);
        try {
            if (memory_.knows(to)) return memory_.written(to);
            const std::optional<uint64_t> buffer = memory_.beginning_of(from);
            const std::optional<DType> dtype = buffer ? memory_.type_at(*buffer) : std::nullopt;
            if (!dtype || !handed.add(memory_, from, *dtype, false)) return;
            add_unknown(unknown, *buffer, *dtype);
            op = &call_op(call, OpClass::HostRead);
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    if (handed.reads == 0) return;
    TensorView& source = handed.read[0];
    const int64_t numbers = bytes / info(source.dtype).element_bytes();
    const int64_t size = source.numel = std::min(numbers, source.numel);
    source.sizes = &size;
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
    counts.unread = unread_.load(std::memory_order_relaxed);
    counts.scanned = calls_scanned_;
    counts.partly = calls_partly_;
    counts.elsewhere = calls_elsewhere_;
    counts.unexplained = calls_unexplained_;
    counts.unseen_calls = calls_unseen_;
    for (const std::string& symbol : manifest_.symbols()) {
        if (met_.contains(symbol)) continue;
        const auto why = contradicted_.find(symbol);
        counts.unmet.emplace_back(symbol, why != contradicted_.end() ? why->second : "");
    }
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
