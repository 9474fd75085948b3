#include "interpose/python/names/object_walk.h"

#include "interpose/python/layout/layout.h"

namespace numsan {
namespace {

constexpr int32_t kObjectType = 8;  ///< ob_type, and ob_size or ma_used behind it: struct _object, 3.9 to 3.14
constexpr int32_t kObjectSize = 16;
constexpr int64_t kManyItems = 1000;
constexpr int kTraverseSlot = 71;  ///< Py_tp_traverse in typeslots.h
constexpr uint32_t kTicksPerLook = 64;
// Py_TPFLAGS_* in object.h.
constexpr unsigned long kHasGc = 1ul << 14;
constexpr unsigned long kIsList = 1ul << 25;
constexpr unsigned long kIsTuple = 1ul << 26;
constexpr unsigned long kIsDict = 1ul << 29;

}  // namespace

bool ObjectWalk::Seen::insert(const void* object) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const size_t mask = slots_.size() - 1;
    size_t at = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9e3779b97f4a7c15u >> 20 & mask;
    for (; slots_[at] != nullptr; at = (at + 1) & mask) {
        if (slots_[at] == object) return false;
    }
    slots_[at] = object;
    ++count_;
    return true;
}

void ObjectWalk::Seen::grow() {
    std::vector<const void*> old(slots_.empty() ? size_t(1) << 14 : 2 * slots_.size(), nullptr);
    old.swap(slots_);
    count_ = 0;
    for (const void* object : old) {
        if (object != nullptr) insert(object);
    }
}

ObjectWalk::ObjectWalk(const PythonApi& api, void* modules, void* optimizers, void* tensors)
    : api_(api), module_type_(modules), optimizer_type_(optimizers), tensor_type_(tensors) {}

ObjectWalk::Type ObjectWalk::learn(void* type) const {
    const unsigned long flags = api_.PyType_GetFlags(type);
    if ((flags & kHasGc) == 0) return {};
    const auto traverse = reinterpret_cast<Traverse>(api_.PyType_GetSlot(type, kTraverseSlot));
    if (traverse == nullptr) return {};
    const auto is_a = [&](void* base) { return base != nullptr && api_.PyType_IsSubtype(type, base) != 0; };
    if (is_a(tensor_type_) || type == api_.PyCode_Type) return {};
    if (is_a(module_type_)) return {Kind::Module, traverse};
    if (is_a(optimizer_type_)) return {Kind::Optimizer, traverse};
    if (is_a(api_.PyModule_Type)) return {Kind::Far, traverse};
    if ((flags & kIsList) != 0) return {Kind::List, traverse};
    if ((flags & kIsTuple) != 0) return {Kind::Tuple, traverse};
    if ((flags & kIsDict) != 0) return {Kind::Dict, traverse};
    if (type == api_.PyFunction_Type) return {Kind::Function, traverse};
    return {Kind::Other, traverse};
}

const ObjectWalk::Type& ObjectWalk::type_of(void* object) {
    void* const type = const_cast<void*>(read_at<const void*>(object, kObjectType));
    const auto known = types_.find(type);
    return known != types_.end() ? known->second : types_.emplace(type, learn(type)).first->second;
}

bool ObjectWalk::is_over() {
    if (!over_ && ++ticks_ % kTicksPerLook == 0) over_ = end_.is_over();
    return over_;
}

int ObjectWalk::visit_one(void* object, void* walk) {
    auto& self = *static_cast<ObjectWalk*>(walk);
    if (self.is_over()) return 1;
    if (object != self.passed_over_) self.visit(object);
    return 0;
}

void ObjectWalk::visit(void* object) {
    if (object == nullptr) return;
    const Kind kind = type_of(object).kind;
    // As the collector does: what it does not know, a static type or a dict of numbers, may not be traversed or leads
    // nowhere.
    if (kind == Kind::Skip || api_.PyObject_GC_IsTracked(object) == 0 || !seen_.insert(object)) return;
    if (kind == Kind::Module) modules_.push_back(object);
    if (kind == Kind::Optimizer) optimizers_.push_back(object);
    const bool container = kind == Kind::List || kind == Kind::Tuple || kind == Kind::Dict;
    const bool many = container && read_at<int64_t>(object, kObjectSize) > kManyItems;
    (kind == Kind::Far || many ? far_ : near_).push_back(object);
}

void ObjectWalk::expand(void* object) {
    const Type type = type_of(object);
    switch (type.kind) {
        case Kind::List:  // from the front: traversing goes from the back
            for (ptrdiff_t i = 0, size = api_.PyList_Size(object); i < size && !is_over(); ++i)
                visit(api_.PyList_GetItem(object, i));
            break;
        case Kind::Tuple:
            for (ptrdiff_t i = 0, size = api_.PyTuple_Size(object); i < size && !is_over(); ++i)
                visit(api_.PyTuple_GetItem(object, i));
            break;
        case Kind::Function:  // not the globals, in which everything is that was imported
            passed_over_ = api_.PyFunction_GetGlobals(object);
            type.traverse(object, visit_one, this);
            passed_over_ = nullptr;
            break;
        default: type.traverse(object, visit_one, this); break;
    }
}

void ObjectWalk::expand_near() {
    while (!near_.empty() && !is_over()) {
        void* const object = near_.front();
        near_.pop_front();
        expand(object);
    }
}

void ObjectWalk::run(Deadline::Duration near, Deadline::Duration far) {
    end_ = Deadline(near);
    over_ = false;
    expand_near();
    if (over_) return;
    end_ = Deadline(far);
    while (!far_.empty() && !is_over()) {
        void* const object = far_.front();
        far_.pop_front();
        expand(object);
        expand_near();
    }
}

}  // namespace numsan
