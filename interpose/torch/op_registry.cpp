#include "interpose/torch/op_registry.h"

#include <atomic>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace numsan {
namespace {

/// Direct-mapped front of the table: one load on the hot path, a mutex only for operators not seen before.
constexpr size_t kSlots = 4096;
std::atomic<const Operator*> g_slots[kSlots];

bool is_of(const Operator& known, const c10::FunctionSchema& schema) {
    return known.schema == &schema && known.arguments == schema.arguments().size() &&
           known.returns == schema.returns().size();
}

OpClass class_of(const c10::OperatorHandle& handle, const std::string& name) {
    static const std::unordered_map<std::string_view, OpClass> named = {
#define NUMSAN_OP(op, cls) {op, OpClass::cls},
#include "interpose/torch/op_table.def"
#undef NUMSAN_OP
    };
    if (auto it = named.find(name); it != named.end()) return it->second;
    static const std::unordered_set<std::string_view> views = {
#define NUMSAN_FALLTHROUGH(name) "aten::" name,
#include "interpose/torch/fallthrough.def"
#undef NUMSAN_FALLTHROUGH
    };
    const std::string& overload = handle.schema().overload_name();
    if (views.count(overload.empty() ? name : name + "." + overload) != 0) return OpClass::View;
    if (name.rfind("c10d::", 0) == 0 || name.rfind("_c10d_functional::", 0) == 0) return OpClass::Collective;
    const auto& returns = handle.schema().returns();
    bool view = !returns.empty();
    for (const auto& value : returns) {
        view = view && value.alias_info() != nullptr && !value.alias_info()->isWrite();
    }
    if (view) return OpClass::View;
    // silu_backward and a few more have both: on such a device the op runs as one kernel, its parts are never seen.
    const bool own_kernel = handle.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
                            handle.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
    if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !own_kernel)
        return OpClass::Composite;
    return OpClass::Other;
}

/// Keys on which the operator is called once more, on other tensors: autocast's on the ones it has cast. (Ops without a
/// rule of autocast's have no kernel on its keys.) functorch unwraps.
c10::DispatchKeySet keys_that_call_anew(const c10::OperatorHandle& handle) {
    c10::DispatchKeySet keys({c10::DispatchKey::FuncTorchDynamicLayerFrontMode});
    for (const c10::DispatchKey key : c10::autocast_dispatch_keyset) {
        if (handle.hasKernelForDispatchKey(key)) keys = keys.add(key);
    }
    return keys;
}

const Operator* make(const c10::OperatorHandle& handle) {
    static std::atomic<uint32_t> next{0};
    auto* made = new Operator;  // lives as long as the process: events point at it
    const auto& schema = handle.schema();
    made->schema = &schema;
    made->name = schema.name();
    made->overload = schema.overload_name();
    made->arguments = static_cast<uint16_t>(schema.arguments().size());
    made->returns = static_cast<uint16_t>(schema.returns().size());
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        const auto* alias = schema.arguments()[i].alias_info();
        if (alias != nullptr && alias->isWrite()) made->written.push_back(static_cast<uint16_t>(i));
    }
#define NUMSAN_SILENT_WRITE(op, position) \
    if (made->name == op) made->written.push_back(position);
#include "interpose/torch/silent_writes.def"
#undef NUMSAN_SILENT_WRITE
#define NUMSAN_ELEMENT_WISE(op) made->element_wise = made->element_wise || made->name == op;
#include "interpose/torch/element_wise.def"
#undef NUMSAN_ELEMENT_WISE
    made->info.op_class = class_of(handle, made->name);
    made->info.mutates = !made->written.empty();
    made->info.name = made->name.c_str();
    made->info.overload = made->overload.c_str();
    made->info.id = next++;
    made->calls_anew = keys_that_call_anew(handle);
    // A library's own operator may be Python or C++ code made of aten ops: those are where a bad value is born.
    made->hides_inner_ops = made->name.rfind("aten::", 0) == 0 && made->info.op_class != OpClass::Composite;
    return made;
}

const Operator& slow(const c10::OperatorHandle& handle, std::atomic<const Operator*>& slot) {
    static std::mutex& mutex = *new std::mutex;
    static auto& all = *new std::unordered_map<const c10::FunctionSchema*, const Operator*>;
    const std::lock_guard<std::mutex> lock(mutex);
    const Operator*& found = all[&handle.schema()];
    if (found == nullptr || !is_of(*found, handle.schema()) || found->name != handle.schema().name())
        found = make(handle);
    slot.store(found, std::memory_order_release);
    return *found;
}

}  // namespace

const Operator& operator_of(const c10::OperatorHandle& handle) {
    const c10::FunctionSchema& schema = handle.schema();
    const auto hash = reinterpret_cast<uintptr_t>(&schema);
    std::atomic<const Operator*>& slot = g_slots[((hash >> 6) ^ (hash >> 18)) % kSlots];
    const Operator* known = slot.load(std::memory_order_acquire);
    return known != nullptr && is_of(*known, schema) ? *known : slow(handle, slot);
}

}  // namespace numsan
