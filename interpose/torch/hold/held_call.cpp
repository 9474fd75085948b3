#include "interpose/torch/hold/held_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <sstream>

#include "interpose/torch/describe/each_tensor.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hold/tensor_copy.h"

namespace numsan {
namespace {

std::atomic<bool> g_stopped{false};
thread_local HeldCall* t_current = nullptr;
constexpr const char* kUnread = "its device could not be read";
constexpr c10::DispatchKeySet kGone(c10::DispatchKey::Meta);

template <class T>
std::string shown(const T& value) {
    std::ostringstream text;
    text << value;
    std::string made = text.str();
    return made.substr(0, 6) == "torch." ? made.substr(6) : made;
}

/// Of an optional the type inside.
c10::TypePtr plain(const c10::TypePtr& type) {
    const auto optional = type != nullptr ? type->cast<c10::OptionalType>() : nullptr;
    return optional != nullptr ? optional->getElementType() : type;
}

c10::TypePtr element_of(const c10::TypePtr& type) {
    const auto list = type != nullptr ? type->cast<c10::ListType>() : nullptr;
    return list != nullptr ? list->getElementType() : nullptr;
}

/// Layouts by their names in Python.
std::string layout_name(c10::Layout layout) {
    std::ostringstream text;
    text << layout;
    std::string name = text.str();
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

std::string memory_format_name(c10::MemoryFormat format) {
    switch (format) {
        case c10::MemoryFormat::Contiguous: return "contiguous_format";
        case c10::MemoryFormat::Preserve: return "preserve_format";
        case c10::MemoryFormat::ChannelsLast: return "channels_last";
        case c10::MemoryFormat::ChannelsLast3d: return "channels_last_3d";
        default: return "";
    }
}

/// Of the generator that the op draws from; undefined where that is not the host's.
at::Tensor generator_state(c10::ArrayRef<c10::IValue> arguments) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    bool on_host = true;
    for (const c10::IValue& value : arguments) {
        if (value.isGenerator()) generator = value.toGenerator();
        if (value.isDevice()) on_host = on_host && value.toDevice().is_cpu();
        for_each_tensor(value, [&](const at::Tensor& tensor) { on_host = on_host && tensor.device().is_cpu(); });
    }
    if (!on_host) return {};
    if (!generator.defined() || !generator.device().is_cpu()) return {};
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
}

}  // namespace

bool is_gone(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->key_set().has_all(kGone); }

bool HeldCall::stopped() noexcept { return g_stopped.load(std::memory_order_relaxed); }
void HeldCall::stop() noexcept { g_stopped.store(true, std::memory_order_relaxed); }

HeldCall* HeldCall::of_past(const Operator& op, std::vector<c10::IValue> arguments, std::vector<c10::IValue> results,
                            int64_t most_bytes) noexcept {
    try {
        auto* made = new HeldCall(op, most_bytes);
        made->arguments_ = std::move(arguments);
        made->returned(results);
        made->past_ = true;
        if (made->own()) return made;
        made->drop();
    } catch (const std::exception&) {
    }
    return nullptr;
}

HeldCall* HeldCall::begin(const Operator& op, c10::ArrayRef<c10::IValue> arguments, int64_t most_bytes) noexcept {
    if (stopped()) return nullptr;
    HeldCall* made = nullptr;
    try {
        made = new HeldCall(op, most_bytes);
        made->arguments_.assign(arguments.begin(), arguments.end());
        if (!op.written.empty()) made->copy_written(arguments);
        if (op.draws) made->generator_ = generator_state(arguments);
        return made;
    } catch (const std::exception&) {
        if (made != nullptr) made->drop();
        return nullptr;
    }
}

/// The arguments that the op writes, and those that share memory with them.
void HeldCall::copy_written(c10::ArrayRef<c10::IValue> arguments) {
    std::vector<const void*> written;
    for (const uint16_t position : op_.written) {
        for_each_tensor(arguments[position], [&](const at::Tensor& tensor) {
            if (const void* storage = storage_of(tensor.unsafeGetTensorImpl())) written.push_back(storage);
        });
    }
    size_t next = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const bool writes = next < op_.written.size() && op_.written[next] == i;
        if (writes) ++next;
        for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
            const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
            const void* storage = storage_of(impl);
            if (storage == nullptr || std::find(written.begin(), written.end(), storage) == written.end()) return;
            if (std::any_of(before_.begin(), before_.end(), [&](const Before& had) { return had.impl == impl; }))
                return;
            const bool overwritten = writes && op_.info.op_class == OpClass::Overwriting;
            Before made{impl, {}, overwritten, false};
            const int64_t bytes = bytes_of(tensor);
            if (!overwritten && why_not_copied(tensor) == nullptr && has_room_for(bytes)) {
                made.copy = copy_of(tensor);
                made.unread = !made.copy.defined();
                if (!made.unread) bytes_ += bytes;
            }
            before_.push_back(std::move(made));
        });
    }
}

