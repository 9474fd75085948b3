#include "interpose/torch/hold/tensor_copy.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>

#include <cstring>

#include "interpose/torch/describe/tensor_view_of.h"

namespace numsan {
namespace {

/// Elements of `size` bytes from a strided place into a row; returns where the row ends.
char* gather(const char* from, const int64_t* sizes, const int64_t* strides, int64_t ndim, size_t size, char* to) {
    if (ndim == 0) {
        std::memcpy(to, from, size);
        return to + size;
    }
    const int64_t step = strides[0] * static_cast<int64_t>(size);
    if (ndim == 1 && strides[0] == 1) {
        const size_t row = static_cast<size_t>(sizes[0]) * size;
        std::memcpy(to, from, row);
        return to + row;
    }
    for (int64_t i = 0; i < sizes[0]; ++i) {
        if (ndim > 1) {
            to = gather(from + i * step, sizes + 1, strides + 1, ndim - 1, size, to);
        } else {
            std::memcpy(to, from + i * step, size);
            to += size;
        }
    }
    return to;
}

template <class Real>
void negate(char* at, int64_t count, int64_t first, int64_t step) {
    auto* values = reinterpret_cast<Real*>(at);
    for (int64_t i = first; i < count; i += step) values[i] = static_cast<Real>(-values[i]);
}

/// What a bit of the tensor says of all its elements: `first` and `step` count real parts.
void negate_lanes(char* at, c10::ScalarType type, int64_t numel, int64_t first, int64_t step) {
    const int64_t lanes = c10::isComplexType(type) ? 2 * numel : numel;
    switch (c10::toRealValueType(type)) {
        case c10::ScalarType::Double: return negate<double>(at, lanes, first, step);
        case c10::ScalarType::Float: return negate<float>(at, lanes, first, step);
        case c10::ScalarType::Half: return negate<c10::Half>(at, lanes, first, step);
        default: return;
    }
}

}  // namespace

const char* type_name(c10::ScalarType type) {
    switch (type) {
#define NUMSAN_HELD_TYPE(scalar, name, format) \
    case c10::ScalarType::scalar:              \
        return name;
#include "interpose/torch/hold/held_types.def"
#undef NUMSAN_HELD_TYPE
        default: return is_e8m0(type) ? "float8_e8m0fnu" : nullptr;
    }
}

const char* type_format(c10::ScalarType type) {
    switch (type) {
#define NUMSAN_HELD_TYPE(scalar, name, format) \
    case c10::ScalarType::scalar:              \
        return format;
#include "interpose/torch/hold/held_types.def"
#undef NUMSAN_HELD_TYPE
        default: return is_e8m0(type) ? "F8_E8M0" : nullptr;
    }
}

const char* why_not_copied(const at::Tensor& tensor) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const c10::DispatchKeySet keys = impl->key_set();
    if (keys.has_any(kOpaque) || impl->layout() != c10::kStrided || impl->has_symbolic_sizes_strides() ||
        impl->unsafe_storage().unsafeGetStorageImpl() == nullptr)
        return why_not_viewed(tensor);
    if (!keys.has_all(kOnCpu)) return "device";
    if (type_name(tensor.scalar_type()) == nullptr) return "element type";
    const bool negated = tensor.is_neg() || tensor.is_conj();
    const c10::ScalarType type = c10::toRealValueType(tensor.scalar_type());
    if (negated && type != c10::kDouble && type != c10::kFloat && type != c10::kHalf) return "element type";
    return nullptr;
}

int64_t bytes_of(const at::Tensor& tensor) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    return impl->has_symbolic_sizes_strides() ? 0 : impl->numel() * static_cast<int64_t>(impl->itemsize());
}

at::Tensor copy_of(const at::Tensor& tensor) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const c10::ScalarType type = tensor.scalar_type();
    at::Tensor copy = at::detail::empty_cpu(impl->sizes(), type, false, std::nullopt);
    const int64_t numel = impl->numel();
    if (numel == 0) return copy;
    // No access that would copy a lazily copied storage.
    c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
    const auto* base = static_cast<const char*>(storage->_mutable_data_ptr_no_checks().get());
    auto* to = static_cast<char*>(
        copy.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
    const size_t size = impl->itemsize();
    if (base == nullptr) {
        std::memset(to, 0, static_cast<size_t>(numel) * size);
        return copy;
    }
    const char* from = base + impl->storage_offset() * static_cast<int64_t>(size);
    if (impl->is_contiguous()) {
        std::memcpy(to, from, static_cast<size_t>(numel) * size);
    } else {
        gather(from, impl->sizes().data(), impl->strides().data(), impl->dim(), size, to);
    }
    if (tensor.is_conj()) negate_lanes(to, type, numel, 1, 2);
    if (tensor.is_neg()) negate_lanes(to, type, numel, 0, 1);
    return copy;
}

}  // namespace numsan
