// Which C++ library's strings a torch was built with: what is compiled against it must take the same.
#pragma once

#include <cstdint>
#include <string>

namespace numsan {

enum class StringAbi : uint8_t {
    Cxx11,   ///< libstdc++, as it is by default since GCC 5; also where torch does not say
    Old,     ///< libstdc++ with _GLIBCXX_USE_CXX11_ABI=0, as torch's wheels were before 2.6
    Libcxx,  ///< LLVM's
};

/// By what a function of c10 that takes a string is called. Cxx11 where `library` is not mapped into this process.
StringAbi string_abi(const std::string& library);

}  // namespace numsan
