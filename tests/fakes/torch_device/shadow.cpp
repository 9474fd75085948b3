// Operators on shadows: twins of device tensors, the boxed fallback, and what is handed to the stream afterwards.
#include <ATen/EmptyTensor.h>
#include <ATen/core/stack.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "device.h"

namespace fakegpu {
namespace {

using c10::IValue;

void copy_flags(c10::TensorImpl& to, const at::Tensor& from) {
    if (from.unsafeGetTensorImpl()->is_wrapped_number()) to.set_wrapped_number(true);
    if (from.is_conj()) to._set_conj(true);
    if (from.is_neg()) to._set_neg(true);
}

at::Tensor tensor_over(c10::intrusive_ptr<c10::StorageImpl> storage, const at::Tensor& like) {
    auto impl = c10::make_intrusive<c10::TensorImpl>(c10::Storage(std::move(storage)),
                                                     c10::DispatchKeySet(c10::DispatchKey::CPU), like.dtype());
    impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    copy_flags(*impl, like);
    return at::Tensor(std::move(impl));
}

c10::DispatchKeySet above_backends() {
    using c10::DispatchKey;
    return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
           c10::DispatchKeySet({DispatchKey::Fake, DispatchKey::Python, DispatchKey::PythonTLSSnapshot,
                                DispatchKey::PythonDispatcher, DispatchKey::PreDispatch, DispatchKey::Functionalize,
                                DispatchKey::FuncTorchDynamicLayerFrontMode, DispatchKey::FuncTorchDynamicLayerBackMode,
                                DispatchKey::TESTING_ONLY_GenericMode});
}

/// Operators whose result's size, or result, the host needs, so that a GPU's kernel waits for the stream.
bool waits(const c10::FunctionSchema& schema) {
    static const std::unordered_set<std::string_view> names = {
        "aten::nonzero",  "aten::masked_select",     "aten::_unique",
        "aten::_unique2", "aten::unique_dim",        "aten::unique_consecutive",
        "aten::bincount", "aten::repeat_interleave", "aten::_ctc_loss"};
    if (names.count(schema.name()) != 0) return true;
    for (const auto& result : schema.returns()) {
        const auto kind = result.type()->kind();
        if (kind == c10::TypeKind::NumberType || kind == c10::TypeKind::BoolType || kind == c10::TypeKind::IntType)
            return true;
    }
    return false;
}

/// Operators that take operands of another device, on a GPU too.
bool mixes_devices(const c10::FunctionSchema& schema) {
    static const std::unordered_set<std::string_view> names = {"aten::index",         "aten::index_put",
                                                               "aten::index_put_",    "aten::_index_put_impl_",
                                                               "aten::_unsafe_index", "aten::_unsafe_index_put"};
    return names.count(schema.name()) != 0;
}

/// Statistics that are written although the schema does not say so.
bool writes_silently(const c10::FunctionSchema& schema, const c10::Argument& argument) {
    return schema.name() == "aten::native_batch_norm" &&
           (argument.name() == "running_mean" || argument.name() == "running_var");
}

/// One call of an operator: its device tensors with their twins, and the way back.
class Call {
  public:
    explicit Call(const c10::OperatorHandle& op) : schema_(op.schema()) {}

    void to_shadow(IValue& value, const c10::Argument& argument) {
        const bool written = (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) ||
                             writes_silently(schema_, argument);
        if (value.isTensor()) {
            value = replaced(value.toTensor(), written);
        } else if (value.isTensorList()) {
            auto list = c10::List<at::Tensor>();
            for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replaced(tensor, written));
            value = std::move(list);
        } else if (value.isOptionalTensorList()) {
            auto list = c10::List<std::optional<at::Tensor>>();
            for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
                list.push_back(tensor ? std::optional(replaced(*tensor, written)) : std::nullopt);
            value = std::move(list);
        } else if (value.isDevice() && value.toDevice().type() == kType) {
            asked_ = value.toDevice();
            value = c10::Device(c10::kCPU);
        } else if (value.isGenerator() && value.toGenerator().device().type() == kType) {
            value = cpu_generator(value.toGenerator());
        }
    }

    c10::Device device() const {
        if (device_) return *device_;
        return asked_ && asked_->has_index() ? *asked_ : c10::Device(kType, current_device());
    }

    void check_devices() const {
        if (other_ && device_ && *other_ != *device_ && !mixes_devices(schema_)) {
            TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
                        device_->str(), " and ", other_->str(), "!");
        }
    }

    /// What was written is the stream's work now, even if the operator gave up half-way.
    void publish_written(Batch& batch) const {
        for (const Pair& pair : pairs_)
            if (pair.written) publish(pair.tensor, pair.twin, batch);
    }

    void to_device(IValue& value, Batch& batch) {
        if (value.isTensor()) {
            value = original(value.toTensor(), batch);
        } else if (value.isTensorList()) {
            auto list = c10::List<at::Tensor>();
            for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(original(tensor, batch));
            value = std::move(list);
        }
    }

  private:
    struct Pair {
        at::Tensor twin, tensor;
        bool written;
    };
    struct Storages {
        const c10::StorageImpl* state;
        c10::Storage storage;
    };

    at::Tensor replaced(const at::Tensor& tensor, bool written) {
        if (!tensor.defined()) return tensor;
        if (tensor.device().type() != kType) {
            if (tensor.dim() > 0) other_ = tensor.device();
            return tensor;
        }
        if (!device_) device_ = tensor.device();
        if (tensor.device() != *device_) other_ = tensor.device();
        pairs_.push_back({twin(tensor), tensor, written});
        return pairs_.back().twin;
    }

