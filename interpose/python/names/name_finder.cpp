#include "interpose/python/names/name_finder.h"

#include <chrono>
#include <utility>

#include "interpose/python/api/reference.h"

namespace numsan {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNear{20};    ///< for what frames and the script's variables lead to
constexpr milliseconds kFar{6};      ///< then for large containers, classes and modules
constexpr milliseconds kNaming{60};  ///< for all of it, reading the names included
constexpr double kBrief = 0.2;       ///< of these times, where TensorReader says so
constexpr ptrdiff_t kManyItems = 1000;
constexpr int32_t kObjectType = 8;
constexpr int kOldestGeneration = 2;

Deadline::Duration part(milliseconds time, double share) {
    return std::chrono::duration_cast<Deadline::Duration>(time * share);
}

/// Torch's own modules hold no model, and are most of what is imported.
bool is_torchs(const std::string& module) { return module == "torch" || module.starts_with("torch."); }

void* type_of(void* object) { return const_cast<void*>(read_at<const void*>(object, kObjectType)); }

}  // namespace

NameFinder::NameFinder(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader)
    : api_(api),
      reader_(reader),
      layout_(layout),
      share_(reader.brief ? kBrief : 1),
      end_(part(kNaming, share_)),
      module_type_(global_of(api, "torch.nn", "Module")),
      optimizer_type_(global_of(api, "torch.optim", "Optimizer")),
      tensor_type_(global_of(api, "torch", "Tensor")),
      parameter_type_(global_of(api, "torch.nn", "Parameter")),
      fields_(api, tensor_type_) {
    void* const main = imported(api, "__main__");
    globals_ = main != nullptr ? api.PyModule_GetDict(main) : nullptr;
    api.PyErr_Clear();
}

bool NameFinder::is_a(void* object, void* type) const {
    // PyObject_IsInstance() would run the program's own __class__ and __instancecheck__.
    return type != nullptr && api_.PyType_IsSubtype(type_of(object), type) != 0;
}

/// What the object's own dictionary has under that name, borrowed; null where there is none.
void* NameFinder::slot(void* object, const char* name) const {
    const Reference own(api_, api_.PyObject_GenericGetDict(object, nullptr));
    void* const value = own.get() != nullptr ? api_.PyDict_GetItemString(own.get(), name) : nullptr;
    api_.PyErr_Clear();
    return value;
}

std::string NameFinder::key_text(void* key) const {
    const Reference shown(api_, api_.PyObject_Repr(key));
    return shown.get() != nullptr ? text_of(api_, shown.get()) : std::string();
}

/// What a list, a dict or an object of the script holds, with names.
std::vector<NameFinder::Item> NameFinder::parts(void* value, const std::string& name) const {
    std::vector<Item> found;
    void* const type = type_of(value);
    if (type == api_.PyList_Type || type == api_.PyTuple_Type) {
        const bool list = type == api_.PyList_Type;
        const ptrdiff_t size = list ? api_.PyList_Size(value) : api_.PyTuple_Size(value);
        for (ptrdiff_t i = 0; i < size && size <= kManyItems; ++i) {
            void* const item = list ? api_.PyList_GetItem(value, i) : api_.PyTuple_GetItem(value, i);
            if (item != nullptr) found.emplace_back(name + "[" + std::to_string(i) + "]", item);
        }
        return found;
    }
    const bool is_dict = type == api_.PyDict_Type;
    if (value == globals_ || (!is_dict && (api_.PyType_GetFlags(type) & 1ul << 14) == 0)) return found;
    if (is_a(value, api_.PyType_Type) || is_a(value, api_.PyModule_Type) || is_a(value, module_type_) ||
        is_a(value, tensor_type_))
        return found;
    const Reference own(api_, is_dict ? nullptr : api_.PyObject_GenericGetDict(value, nullptr));
    api_.PyErr_Clear();
    void* const dict = is_dict ? value : own.get();
    if (dict == nullptr || type_of(dict) != api_.PyDict_Type || api_.PyDict_Size(dict) > kManyItems) return found;
    ptrdiff_t at = 0;
    for (void *key = nullptr, *item = nullptr; api_.PyDict_Next(dict, &at, &key, &item);) {
        const bool plain = type_of(key) == api_.PyUnicode_Type || (is_dict && type_of(key) == api_.PyLong_Type);
        if (!plain) continue;
        found.emplace_back(is_dict ? name + "[" + key_text(key) + "]" : name + "." + text_of(api_, key), item);
    }
    return found;
}

