#include "interpose/torch/hold/forward_calls.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/torch/hold/held_call.h"
#include "interpose/torch/hold/tensor_copy.h"

namespace numsan {
namespace {

/// A tensor that may die: enough to read it again while its storage lives and was not written.
struct Weak {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    c10::VariableVersion version;
    uint32_t written;  ///< the version then
    bool versioned;    ///< inference tensors count no versions
    c10::SmallVector<int64_t, 5> sizes, strides;
    int64_t offset;
    c10::ScalarType type;
    c10::DispatchKey key;  ///< of its device
    bool requires_grad, conjugated, negated;
};

struct Slot {
    const Operator* op = nullptr;
    uint64_t thread = 0;
    uint64_t sequence = ~uint64_t(0);
    /// Tensors are undefined here, and in `tensors` in the same order.
    c10::SmallVector<c10::IValue, 6> arguments, results;
    std::vector<Weak> tensors;
};

struct Ring {
    static constexpr size_t kSlots = 1 << 13;
    std::mutex mutex;  ///< only ever tried: a forked child may find it taken for good
    std::vector<Slot> slots{kSlots};
};

constexpr size_t kThreads = 64;
std::atomic<Ring*> g_rings[kThreads];
int64_t g_most_bytes = 0;

/// Stands for what is not kept: libraries' own objects.
c10::IValue left_out() { return c10::IValue::uninitialized(); }

bool holds_no_tensor(const c10::IValue& value) {
    return value.isNone() || value.isInt() || value.isDouble() || value.isBool() || value.isComplexDouble() ||
           value.isString() || value.isDevice() || value.isIntList() || value.isDoubleList() || value.isBoolList();
}

Weak weak(const at::Tensor& tensor) {
    c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
    const bool versioned = impl->version_counter().enabled();
    return {c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(c10::raw::intrusive_ptr::make_weak(storage)),
            impl->version_counter(),
            versioned ? impl->version_counter().current_version() : 0,
            versioned,
            {impl->sizes().begin(), impl->sizes().end()},
            {impl->strides().begin(), impl->strides().end()},
            impl->storage_offset(),
            tensor.scalar_type(),
            c10::computeDispatchKey(tensor.scalar_type(), c10::kStrided, tensor.device()),
            tensor.requires_grad(),
            tensor.is_conj(),
            tensor.is_neg()};
}

c10::IValue noted(const c10::IValue& value, std::vector<Weak>& tensors) {
    if (holds_no_tensor(value)) return value;
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        if (!tensor.defined()) return c10::IValue();
        if (why_not_copied(tensor) != nullptr) return left_out();
        tensors.push_back(weak(tensor));
        return at::Tensor();
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        const std::vector<at::Tensor> elements = value.toTensorVector();
        const auto cannot = [](const at::Tensor& one) { return !one.defined() || why_not_copied(one) != nullptr; };
        if (std::any_of(elements.begin(), elements.end(), cannot))
            return left_out();  // none of them: `tensors` is in step
        for (const at::Tensor& tensor : elements) {
            tensors.push_back(weak(tensor));
            list.push_back(at::Tensor());
        }
        return list;
    }
    return left_out();
}

at::Tensor again(const Weak& tensor) {
    at::Tensor made;
    c10::intrusive_ptr<c10::StorageImpl> storage = tensor.storage.lock();
    if (storage == nullptr || (tensor.versioned && tensor.version.current_version() != tensor.written)) {
        made = at::detail::empty_strided_meta(tensor.sizes, tensor.strides, tensor.type);
    } else {
        made = at::detail::make_tensor<c10::TensorImpl>(
            c10::Storage(std::move(storage)), c10::DispatchKeySet(tensor.key), c10::scalarTypeToTypeMeta(tensor.type));
        made.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes, tensor.strides, tensor.offset);
        if (tensor.conjugated) made._set_conj(true);
        if (tensor.negated) made._set_neg(true);
    }
    if (tensor.requires_grad) made.unsafeGetTensorImpl()->set_requires_grad(true);
    return made;
}

c10::IValue again(const c10::IValue& value, const std::vector<Weak>& tensors, size_t& next) {
    if (value.isTensor()) return again(tensors[next++]);
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (size_t i = value.toTensorVector().size(); i-- > 0;) list.push_back(again(tensors[next++]));
    return list;
}

}  // namespace

void hold_forward_calls(int64_t most_bytes) noexcept { g_most_bytes = most_bytes; }

void note_forward_call(const Operator& op, uint64_t thread, uint64_t sequence, c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) noexcept {
    if (HeldCall::stopped()) return;
    try {
        std::atomic<Ring*>& place = g_rings[thread % kThreads];
        Ring* ring = place.load(std::memory_order_acquire);
        if (ring == nullptr) {
            auto* made = new Ring;
            if (place.compare_exchange_strong(ring, made, std::memory_order_acq_rel)) {
                ring = made;  // lives as long as the process
            } else {
                delete made;
            }
        }
        const std::unique_lock<std::mutex> lock(ring->mutex, std::try_to_lock);
        if (!lock.owns_lock()) return;
        Slot& slot = ring->slots[sequence % Ring::kSlots];
        if (slot.thread == thread && slot.sequence == sequence) return;
        slot.op = &op;
        slot.thread = thread;
        slot.sequence = sequence;
        slot.tensors.clear();
        slot.arguments.clear();
        slot.results.clear();
        for (const c10::IValue& value : arguments) slot.arguments.push_back(noted(value, slot.tensors));
        const size_t operands = slot.tensors.size();
        for (const c10::IValue& value : results) slot.results.push_back(noted(value, slot.tensors));
        // What an op wrote in place is counted as written after it, above this hook: its operands are not what they
        // were by then, its results are.
        for (size_t i = operands; op.info.mutates && i < slot.tensors.size(); ++i) ++slot.tensors[i].written;
    } catch (const std::exception&) {
        // Out of memory: what is missing of it is not known later.
    }
}

HeldCall* keep_forward(uint64_t thread, uint64_t sequence) {
    Ring* ring = g_rings[thread % kThreads].load(std::memory_order_acquire);
    if (ring == nullptr) return nullptr;
    try {
        Slot known;
        {
            const std::unique_lock<std::mutex> lock(ring->mutex, std::try_to_lock);
            if (!lock.owns_lock()) return nullptr;
            known = ring->slots[sequence % Ring::kSlots];
        }
        if (known.op == nullptr || known.thread != thread || known.sequence != sequence) return nullptr;
        std::vector<c10::IValue> arguments, results;
        size_t next = 0;
        for (const c10::IValue& value : known.arguments) arguments.push_back(again(value, known.tensors, next));
        for (const c10::IValue& value : known.results) results.push_back(again(value, known.tensors, next));
        return HeldCall::of_past(*known.op, std::move(arguments), std::move(results), g_most_bytes);
    } catch (const std::exception&) {
        return nullptr;
    }
}

}  // namespace numsan