int32_t HeldCall::keep(const at::Tensor& tensor, at::Tensor copy) {
    const at::Tensor& sized = copy.defined() ? copy : tensor;
    const std::vector<int64_t> sizes = sized.sizes().vec();
    const int64_t bytes = bytes_of(sized);
    Tensor made{tensor.unsafeGetTensorImpl(), std::move(copy), type_format(tensor.scalar_type()), sizes, bytes};
    if (made.format == nullptr) {
        made.format = "U8";
        made.stored.push_back(static_cast<int64_t>(tensor.unsafeGetTensorImpl()->itemsize()));
    }
    tensors_.push_back(std::move(made));
    return static_cast<int32_t>(tensors_.size()) - 1;
}

void HeldCall::describe(HeldValue& into, const at::Tensor& tensor, bool result) {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    into.kind = HeldKind::LeftOut;
    into.impl = impl;
    into.text = why_not_copied(tensor);
    const bool gone = past_ && is_gone(tensor);
    if (into.text != nullptr && !gone) return;
    into.dtype = type_name(tensor.scalar_type());
    into.device = gone ? "cpu" : text(tensor.device().str());
    into.ndim = static_cast<int32_t>(impl->dim());
    into.sizes = numbers(impl->sizes());
    into.strides = numbers(impl->strides());
    into.bytes = bytes_of(tensor);
    into.requires_grad = tensor.requires_grad();
    if (gone) {
        into.text = "its memory was given back or written before the backward pass came to it";
        return;
    }
    const auto before =
        std::find_if(before_.begin(), before_.end(), [&](const Before& had) { return had.impl == impl; });
    const bool copied = !result && before != before_.end();
    into.overwritten = copied && before->overwritten;
    for (size_t i = result ? first_result_ : 0; i < tensors_.size(); ++i) {
        if (tensors_[i].impl != impl) continue;
        into.kind = HeldKind::Tensor;
        into.tensor = static_cast<int32_t>(i);
        return;
    }
    if (into.overwritten) {
        into.tensor = keep(tensor, {});
    } else if (copied && before->copy.defined()) {
        if (before->copy.sizes() != impl->sizes()) {  // the op gave it another size
            into.ndim = static_cast<int32_t>(before->copy.dim());
            into.sizes = numbers(before->copy.sizes());
            into.strides = numbers(before->copy.strides());
            into.bytes = bytes_of(before->copy);
        }
        into.tensor = keep(tensor, before->copy);
    } else if (!copied && has_room_for(into.bytes)) {
        at::Tensor copy = copy_of(tensor);
        if (!copy.defined()) {
            into.text = kUnread;
            return;
        }
        into.tensor = keep(tensor, std::move(copy));
        bytes_ += into.bytes;
    } else {
        if (copied && before->unread) into.text = kUnread;
        return;  // else too large
    }
    into.kind = HeldKind::Tensor;
}

