// Names modules, parameters, buffers, gradients and optimizer state after what holds them.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "host/stacks/stack_source.h"
#include "interpose/python/names/object_walk.h"
#include "interpose/python/names/tensor_fields.h"
#include "interpose/python/names/variables.h"

namespace numsan {

/// One use. The caller holds the interpreter's lock, and holds it without a break as long as this lives: so what is
/// found needs no reference, and no other thread sees anything of it. No Python code runs, of the program's or other.
class NameFinder {
  public:
    /// `layout`: that of frames, null where it is not known; then local variables have no names.
    NameFinder(const PythonApi& api, const PythonLayout* layout, const TensorReader& reader);

    /// Empty where torch is not imported. What takes more than some tens of milliseconds of CPU time has no name.
    LiveNames find();

    /// After find(): modules that torch.fx wrote, borrowed. All that the garbage collector knows are asked: a graph is
    /// often held by what is not Python's.
    std::vector<void*> graph_modules() const;

  private:
    using Role = LiveNames::TensorName::Role;
    using Item = std::pair<std::string, void*>;

    void* slot(void* object, const char* name) const;
    bool is_a(void* object, void* type) const;
    bool is_late() const { return end_.is_over(); }
    std::vector<Item> parts(void* value, const std::string& name) const;
    std::string key_text(void* key) const;
    std::string numbered(const std::string& name);

    void name_modules(const std::vector<void*>& modules);
    bool is_wrapped(void* parent, const std::string& name) const;
    void name_module(void* module, const std::string& name);
    void name_variables();
    void name_variable(void* value, const std::string& name);
    void name_optimizer(void* optimizer);
    void add_tensor(Role role, void* tensor, const std::string& name);
    void add_gradient(const void* leaf, const std::string& name);

    const PythonApi& api_;
    const TensorReader& reader_;
    const PythonLayout* layout_;
    const double share_;
    Deadline end_;
    void* module_type_ = nullptr;
    void* optimizer_type_ = nullptr;
    void* tensor_type_ = nullptr;
    void* parameter_type_ = nullptr;
    void* globals_ = nullptr;  ///< of __main__
    Variables variables_;
    TensorFields fields_;
    std::vector<void*> modules_;
    LiveNames names_;
    std::unordered_set<const void*> named_tensors_;
    std::unordered_map<std::string, int> numbers_;
};

}  // namespace numsan