/// Twins have different names: a finding of one of them is none of the other's.
std::string NameFinder::numbered(const std::string& name) {
    const int number = ++numbers_[name];
    return number == 1 ? name : name + "(" + std::to_string(number) + ")";
}

/// Nothing holds the gradient itself: see TensorReader.
void NameFinder::add_gradient(const void* leaf, const std::string& name) {
    const void* const gradient = reader_.gradient_of != nullptr ? reader_.gradient_of(leaf) : nullptr;
    if (gradient == nullptr) return;
    const bool reads = reader_.gradients_rest && reader_.storage_of != nullptr;
    const LiveNames::TensorName named{name, Role::Gradient, reads ? reader_.storage_of(gradient) : nullptr, leaf};
    const auto [known, fresh] = names_.tensors.emplace(gradient, named);
    if (!fresh && known->second.role == Role::Gradient) known->second = named;  // one that died meanwhile lay there
}

void NameFinder::add_tensor(Role role, void* tensor, const std::string& name) {
    if (!is_a(tensor, tensor_type_)) return;
    const void* const impl = fields_.impl(tensor);
    if (impl == nullptr || !named_tensors_.insert(impl).second) return;
    names_.tensors.insert_or_assign(
        impl, LiveNames::TensorName{name, role, reader_.storage_of != nullptr ? reader_.storage_of(impl) : nullptr});
    if (role == Role::Parameter) add_gradient(impl, name);
}

/// What torch.compile wraps has the name of the wrapper.
bool NameFinder::is_wrapped(void* parent, const std::string& name) const {
    return name.ends_with("._orig_mod") && is_a(parent, global_of(api_, "torch._dynamo.eval_frame", "OptimizedModule"));
}

void NameFinder::name_module(void* module, const std::string& name) {
    if (is_late() || !names_.modules.emplace(module, name).second) return;
    const auto each = [&](const char* kept, auto&& visit) {
        void* const dict = slot(module, kept);
        if (dict == nullptr || !is_a(dict, api_.PyDict_Type)) return;
        ptrdiff_t at = 0;
        for (void *key = nullptr, *value = nullptr; api_.PyDict_Next(dict, &at, &key, &value);)
            visit(name + "." + text_of(api_, key), value);
    };
    each("_parameters", [&](const std::string& its, void* value) { add_tensor(Role::Parameter, value, its); });
    each("_buffers", [&](const std::string& its, void* value) { add_tensor(Role::Buffer, value, its); });
    each("_modules", [&](const std::string& its, void* value) {
        if (is_a(value, module_type_)) name_module(value, is_wrapped(module, its) ? name : its);
    });
}

/// By the variable that holds it, else by what a variable holds, else by its class.
void NameFinder::name_modules(const std::vector<void*>& modules) {
    std::unordered_set<const void*> inner;
    for (void* const module : modules) {
        void* const children = slot(module, "_modules");
        if (children == nullptr || !is_a(children, api_.PyDict_Type)) continue;
        ptrdiff_t at = 0;
        for (void *key = nullptr, *child = nullptr; api_.PyDict_Next(children, &at, &key, &child);) inner.insert(child);
    }
    const auto name_root = [&](void* value, const std::string& name) {
        if (is_a(value, module_type_) && inner.count(value) == 0) name_module(value, name);
    };
    const auto each_visible = [&](auto&& visit) {
        for (const Scope& scope : variables_.script) {
            for (const auto& [name, value] : scope) {
                if (!name.starts_with('_')) visit(value, name);
            }
        }
    };
    each_visible(name_root);
    each_visible([&](void* value, const std::string& name) {
        for (const auto& [its, part] : parts(value, name)) name_root(part, its);
    });
    const auto name_by_class = [&](void* module) {
        if (names_.modules.count(module) != 0) return;
        const Reference type_name(api_, api_.PyObject_GetAttrString(type_of(module), "__name__"));
        if (type_name.get() == nullptr) return api_.PyErr_Clear();
        name_module(module, numbered(text_of(api_, type_name.get())));
    };
    for (void* const module : modules) {
        if (inner.count(module) == 0) name_by_class(module);
    }
    for (void* const module : modules) name_by_class(module);
}

void NameFinder::name_variable(void* value, const std::string& name) {
    if (!is_a(value, tensor_type_)) return;
    if (is_a(value, parameter_type_) || fields_.is_trained_leaf(value)) add_tensor(Role::Parameter, value, name);
}

