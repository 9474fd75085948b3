// What is reachable from some Python objects, within a time.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "interpose/python/api/api.h"
#include "interpose/python/names/deadline.h"

namespace numsan {

/// A walk from object to object, nearest first; containers with many items, classes and modules come last. The caller
/// holds the interpreter's lock without a break as long as this lives: no reference is taken, no Python code runs, and
/// no Python object is made.
class ObjectWalk {
  public:
    /// The walk collects instances of `modules` and `optimizers`, two types; the second may be null. It does not go
    /// into instances of `tensors`.
    ObjectWalk(const PythonApi& api, void* modules, void* optimizers, void* tensors);

    /// Adds an object to begin with. Those added first are looked at first.
    void add(void* object) { visit(object); }
    /// The same, after what is near.
    void add_far(void* object) { far_.push_back(object); }

    /// Walks until nothing near is left, `near` at most, then on to what is far, `far` at most.
    void run(Deadline::Duration near, Deadline::Duration far);

    const std::vector<void*>& modules() const { return modules_; }
    const std::vector<void*>& optimizers() const { return optimizers_; }

  private:
    using Traverse = int (*)(void* object, int (*visit)(void*, void*), void* argument);
    enum class Kind : uint8_t { Skip, Module, Optimizer, List, Tuple, Dict, Function, Other, Far };
    struct Type {
        Kind kind = Kind::Skip;
        Traverse traverse = nullptr;
    };
    /// Addresses met so far: open addressing, since a walk of a hundred thousand objects has some milliseconds.
    class Seen {
      public:
        bool insert(const void* object);

      private:
        void grow();
        std::vector<const void*> slots_;
        size_t count_ = 0;
    };

    static int visit_one(void* object, void* walk);
    void visit(void* object);
    void expand(void* object);
    void expand_near();
    bool is_over();
    const Type& type_of(void* object);
    Type learn(void* type) const;

    const PythonApi& api_;
    void* const module_type_;
    void* const optimizer_type_;
    void* const tensor_type_;
    std::unordered_map<const void*, Type> types_;
    Seen seen_;
    std::deque<void*> near_;
    std::deque<void*> far_;
    std::vector<void*> modules_;
    std::vector<void*> optimizers_;
    Deadline end_{Deadline::Duration::zero()};
    const void* passed_over_ = nullptr;
    uint32_t ticks_ = 0;
    bool over_ = false;
};

}  // namespace numsan
