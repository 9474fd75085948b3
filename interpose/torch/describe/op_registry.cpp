#include "interpose/torch/describe/op_registry.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <string_view>

#include "host/ops/op_table.h"

namespace numsan {
namespace {

/// Buckets of operators, newest first. Entries are only added, each complete before it can be seen; without a lock,
/// which a child that is forked meanwhile would never see released. The loser of a race to add the same operator is
/// dropped.
constexpr size_t kBuckets = 4096;
std::atomic<const Operator*> g_buckets[kBuckets];

bool is_of(const Operator& known, const c10::FunctionSchema& schema) {
    return known.schema == &schema && known.name == schema.name() && known.arguments == schema.arguments().size() &&
           known.returns == schema.returns().size();
}

constexpr std::string_view kViews[] = {
#define NUMSAN_FALLTHROUGH(name) "aten::" name,
#include "interpose/torch/describe/fallthrough.def"
#undef NUMSAN_FALLTHROUGH
};

OpClass class_of(const c10::OperatorHandle& handle, const std::string& name) {
    if (const OpClass listed = op_table::listed_class(name); listed != OpClass::Other) return listed;
    const std::string& overload = handle.schema().overload_name();
    const std::string full = overload.empty() ? name : name + "." + overload;
    if (std::find(std::begin(kViews), std::end(kViews), full) != std::end(kViews)) return OpClass::View;
    if (name == "_c10d_functional::wait_tensor") return OpClass::View;
    if (name == "numsan::compiled_region") return OpClass::Region;
    if (name.rfind("c10d::", 0) == 0 || name.rfind("_c10d_functional::", 0) == 0) return OpClass::Collective;
    const auto& returns = handle.schema().returns();
    bool view = !returns.empty();
    for (const auto& value : returns) {
        view = view && value.alias_info() != nullptr && !value.alias_info()->isWrite();
    }
    if (view) return OpClass::View;
    // silu_backward and a few more have both: on such a device the op runs as one kernel, its parts are never seen.
    const bool own_kernel =
        handle.hasKernelForDispatchKey(c10::DispatchKey::CPU) || handle.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
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

std::unique_ptr<Operator> make(const c10::OperatorHandle& handle) {
    static std::atomic<uint32_t> next{0};
    auto made = std::make_unique<Operator>();
    const auto& schema = handle.schema();
    made->schema = &schema;
    made->name = schema.name();
    made->overload = schema.overload_name();
    made->arguments = static_cast<uint16_t>(schema.arguments().size());
    made->returns = static_cast<uint16_t>(schema.returns().size());
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
        const auto* alias = schema.arguments()[i].alias_info();
        if (alias != nullptr && alias->isWrite()) made->written.push_back(static_cast<uint16_t>(i));
        const bool group = i < 64 && schema.arguments()[i].name() == "process_group";
        if (group && made->name.rfind("c10d::", 0) == 0) made->group_argument = static_cast<int8_t>(i);
    }
#define NUMSAN_SILENT_WRITE(op, position) \
    if (made->name == (op)) made->written.push_back(position);
#include "interpose/torch/describe/silent_writes.def"
#undef NUMSAN_SILENT_WRITE
#define NUMSAN_INTERNAL_ARGUMENT(op, position) \
    if (made->name == (op)) made->internal_arguments |= uint64_t(1) << (position);
#define NUMSAN_INTERNAL_RETURN(op, position) \
    if (made->name == (op)) made->internal_returns |= uint64_t(1) << (position);
#include "interpose/torch/describe/internals.def"
#undef NUMSAN_INTERNAL_ARGUMENT
#undef NUMSAN_INTERNAL_RETURN
    // Both hooks walk the arguments once. The out arguments of an overload may have been silent ones as well.
    std::sort(made->written.begin(), made->written.end());
    made->written.erase(std::unique(made->written.begin(), made->written.end()), made->written.end());
    for (const uint16_t position : made->written) {
        if (position < 64) made->written_arguments |= uint64_t(1) << position;
    }
#define NUMSAN_ELEMENT_WISE(op) made->element_wise = made->element_wise || made->name == (op);
#include "interpose/torch/describe/element_wise.def"
#undef NUMSAN_ELEMENT_WISE
    made->info.integer_op = op_table::integer_op(made->name);
    made->info.op_class = class_of(handle, made->name);
    made->info.mutates = !made->written.empty();
    made->info.name = made->info.op_class == OpClass::Region ? kCompiledRegion : made->name.c_str();
    made->info.overload = made->overload.c_str();
    made->info.id = next++;
    made->draws = handle.hasTag(at::Tag::nondeterministic_seeded);
    made->calls_anew = keys_that_call_anew(handle);
    // A library's own operator may be Python or C++ code made of aten ops: those are where a bad value is born. What a
    // backend copies within a collective are values of other ranks.
    made->hides_inner_ops = (made->name.rfind("aten::", 0) == 0 && made->info.op_class != OpClass::Composite) ||
                            made->name.rfind("c10d::", 0) == 0;
    return made;
}

const Operator* find(const Operator* from, const Operator* end, const c10::FunctionSchema& schema) {
    while (from != end && !is_of(*from, schema)) from = from->next;
    return from != end ? from : nullptr;
}

const Operator& add(const c10::OperatorHandle& handle, std::atomic<const Operator*>& bucket, const Operator* seen) {
    std::unique_ptr<Operator> made = make(handle);
    made->next = seen;
    while (!bucket.compare_exchange_weak(seen, made.get(), std::memory_order_release, std::memory_order_acquire)) {
        if (const Operator* same = find(seen, made->next, handle.schema())) return *same;
        made->next = seen;
    }
    return *made.release();  // lives as long as the process: events point at it
}

}  // namespace

const Operator& operator_of(const c10::OperatorHandle& handle) {
    const c10::FunctionSchema& schema = handle.schema();
    const auto hash = reinterpret_cast<uintptr_t>(&schema);
    std::atomic<const Operator*>& bucket = g_buckets[((hash >> 6) ^ (hash >> 18)) % kBuckets];
    const Operator* first = bucket.load(std::memory_order_acquire);
    const Operator* known = find(first, nullptr, schema);
    return known != nullptr ? *known : add(handle, bucket, first);
}

}  // namespace numsan
