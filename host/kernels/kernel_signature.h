// What the name of a kernel says of its parameters. Names of C++ functions have the types of their parameters in them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/dtype.h"

namespace numsan {

/// One parameter of a kernel.
struct KernelParameter {
    enum class Use : uint8_t {
        Value,    ///< an integer, or memory that is not written
        Number,   ///< a float or a double, by value
        Reads,    ///< points to floating-point numbers that the kernel does not write
        Writes,   ///< points to floating-point numbers that it may write
        Others,   ///< points to integers that it may write
        Unknown,  ///< may lead to memory of any type: a struct, a void*
    };
    Use use = Use::Value;
    DType dtype = DType::Float32;  ///< of Number, Reads and Writes
    int16_t argument = 0;          ///< its place among those of the kernel
    int32_t offset = 0;            ///< bytes from where the argument begins to the pointer or number: of a struct
    int64_t count = 0;             ///< numbers that the buffer has; 0: it goes on to its end
    bool declared = false;         ///< by a user, or of a kernel with a C name: there may be no such argument

    bool is_buffer() const { return use == Use::Reads || use == Use::Writes || use == Use::Others; }
};

/// A kernel, by its name in the driver and what else is known of it.
struct KernelSignature {
    std::string name;             ///< "ns::scale<float>", without what it returns and takes
    std::string with_parameters;  ///< "ns::scale<float>(float*, int)"
    int count = 0;                ///< of arguments
    std::vector<KernelParameter> parameters;

    bool has(KernelParameter::Use use) const;
};

/// Of a C++ type that has numbers in it, by its name: "__half", "float4". Of vectors and complex numbers those of their
/// parts. None: it is no such type.
std::optional<DType> number_type(std::string_view name);

/// None for a name that is not one of C++'s, so not mangled (extern "C", Triton), or that is not understood. Throws
/// std::bad_alloc.
std::optional<KernelSignature> kernel_signature(const char* symbol);

}  // namespace numsan
