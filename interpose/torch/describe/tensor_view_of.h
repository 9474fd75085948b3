// at::Tensor -> TensorView. Asks the key set first: wrapper, sparse, functorch and fake tensors are never asked for
// sizes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/tensor_view.h"

namespace numsan {

/// Tensors that carry one of these are not plain memory. Functionality keys only: a backend bit would match every
/// tensor.
inline constexpr c10::DispatchKeySet kOpaque({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
                                              c10::DispatchKey::Functionalize, c10::DispatchKey::FuncTorchBatched,
                                              c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Batched,
                                              c10::DispatchKey::ZeroTensor, c10::DispatchKey::Sparse,
                                              c10::DispatchKey::SparseCsr, c10::DispatchKey::NestedTensor,
                                              c10::DispatchKey::Quantized});
/// As constants: asked for every tensor of every op.
inline constexpr c10::DispatchKeySet kOnCpu(c10::DispatchKey::CPU);
inline constexpr c10::DispatchKeySet kOnCuda(c10::DispatchKey::CUDA);
inline constexpr c10::DispatchKeySet kOnOther(c10::DispatchKey::PrivateUse1);

/// One word on the path of every op: `keys` has those of all operands.
inline bool may_touch_device(c10::DispatchKeySet keys) { return keys.has_all(kOnCuda) || keys.has_all(kOnOther); }

/// False for every type of a torch that has no such type.
template <class Type>
constexpr bool is_e8m0(Type type) {
    if constexpr (requires { Type::Float8_e8m0fnu; }) {
        return type == Type::Float8_e8m0fnu;
    } else {
        return false;
    }
}

constexpr bool dtype_of(c10::ScalarType type, DType& dtype) {
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

/// Of torch's integer types those whose elements are looked at.
constexpr IntegerType integer_type_of(c10::ScalarType type) {
    switch (type) {
        case c10::ScalarType::Bool: return IntegerType::Bool;
        case c10::ScalarType::Byte: return IntegerType::UInt8;
        case c10::ScalarType::Char: return IntegerType::Int8;
        case c10::ScalarType::Short: return IntegerType::Int16;
        case c10::ScalarType::Int: return IntegerType::Int32;
        case c10::ScalarType::Long: return IntegerType::Int64;
        default: return IntegerType::None;
    }
}

/// What is asked of a type for every tensor of every op, by number of torch's type.
struct TypeFacts {
    DType dtype;  ///< of what is not scannable it says nothing
    IntegerType integer;
    uint8_t element_bytes;  ///< 0: of what is not known
};
inline constexpr auto kTypes = [] {
    std::array<TypeFacts, size_t(c10::ScalarType::NumOptions)> types{};
    for (size_t i = 0; i < types.size(); ++i) {
        const auto type = static_cast<c10::ScalarType>(i);
        const bool known = dtype_of(type, types[i].dtype);
        types[i].integer = integer_type_of(type);
        types[i].element_bytes =
            known ? static_cast<uint8_t>(info(types[i].dtype).element_bytes()) : info(types[i].integer).bytes;
    }
    return types;
}();

/// Fills `view`. False for tensors whose storage must not be touched (sparse, wrapper subclasses, meta, no storage);
/// for those the view is left alone. For integer tensors the view is filled without kScannable.
inline bool view_of(const at::Tensor& tensor, uint32_t extra_flags, TensorView& view) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const c10::DispatchKeySet keys = impl->key_set();
    const bool cpu = keys.has_all(kOnCpu);
    const bool cuda = !cpu && keys.has_all(kOnCuda);
    if (!(cpu || cuda || keys.has_all(kOnOther))) return false;
    if (keys.has_any(kOpaque) || impl->layout() != c10::kStrided || impl->has_symbolic_sizes_strides()) return false;
    // What has no storage has a null one here; the public question is a virtual call.
    const c10::StorageImpl* storage_impl = impl->unsafe_storage().unsafeGetStorageImpl();
    if (storage_impl == nullptr) return false;

    uint32_t flags = extra_flags;
    if (impl->requires_grad()) flags |= kRequiresGrad;
    if (impl->is_wrapped_number()) flags |= kNumber;
    // No access that a storage may refuse, or that would copy a lazily copied one.
    const char* base =
        static_cast<const char*>(const_cast<c10::StorageImpl*>(storage_impl)->_mutable_data_ptr_no_checks().get());
    const auto type = static_cast<size_t>(c10::typeMetaToScalarType(impl->dtype()));
    const TypeFacts facts = type < kTypes.size() ? kTypes[type] : TypeFacts{DType::Float32, IntegerType::None, 0};
    view.data = nullptr;
    if (facts.element_bytes != 0) {
        if (base != nullptr) view.data = base + impl->storage_offset() * facts.element_bytes;
        if (facts.integer == IntegerType::None && (base != nullptr || impl->numel() == 0))
            flags |= cpu ? kScannable : kLater;
    }
    view.storage = storage_impl;
    view.storage_data = base;
    view.impl = impl;
    view.storage_bytes = static_cast<int64_t>(storage_impl->sym_nbytes().maybe_as_int().value_or(0));
    view.numel = impl->numel();
    view.sizes = impl->sizes().data();
    view.strides = impl->strides().data();
    view.flags = flags;
    view.ndim = static_cast<int16_t>(impl->dim());
    view.device_index = cpu ? 0 : impl->device().index();
    view.dtype = facts.dtype;
    view.integer = facts.integer;
    view.device = cpu ? Device::Cpu : cuda ? Device::Cuda : Device::Other;
    return true;
}

/// Why view_of refused a tensor: a literal, a reason of the report's coverage.skipped.
const char* why_not_viewed(const at::Tensor& tensor);

/// Identity of a live tensor's storage, null when it has none.
const void* storage_of(const void* impl);

/// Identity of a live leaf's gradient as it is at this moment, null when it has none. Takes no reference.
const void* gradient_of(const void* impl);

/// Bits of AutogradFact for a live tensor.
uint32_t autograd_facts_of(const void* impl, bool may_wait);

}  // namespace numsan
