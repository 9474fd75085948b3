// Kernels that are not the CPU's on the shadow: memory, views, copies, reads; and the registration of the rest.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <cstring>

#include "control.h"
#include "device.h"

namespace fakegpu {
namespace {

using at::Tensor;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_plain(std::optional<c10::Layout> layout, std::optional<bool> pinned) {
    TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided, "fakegpu has strided tensors only");
    TORCH_CHECK(!pinned.value_or(false), "only CPU tensors can be pinned");
}

// --- memory

/// As every backend of torch's own: under deterministic algorithms fresh memory is NaN, or the largest integer.
bool fills_fresh_memory() {
    const at::Context& context = at::globalContext();
    return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

Tensor fresh(Tensor tensor) {
    if (fills_fresh_memory()) at::native::fill_empty_deterministic_(tensor);
    return tensor;
}

Tensor empty(at::IntArrayRef size, std::optional<c10::ScalarType> type, std::optional<c10::Layout> layout,
             std::optional<c10::Device> device, std::optional<bool> pinned, std::optional<c10::MemoryFormat> format) {
    check_plain(layout, pinned);
    const c10::OptionalDeviceGuard guard(device);
    return fresh(at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(type), format));
}

Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<c10::ScalarType> type,
                     std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pinned) {
    check_plain(layout, pinned);
    const c10::OptionalDeviceGuard guard(device);
    return fresh(at::detail::empty_strided_generic(size, stride, allocator(), kKeys, c10::dtype_or_default(type)));
}

void fit_storage(const Tensor& self) {
    if (self.numel() == 0) return;
    const auto elements = at::detail::computeStorageNbytes(self.sizes(), self.strides(), self.element_size(),
                                                           static_cast<size_t>(self.storage_offset()));
    if (elements > self.storage().nbytes()) resize_storage(self.storage(), elements);
}

const Tensor& resize_(const Tensor& self, at::IntArrayRef size, std::optional<c10::MemoryFormat> format) {
    c10::TensorImpl* impl = self.unsafeGetTensorImpl();
    const size_t before = self.storage().nbytes();
    if (self.sizes() != size) impl->set_sizes_contiguous(size);
    if (format) impl->empty_tensor_restride(*format);
    fit_storage(self);
    if (fills_fresh_memory()) at::native::fill_resize_deterministic_(self, static_cast<int64_t>(before));
    return self;
}

Tensor& set_storage_(Tensor& self, c10::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
    at::native::checkSetStorage(self, std::move(source), offset, size, stride);
    c10::TensorImpl* impl = self.unsafeGetTensorImpl();
    impl->set_storage_offset(offset);
    if (stride.data() != nullptr) {
        impl->set_sizes_and_strides(size, stride);
    } else {
        impl->set_sizes_contiguous(size);
    }
    fit_storage(self);
    return self;
}

Tensor& set_whole_storage_(Tensor& self, c10::Storage source) {
    const auto elements = static_cast<int64_t>(source.nbytes() / self.element_size());
    return set_storage_(self, std::move(source), 0, {elements}, {});
}

Tensor& set_empty_(Tensor& self) {
    const c10::DeviceGuard guard(self.device());
    c10::Storage none(c10::Storage::use_byte_size_t(), 0, allocator()->allocate(0), allocator(), true);
    return set_storage_(self, std::move(none), 0, {0}, {});
}

void record_stream_of(Tensor& self, c10::Stream stream) { record_stream(self.storage().data_ptr(), stream); }

// --- copies and reads

/// To pinned memory a copy of equal elements may come late; to other memory torch's user expects it done.
void to_host(const Tensor& source, const Tensor& target, bool non_blocking) {
    const c10::Stream stream = current_stream(source.device().index());
    const bool plain = source.scalar_type() == target.scalar_type() && source.sizes() == target.sizes() &&
                       source.is_contiguous() && target.is_contiguous() && source.is_conj() == target.is_conj() &&
                       source.is_neg() == target.is_neg();
    if (non_blocking && plain && is_pinned(target.data_ptr())) {
        enqueue(stream, [from = source.const_data_ptr(), to = target.mutable_data_ptr(), bytes = source.nbytes(),
                         alive = target.storage()] { std::memcpy(to, from, bytes); });
        return;
    }
    synchronize(stream);
    const Quiet quiet;
    Tensor writable = target;
    at::native::copy_(writable, device_view(source), false);
}

void to_device(const Tensor& source, const Tensor& target) {
    const c10::Stream stream = current_stream(target.device().index());
    if (source.device().type() == kType && source.device() != target.device())
        order(stream, current_stream(source.device().index()));
    Tensor shadow = twin(target);
    {
        const Quiet quiet;
        at::native::copy_(shadow, twin(source), false);
    }
    Batch batch;
    publish(target, shadow, batch);
    std::move(batch).submit(stream);
}

Tensor& copy_(Tensor& self, const Tensor& source, bool non_blocking) {
    if (self.is_same(source)) return self;
    const c10::DeviceGuard guard(self.device().type() == kType ? self.device() : source.device());
    if (self.is_cpu()) {
        to_host(source, self, non_blocking);
    } else {
        to_device(source, self);
    }
    return self;
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool non_blocking) {
    Tensor writable = target;
    return copy_(writable, self, non_blocking);
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
    target.resize_(self.sizes());
    return copy_from(self, target, false);
}

c10::Scalar local_scalar(const Tensor& self) {
    synchronize(current_stream(self.device().index()));
    const Quiet quiet;
    return at::_local_scalar_dense(device_view(self));
}

/// One kernel for each operator that CUDA or the CPU has one for, so that what decomposes there decomposes here too.
void register_fallbacks(torch::Library& library) {
    using c10::DispatchKey;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        if (name.name.rfind("aten::", 0) != 0) continue;
        const auto op = c10::Dispatcher::singleton().findOp(name);
        if (!op || !op->hasSchema() || op->hasKernelForDispatchKey(DispatchKey::PrivateUse1) ||
            op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) {
            continue;
        }
        const bool own = op->hasKernelForDispatchKey(DispatchKey::CPU) ||
                         op->hasKernelForDispatchKey(DispatchKey::CUDA) || name.name.rfind("aten::_foreach_", 0) == 0;
        if (!own) continue;
        const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
        library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&fallback>());
    }
}

}  // namespace

}  // namespace fakegpu

using namespace fakegpu;

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("resize_", resize_);
    m.impl("set_", set_empty_);
    m.impl("set_.source_Storage", set_whole_storage_);
    m.impl("set_.source_Storage_storage_offset", set_storage_);
    m.impl("set_.source_Tensor", at::native::set_tensor_);
    m.impl("record_stream", record_stream_of);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("view", static_cast<Tensor (*)(const Tensor&, at::IntArrayRef)>(at::native::view));
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("copy_", copy_);
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", local_scalar);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

void fakegpu_register() {
    static auto* library =
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
    register_fallbacks(*library);
    register_hooks();
}
