#include "interpose/torch/hold/tensor_copy.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "interpose/torch/describe/device_queue_of.h"
#include "interpose/torch/describe/tensor_view_of.h"

namespace numsan {
namespace {

constexpr int64_t kFewBytes = int64_t(64) << 20;

bool (*g_read_device)(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) = nullptr;

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

/// Places of the first and the last of its elements in the storage, of which there are some.
std::pair<int64_t, int64_t> places_of(const c10::TensorImpl& impl) {
    int64_t first = impl.storage_offset();
    int64_t last = first;
    for (int64_t i = 0; i < impl.dim(); ++i) {
        const int64_t way = (impl.sizes()[i] - 1) * impl.strides()[i];
        (way < 0 ? first : last) += way;
    }
    return {first, last};
}

/// Whether all elements lie within the storage: a program may have given its memory back, as FSDP does.
bool in_memory(const c10::TensorImpl& impl) {
    if (impl.numel() == 0) return true;
    c10::StorageImpl* storage = impl.unsafe_storage().unsafeGetStorageImpl();
    const auto [first, last] = places_of(impl);
    return storage->_mutable_data_ptr_no_checks().get() != nullptr && first >= 0 &&
           (last + 1) * static_cast<int64_t>(impl.itemsize()) <= storage->sym_nbytes().maybe_as_int().value_or(0);
}

/// A device is read as one piece.
bool is_close_together(const c10::TensorImpl& impl) {
    if (impl.numel() == 0) return true;
    const auto [first, last] = places_of(impl);
    const auto size = static_cast<int64_t>(impl.itemsize());
    return (last + 1 - first) * size <= std::max(4 * impl.numel() * size, kFewBytes);
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

void read_devices_by(bool (*read)(const DeviceQueue& queue, const void* from, int64_t bytes, void* to)) noexcept {
    g_read_device = read;
}

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
    if (!keys.has_all(kOnCpu) && (g_read_device == nullptr || !may_touch_device(keys))) return "device";
    if (type_name(tensor.scalar_type()) == nullptr) return "element type";
    const bool negated = tensor.is_neg() || tensor.is_conj();
    const c10::ScalarType type = c10::toRealValueType(tensor.scalar_type());
    if (negated && type != c10::kDouble && type != c10::kFloat && type != c10::kHalf) return "element type";
    if (!in_memory(*impl)) return "no memory";
    return keys.has_all(kOnCpu) || is_close_together(*impl) ? nullptr : "a device's, with much between its elements";
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
    const char* from = base + impl->storage_offset() * static_cast<int64_t>(size);
    std::unique_ptr<char[]> read;  // of a device
    if (const c10::Device device = storage->device(); !device.is_cpu()) {
        const auto [first, last] = places_of(*impl);
        const int64_t bytes = (last + 1 - first) * static_cast<int64_t>(size);
        read.reset(new char[static_cast<size_t>(bytes)]);
        const DeviceQueue queue = device_queue_of(device.type(), device.index());
        if (!queue.known || !g_read_device(queue, base + first * static_cast<int64_t>(size), bytes, read.get()))
            return {};
        from = read.get() + (impl->storage_offset() - first) * static_cast<int64_t>(size);
    }
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
