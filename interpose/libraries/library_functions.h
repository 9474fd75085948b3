// Functions of a library: those that ours stand for, and those that ours ask.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace numsan {

/// What `theirs` of a ReplacedImport was given: set before ours is called.
template <class Function>
Function* their_function(void*& theirs) noexcept {
    return reinterpret_cast<Function*>(__atomic_load_n(&theirs, __ATOMIC_ACQUIRE));
}

template <class Function>
void* address_of(Function* function) noexcept {
    return reinterpret_cast<void*>(function);
}

/// A function that ours ask; null until it was found. [MT]
template <class Function>
class AskedFunction {
  public:
    explicit constexpr AskedFunction(const char* name) : name_(name) {}

    Function* get() const noexcept { return reinterpret_cast<Function*>(found_.load(std::memory_order_acquire)); }
    /// In the library that has `function`.
    void find_beside(void* function) noexcept {
        Dl_info info;
        if (get() != nullptr || function == nullptr || dladdr(function, &info) == 0) return;
        void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        void* found = library != nullptr ? dlsym(library, name_) : nullptr;
        if (library != nullptr) dlclose(library);
        if (found == nullptr) found = dlsym(RTLD_DEFAULT, name_);  // a tool stands before the library
        found_.store(found, std::memory_order_release);
    }

  private:
    const char* name_;
    std::atomic<void*> found_{nullptr};
};

}  // namespace numsan