void NameFinder::name_variables() {
    for (const Scope& scope : variables_.script) {
        for (const auto& [name, value] : scope) {
            if (name.starts_with("__") || is_late()) continue;
            name_variable(value, name);
            const void* const type = type_of(value);
            if (type != api_.PyList_Type && type != api_.PyTuple_Type && type != api_.PyDict_Type) continue;
            for (const auto& [its, part] : parts(value, name)) name_variable(part, its);
        }
    }
}

void NameFinder::name_optimizer(void* optimizer) {
    std::string groups_name;
    void* const groups = slot(optimizer, "param_groups");
    const ptrdiff_t count = groups != nullptr && is_a(groups, api_.PyList_Type) ? api_.PyList_Size(groups) : 0;
    for (ptrdiff_t i = 0; i < count; ++i) {
        void* const group = api_.PyList_GetItem(groups, i);
        void* const members = is_a(group, api_.PyDict_Type) ? api_.PyDict_GetItemString(group, "params") : nullptr;
        if (members == nullptr || !is_a(members, api_.PyList_Type)) continue;
        for (ptrdiff_t j = 0, size = api_.PyList_Size(members); j < size && !is_late(); ++j) {
            void* const tensor = api_.PyList_GetItem(members, j);
            if (!is_a(tensor, tensor_type_)) continue;
            if (named_tensors_.count(fields_.impl(tensor)) == 0) {
                if (groups_name.empty()) groups_name = numbered("param_groups");
                add_tensor(Role::Parameter, tensor,
                           groups_name + "[" + std::to_string(i) + "].params[" + std::to_string(j) + "]");
            }
            if (const auto held = names_.tensors.find(fields_.impl(tensor)); held != names_.tensors.end())
                held->second.optimized = true;
        }
    }
    void* const state = slot(optimizer, "state");
    if (state == nullptr || !is_a(state, api_.PyDict_Type)) return;
    ptrdiff_t at = 0;
    for (void *tensor = nullptr, *kept = nullptr; !is_late() && api_.PyDict_Next(state, &at, &tensor, &kept);) {
        if (!is_a(kept, api_.PyDict_Type) || !is_a(tensor, tensor_type_)) continue;
        const auto known = names_.tensors.find(fields_.impl(tensor));
        const std::string name = known != names_.tensors.end() ? known->second.name : "a parameter";
        ptrdiff_t inside = 0;
        for (void *key = nullptr, *value = nullptr; api_.PyDict_Next(kept, &inside, &key, &value);)
            add_tensor(Role::OptimizerState, value, text_of(api_, key) + " of " + name);
    }
}

LiveNames NameFinder::find() {
    if (module_type_ == nullptr || tensor_type_ == nullptr) return {};
    variables_ = live_variables(api_, layout_);
    ObjectWalk walk(api_, module_type_, optimizer_type_, tensor_type_);
    for (size_t i = variables_.script.size(); i-- > 0;) {  // the outermost function, which sets things up, first
        for (const Variable& variable : variables_.script[i]) walk.add(variable.value);
    }
    for (void* const value : variables_.elsewhere) walk.add(value);
    ptrdiff_t at = 0;
    std::vector<void*> imports;
    for (void *key = nullptr, *module = nullptr; api_.PyDict_Next(api_.PyImport_GetModuleDict(), &at, &key, &module);) {
        if (!is_torchs(text_of(api_, key))) imports.push_back(module);
    }
    for (size_t i = imports.size(); i-- > 0;) walk.add_far(imports[i]);  // what the script imports comes last
    walk.run(part(kNear, share_), part(kFar, share_));
    modules_ = walk.modules();
    name_modules(modules_);
    name_variables();
    for (void* const optimizer : walk.optimizers()) name_optimizer(optimizer);
    if (is_late()) {  // a part of what optimizers hold would be taken for all
        for (auto& [impl, tensor] : names_.tensors) tensor.optimized = false;
    }
    api_.PyErr_Clear();
    return std::move(names_);
}

std::vector<void*> NameFinder::graph_modules() const {
    std::vector<void*> found;
    void* const type = global_of(api_, "torch.fx.graph_module", "GraphModule");
    void* const collector = imported(api_, "gc");
    if (type == nullptr || collector == nullptr) return found;
    for (int generation = 0; generation <= kOldestGeneration && !is_late(); ++generation) {
        const Reference all(api_, api_.PyObject_CallMethod(collector, "get_objects", "i", generation));
        for (ptrdiff_t i = 0, size = all.get() != nullptr ? api_.PyList_Size(all.get()) : 0; i < size; ++i) {
            void* const object = api_.PyList_GetItem(all.get(), i);
            if (is_a(object, type)) found.push_back(object);
        }
    }
    api_.PyErr_Clear();
    return found;
}

}  // namespace numsan
