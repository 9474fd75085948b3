#include "host/kernels/kernel_signature.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace numsan {
namespace {

using Use = KernelParameter::Use;

/// Types that kernels have numbers in, as the demangler writes them. Of vectors and complex numbers those of their
/// parts are looked at one by one.
struct NamedType {
    std::string_view name;
    DType dtype;
};
constexpr NamedType kFloating[] = {
    {"float", DType::Float32},
    {"float1", DType::Float32},
    {"float2", DType::Float32},
    {"float3", DType::Float32},
    {"float4", DType::Float32},
    {"cuda::std::__4::complex<float>", DType::Float32},
    {"thrust::complex<float>", DType::Float32},
    {"double", DType::Float64},
    {"double1", DType::Float64},
    {"double2", DType::Float64},
    {"double3", DType::Float64},
    {"double4", DType::Float64},
    {"cuda::std::__4::complex<double>", DType::Float64},
    {"thrust::complex<double>", DType::Float64},
    {"__half", DType::Float16},
    {"__half2", DType::Float16},
    {"__nv_bfloat16", DType::BFloat16},
    {"__nv_bfloat162", DType::BFloat16},
    {"__nv_fp8_e4m3", DType::Float8E4M3Fn},
    {"__nv_fp8_e5m2", DType::Float8E5M2},
};

/// What no floating-point number lies in. `char` and the types of 16 bits that stand for half floats are none of them:
/// bytes of anything are handed over as those.
constexpr std::string_view kIntegers[] = {"bool",      "int",           "unsigned int", "long",
                                          "long long", "unsigned long", "short",        "unsigned long long"};
constexpr std::string_view kBytes[] = {"char", "signed char", "unsigned char", "unsigned short"};

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool drop_end(std::string_view& text, std::string_view end) {
    if (!text.ends_with(end)) return false;
    text.remove_suffix(end.size());
    return true;
}

KernelParameter parameter(std::string_view text) {
    const auto is_number = [](std::string_view name) {
        return number_type(name) || is_one_of(name, kIntegers) || is_one_of(name, kBytes);
    };
    if (!drop_end(text, "*")) {
        if (text == "float" || text == "double") return {.use = Use::Number, .dtype = *number_type(text)};
        return {.use = is_number(text) ? Use::Value : Use::Unknown};
    }
    drop_end(text, " volatile");
    const bool constant = drop_end(text, " const");
    if (const std::optional<DType> dtype = number_type(text))
        return {.use = constant ? Use::Reads : Use::Writes, .dtype = *dtype};
    // What is only read through a pointer may be a struct of further pointers.
    if (constant && (is_one_of(text, kIntegers) || is_one_of(text, kBytes))) return {.use = Use::Value};
    return {.use = is_one_of(text, kIntegers) ? Use::Others : Use::Unknown};
}

/// Where the list of parameters begins in a demangled function, which ends with it; npos: nowhere.
size_t list_of(std::string_view text) {
    if (!text.ends_with(')')) return std::string_view::npos;
    int depth = 0;
    for (size_t at = text.size(); at-- > 0;) {
        if (text[at] == ')') ++depth;
        if (text[at] == '(' && --depth == 0) return at;
    }
    return std::string_view::npos;
}

/// The parts of a list between its commas; those within brackets do not count. None where brackets do not match.
std::optional<std::vector<std::string_view>> parts_of(std::string_view list) {
    std::vector<std::string_view> parts;
    int depth = 0;
    size_t begin = 0;
    for (size_t at = 0; at <= list.size(); ++at) {
        const char c = at < list.size() ? list[at] : ',';
        if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
        if ((c == ')' || c == '>' || c == ']' || c == '}') && --depth < 0) return std::nullopt;
        if (c != ',' || (depth > 0 && at < list.size())) continue;
        while (begin < at && list[begin] == ' ') ++begin;
        parts.push_back(list.substr(begin, at - begin));
        begin = at + 1;
    }
    return depth == 0 ? std::optional(parts) : std::nullopt;
}

}  // namespace

std::optional<DType> number_type(std::string_view name) {
    for (const NamedType& type : kFloating) {
        if (type.name == name) return type.dtype;
    }
    return std::nullopt;
}

bool KernelSignature::has(KernelParameter::Use use) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const KernelParameter& p) { return p.use == use; });
}

std::optional<KernelSignature> kernel_signature(const char* symbol) {
    if (symbol == nullptr) return std::nullopt;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                                std::free);
    if (status == -1) throw std::bad_alloc();
    if (status != 0 || demangled == nullptr) return std::nullopt;
    std::string_view text = demangled.get();
    const size_t list = list_of(text);
    if (list == std::string_view::npos) return std::nullopt;  // a variable, a type
    const std::string_view inside = text.substr(list + 1, text.size() - list - 2);
    KernelSignature signature;
    constexpr std::string_view kVoid = "void ";  // what a function made from a template returns is in its name
    std::string_view name = text.substr(0, list);
    if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
    signature.name = name;
    signature.with_parameters = std::string(name) + std::string(text.substr(list));
    if (inside.empty()) return signature;
    const auto parts = parts_of(inside);
    if (!parts) return std::nullopt;
    for (const std::string_view part : *parts) {
        signature.parameters.push_back(parameter(part));
        signature.parameters.back().argument = static_cast<int16_t>(signature.count++);
    }
    return signature;
}

}  // namespace numsan