    at::Tensor original(const at::Tensor& result, Batch& batch) {
        if (!result.defined() || !result.is_cpu()) return result;
        TORCH_CHECK(result.layout() == c10::kStrided, "fakegpu has no ", result.layout(), " tensors");
        for (const Pair& pair : pairs_)
            if (pair.twin.is_same(result)) return pair.tensor;
        return over(storage_for(result, batch), result);
    }

    /// The device's storage behind a CPU result: an argument's if it is a view of that, else a new one with its bytes.
    c10::Storage storage_for(const at::Tensor& result, Batch& batch) {
        const c10::StorageImpl* state = result.storage().unsafeGetStorageImpl();
        for (const Pair& pair : pairs_)
            if (pair.twin.storage().unsafeGetStorageImpl() == state) return pair.tensor.storage();
        for (const Storages& made : made_)
            if (made.state == state) return made.storage;
        const size_t bytes = state->nbytes();
        auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                             allocator()->allocate(bytes), allocator(), true);
        if (bytes > 0) {
            const Block* block = block_of(storage);
            std::memcpy(block->shadow, state->data(), bytes);
            batch.add(block->memory, block->shadow, bytes);
        }
        kept_.push_back(result);
        made_.push_back({state, storage});
        return storage;
    }

    static at::Tensor over(c10::Storage storage, const at::Tensor& result) {
        auto impl = c10::make_intrusive<c10::TensorImpl>(
            std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), result.dtype());
        impl->set_sizes_and_strides(result.sizes(), result.strides(), result.storage_offset());
        copy_flags(*impl, result);
        return at::Tensor(std::move(impl));
    }

    const c10::FunctionSchema& schema_;
    std::optional<c10::Device> device_, other_, asked_;  // of tensors, of tensors elsewhere, as an argument
    std::vector<Pair> pairs_;
    std::vector<Storages> made_;
    std::vector<at::Tensor> kept_;  // so that no two results share an address
};

}  // namespace

static const c10::DispatchKeySet& hidden() {
    static const c10::DispatchKeySet keys = above_backends();
    return keys;
}
Quiet::Quiet() : keys(hidden()) {}

at::Tensor twin(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() != kType) return tensor;
    const Block* block = block_of(tensor.storage());
    if (block != nullptr) return tensor_over(block->state, tensor);
    return tensor_over(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                             c10::GetCPUAllocator(), /*resizable=*/true),
                       tensor);
}

at::Tensor device_view(const at::Tensor& tensor) {
    const c10::DataPtr& data = tensor.storage().data_ptr();
    return tensor_over(
        c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
                                              c10::DataPtr(data.get(), c10::kCPU), nullptr, false),
        tensor);
}

/// The storage gets a block with the bytes of `state`.
static void take(const c10::Storage& storage, const void* state, size_t kept, size_t bytes) {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr data = allocator()->allocate(bytes);
    if (data) {
        const auto* block = static_cast<const Block*>(data.get_context());
        std::memcpy(block->shadow, state, kept);
        Batch batch;
        batch.add(block->memory, block->shadow, kept);
        std::move(batch).submit(current_stream(block->device));
    }
    storage.set_data_ptr_noswap(std::move(data));
    storage.set_nbytes(bytes);
}

void resize_storage(const c10::Storage& storage, size_t bytes) {
    const Block* block = block_of(storage);
    const size_t kept = block != nullptr ? std::min(storage.nbytes(), bytes) : 0;
    const c10::intrusive_ptr<c10::StorageImpl> state = block != nullptr ? block->state : nullptr;
    take(storage, state ? state->data() : nullptr, kept, bytes);
}

void publish(const at::Tensor& tensor, const at::Tensor& twin, Batch& batch) {
    const c10::Storage& storage = tensor.storage();
    const Block* block = block_of(storage);
    const c10::StorageImpl* state = twin.storage().unsafeGetStorageImpl();
    if (state->data() != (block != nullptr ? block->shadow : nullptr)) {  // the operator let it grow
        const at::Tensor alive = twin;
        take(storage, state->data(), state->nbytes(), state->nbytes());
        block = block_of(storage);
    }
    if (tensor.sizes() != twin.sizes() || tensor.strides() != twin.strides() ||
        tensor.storage_offset() != twin.storage_offset()) {
        tensor.unsafeGetTensorImpl()->set_sizes_and_strides(twin.sizes(), twin.strides(), twin.storage_offset());
    }
    if (block != nullptr) batch.add(*block, twin);
}

void run_on_shadow(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                   const std::function<void(torch::jit::Stack*)>& execute) {
    const auto& schema = op.schema();
    const auto& arguments = schema.arguments();
    const size_t bottom = stack->size() - arguments.size();
    Call call(op);
    for (size_t i = 0; i < arguments.size(); ++i) call.to_shadow((*stack)[bottom + i], arguments[i]);
    call.check_devices();
    const c10::DeviceGuard device(call.device());
    const c10::Stream stream = current_stream(call.device().index());
    bind(stream.device_index());
    if (waits(schema)) synchronize(stream);
    Batch batch;
    try {
        const Quiet quiet;
        execute(stack);
    } catch (...) {
        call.publish_written(batch);
        std::move(batch).submit(stream);
        throw;
    }
    call.publish_written(batch);
    for (size_t i = bottom; i < stack->size(); ++i) call.to_device((*stack)[i], batch);
    const std::vector<const char*> kernels = kernels_of(op);
    for (size_t i = 0; launches_kernels() && i + 1 < kernels.size(); ++i) launch(stream, kernels[i], 1, [] {});
    std::move(batch).submit(stream, kernels.back());
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    run_on_shadow(op, stack,
                  [&op](torch::jit::Stack* s) { op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), s); });
}

}  // namespace fakegpu
