#include "host/stacks/libdw.h"

#include <dlfcn.h>

#include <type_traits>

namespace numsan {

static Libdw load_libdw() {
    Libdw dw{};
    void* const library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dw;
    dw.complete = true;
    const auto load = [&](const char* name, auto& function) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        dw.complete = dw.complete && function != nullptr;
    };
#define NUMSAN_LIBDW(function) load(#function, dw.function);
#include "host/stacks/libdw.def"
#undef NUMSAN_LIBDW
    return dw;
}

const Libdw& libdw() {
    static const Libdw loaded = load_libdw();
    return loaded;
}

}  // namespace numsan
