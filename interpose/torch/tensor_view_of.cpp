#include "interpose/torch/tensor_view_of.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <exception>
#include <string>

namespace numsan {
namespace {

using c10::DispatchKey;

/// Tensors that carry one of these are not plain memory. Functionality keys only: a backend bit would match every
/// tensor.
const c10::DispatchKeySet kOpaque({DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::Functionalize,
                                   DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
                                   DispatchKey::Batched, DispatchKey::ZeroTensor, DispatchKey::Sparse,
                                   DispatchKey::SparseCsr, DispatchKey::NestedTensor, DispatchKey::Quantized});

/// False for every type of a torch that has no such type.
template <class Type>
constexpr bool is_e8m0(Type type) {
    if constexpr (requires { Type::Float8_e8m0fnu; }) {
        return type == Type::Float8_e8m0fnu;
    } else {
        return false;
    }
}

bool dtype_of(c10::ScalarType type, DType& dtype) {
    switch (type) {
        case c10::ScalarType::Double: dtype = DType::Float64; return true;
        case c10::ScalarType::Float: dtype = DType::Float32; return true;
        case c10::ScalarType::Half: dtype = DType::Float16; return true;
        case c10::ScalarType::BFloat16: dtype = DType::BFloat16; return true;
        case c10::ScalarType::Float8_e4m3fn: dtype = DType::Float8E4M3Fn; return true;
        case c10::ScalarType::Float8_e5m2: dtype = DType::Float8E5M2; return true;
        case c10::ScalarType::Float8_e4m3fnuz: dtype = DType::Float8E4M3Fnuz; return true;
        case c10::ScalarType::Float8_e5m2fnuz: dtype = DType::Float8E5M2Fnuz; return true;
        case c10::ScalarType::ComplexHalf: dtype = DType::Complex32; return true;
        case c10::ScalarType::ComplexFloat: dtype = DType::Complex64; return true;
        case c10::ScalarType::ComplexDouble: dtype = DType::Complex128; return true;
        default: dtype = DType::Float8E8M0Fnu; return is_e8m0(type);
    }
}

const c10::DispatchKeySet kSparse({DispatchKey::Sparse, DispatchKey::SparseCsr});
const c10::DispatchKeySet kTransformed({DispatchKey::Functionalize, DispatchKey::FuncTorchBatched,
                                        DispatchKey::FuncTorchGradWrapper, DispatchKey::Batched});

}  // namespace

const char* why_not_viewed(const at::Tensor& tensor) {
    const c10::DispatchKeySet keys = tensor.unsafeGetTensorImpl()->key_set();
    if (keys.has(DispatchKey::Meta)) return "meta";  // fake tensors, too: nothing is computed
    if (keys.has_any(kTransformed)) return "functorch";
    if (keys.has(DispatchKey::NestedTensor)) return "nested";
    if (keys.has(DispatchKey::Python)) return "wrapper";
    if (keys.has_any(kSparse)) return "sparse";
    if (keys.has(DispatchKey::Quantized)) return "quantized";
    if (!keys.has(DispatchKey::CPU) && !keys.has(DispatchKey::CUDA) && !keys.has(DispatchKey::PrivateUse1))
        return "device";
    return "no storage";  // zero tensors, layouts of one backend's own
}

const void* storage_of(const void* impl) {
    const auto* tensor = static_cast<const c10::TensorImpl*>(impl);
    if (tensor->key_set().has_any(kOpaque) || !tensor->has_storage()) return nullptr;
    return tensor->unsafe_storage().unsafeGetStorageImpl();
}

uint32_t kin_of(const void* impl) try {
    const auto borrowed = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
        static_cast<c10::TensorImpl*>(const_cast<void*>(impl)));
    const at::Tensor tensor(borrowed);
    if (!tensor.requires_grad() || tensor.is_leaf()) return 0;
    uint32_t kin = 0;
    if (tensor.is_view() && tensor._base().is_leaf()) kin |= kViewOfParameter;
    const torch::autograd::Node* node = torch::autograd::impl::grad_fn_unsafe(tensor);
    if (node != nullptr && node->name().find("CompiledFunction") != std::string::npos) kin |= kFromCompiled;
    return kin;
} catch (const std::exception&) {
    return 0;  // a view whose base is gone, a node written in Python whose name cannot be had
}

bool view_of(const at::Tensor& tensor, uint32_t extra_flags, TensorView& view) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const c10::DispatchKeySet keys = impl->key_set();
    const bool cpu = keys.has(DispatchKey::CPU);
    const bool cuda = keys.has(DispatchKey::CUDA);
    if (!(cpu || cuda || keys.has(DispatchKey::PrivateUse1))) return false;
    if (keys.has_any(kOpaque) || impl->layout() != c10::kStrided) return false;
    if (!impl->has_storage() || impl->has_symbolic_sizes_strides()) return false;
    const c10::Storage& storage = impl->unsafe_storage();
    const c10::StorageImpl* storage_impl = storage.unsafeGetStorageImpl();
    if (storage_impl == nullptr) return false;

    // No access that a storage may refuse, or that would copy a lazily copied one.
    const char* base =
        static_cast<const char*>(const_cast<c10::StorageImpl*>(storage_impl)->_mutable_data_ptr_no_checks().get());
    view.storage = storage_impl;
    view.storage_data = base;
    view.storage_bytes = static_cast<int64_t>(storage_impl->sym_nbytes().maybe_as_int().value_or(0));
    view.impl = impl;
    view.numel = impl->numel();
    view.sizes = impl->sizes().data();
    view.strides = impl->strides().data();
    view.ndim = static_cast<int16_t>(impl->dim());
    view.device = cpu ? Device::Cpu : cuda ? Device::Cuda : Device::Other;
    view.device_index = cpu ? 0 : impl->device().index();
    view.flags = extra_flags;
    if (impl->requires_grad()) view.flags |= kRequiresGrad;
    if (impl->is_wrapped_number()) view.flags |= kNumber;
    view.data = nullptr;
    view.dtype = DType::Float32;  // of what is not kScannable it says nothing
    if (dtype_of(c10::typeMetaToScalarType(impl->dtype()), view.dtype)) {
        if (base != nullptr) {
            view.data = base + impl->storage_offset() * static_cast<int64_t>(info(view.dtype).element_bytes());
        }
        if (base != nullptr || view.numel == 0) view.flags |= cpu ? kScannable : kLater;
    }
    return true;
}

}  // namespace numsan