void HeldCall::describe(std::vector<HeldValue>& into, const c10::IValue& value, const char* name,
                        const c10::TypePtr& declared, bool result) {
    const c10::TypePtr type = plain(declared);
    const c10::TypeKind kind = type != nullptr ? type->kind() : c10::TypeKind::AnyType;
    const size_t at = into.size();
    into.emplace_back();
    HeldValue made;
    made.name = name;
    const auto named = [&](HeldKind what, std::string says) {
        made.kind = what;
        made.text = text(std::move(says));
    };
    if (value.isNone()) {
        made.kind = HeldKind::None;
    } else if (value.isTensor()) {
        if (value.toTensor().defined()) describe(made, value.toTensor(), result);
    } else if (value.isInt() && kind == c10::TypeKind::ScalarTypeType) {
        const char* known = type_name(static_cast<c10::ScalarType>(value.toInt()));
        named(HeldKind::DType, known != nullptr ? known : shown(static_cast<c10::ScalarType>(value.toInt())));
    } else if (value.isInt() && kind == c10::TypeKind::LayoutType) {
        named(HeldKind::Layout, layout_name(static_cast<c10::Layout>(value.toInt())));
    } else if (value.isInt() && kind == c10::TypeKind::MemoryFormatType) {
        named(HeldKind::MemoryFormat, memory_format_name(static_cast<c10::MemoryFormat>(value.toInt())));
    } else if (value.isInt()) {
        made.kind = HeldKind::Integer;
        made.integer = value.toInt();
    } else if (value.isDouble()) {
        made.kind = HeldKind::Number;
        made.number = value.toDouble();
    } else if (value.isBool()) {
        made.kind = HeldKind::Bool;
        made.integer = value.toBool() ? 1 : 0;
    } else if (value.isComplexDouble()) {
        made.kind = HeldKind::Complex;
        made.number = value.toComplexDouble().real();
        made.imaginary = value.toComplexDouble().imag();
    } else if (value.isString()) {
        named(HeldKind::String, value.toStringRef());
    } else if (value.isDevice()) {
        named(HeldKind::Device, value.toDevice().str());
    } else if (value.isGenerator()) {
        named(HeldKind::Generator, value.toGenerator().defined() ? value.toGenerator().device().str() : "");
    } else if (value.isList()) {
        const c10::TypePtr element = element_of(type);
        const auto elements = value.toListRef();
        made.kind = HeldKind::List;
        made.items = static_cast<int64_t>(elements.size());
        for (const c10::IValue& item : elements) describe(into, item, nullptr, element, result);
    } else {
        made.kind = HeldKind::LeftOut;
        made.text = past_ ? "it was not kept" : text(value.tagKind());
    }
    into[at] = made;
}

bool HeldCall::own() noexcept {
    if (state_ != State::Held) return state_ == State::Kept;
    state_ = State::Failed;
    try {
        const auto& schema = *op_.schema;
        for (size_t i = 0; i < arguments_.size() && i < schema.arguments().size(); ++i) {
            const auto& argument = schema.arguments()[i];
            describe(argument_values_, arguments_[i], text(argument.name()), argument.real_type(), false);
        }
        first_result_ = tensors_.size();
        for (const c10::IValue& value : results_) describe(result_values_, value, nullptr, nullptr, true);
        if (results_.empty()) {  // it says what it wrote by its arguments alone
            for (const uint16_t position : op_.written) {
                describe(result_values_, arguments_[position], text(schema.arguments()[position].name()), nullptr,
                         true);
            }
        }
        for (const Tensor& kept : tensors_) {
            shown_.push_back({kept.format, kept.stored.data(), static_cast<int32_t>(kept.stored.size()),
                              kept.copy.defined() ? kept.copy.const_data_ptr() : nullptr, kept.bytes});
        }
        view_.name = op_.name.c_str();
        view_.overload = op_.overload.c_str();
        view_.schema = text(shown(schema));
        view_.arguments = argument_values_.data();
        view_.argument_count = static_cast<int32_t>(argument_values_.size());
        view_.results = result_values_.data();
        view_.result_count = static_cast<int32_t>(result_values_.size());
        view_.tensors = shown_.data();
        view_.tensor_count = static_cast<int32_t>(shown_.size());
        view_.threads = at::get_num_threads();
        if (generator_.defined()) {
            shown_generator_ = {"U8", numbers(generator_.sizes()), 1, generator_.const_data_ptr(), generator_.numel()};
            view_.generator = &shown_generator_;
        }
        for (Tensor& kept : tensors_) kept.impl = nullptr;
        arguments_.clear();
        results_ = {};
        before_.clear();
        state_ = State::Kept;
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

CurrentHold::CurrentHold(HeldCall* call) noexcept : before_(std::exchange(t_current, call)) {}
CurrentHold::~CurrentHold() { t_current = before_; }

HeldCall* CurrentHold::get() noexcept { return t_current; }

}  // namespace numsan
