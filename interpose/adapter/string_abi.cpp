#include "interpose/adapter/string_abi.h"

#include <dlfcn.h>

namespace numsan {
namespace {

// c10::detail::torchCheckFail(const char*, const char*, uint32_t, const std::string&)
constexpr const char* kOld = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs";
constexpr const char* kLibcxx =
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt3__112basic_stringIcNS3_11char_traitsIcEENS3_9allocatorIcEEEE";

}  // namespace

StringAbi string_abi(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // what it is linked to is searched, too
    if (handle == nullptr) return StringAbi::Cxx11;
    const StringAbi abi = dlsym(handle, kOld) != nullptr      ? StringAbi::Old
                          : dlsym(handle, kLibcxx) != nullptr ? StringAbi::Libcxx
                                                              : StringAbi::Cxx11;
    dlclose(handle);
    return abi;
}

}  // namespace numsan
