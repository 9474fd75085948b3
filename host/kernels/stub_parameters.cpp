#include "host/kernels/stub_parameters.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "host/kernels/parameter_types.h"
#include "host/stacks/debug_info.h"
#include "host/stacks/launch_stub.h"
#include "host/stacks/return_addresses.h"

namespace numsan {
namespace {

/// A function that was inlined, or has its code elsewhere, is declared in a place of its own.
Dwarf_Die declared(Dwarf_Die function) {
    Dwarf_Attribute attribute;
    Dwarf_Die origin;
    Dwarf_Attribute* const found = libdw().dwarf_attr(&function, DW_AT_abstract_origin, &attribute);
    return found != nullptr && libdw().dwarf_formref_die(found, &origin) != nullptr ? origin : function;
}

StubParameters parameters_of(Dwarf_Die stub) {
    StubParameters parameters;
    Dwarf_Die function = declared(stub), child;
    if (libdw().dwarf_child(&function, &child) != 0) return parameters;
    do {
        if (libdw().dwarf_tag(&child) != DW_TAG_formal_parameter) continue;
        Dwarf_Attribute attribute;
        Dwarf_Die type{};
        Dwarf_Attribute* const found = libdw().dwarf_attr_integrate(&child, DW_AT_type, &attribute);
        const bool typed = found != nullptr && libdw().dwarf_formref_die(found, &type) != nullptr;
        const auto argument = static_cast<int16_t>(parameters.count++);
        if (typed)
            add_parts_of(type, argument, parameters.parts);
        else
            parameters.parts.push_back({.use = KernelParameter::Use::Unknown, .argument = argument});
    } while (libdw().dwarf_siblingof(&child, &child) == 0);
    return parameters;
}

using Scopes = std::unique_ptr<Dwarf_Die, decltype(&std::free)>;

/// Of the stub that has code at the address, where the driver has its kernel under that symbol.
template <class Is>
std::optional<StubParameters> at_address(Dwfl_Module* module, Dwarf_Addr address, std::string_view symbol,
                                         Is is_symbol) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = DebugInfo::unit_of(module, address, bias);
    Dwarf_Die *innermost = nullptr, *all = nullptr;
    if (unit == nullptr || libdw().dwarf_getscopes(unit, address - bias, &innermost) <= 0) return std::nullopt;
    const Scopes owned(innermost, std::free);
    const int count = libdw().dwarf_getscopes_die(&innermost[0], &all);
    const Scopes scopes(all, std::free);
    for (int i = 0; i < count; ++i) {
        const char* const name = libdw().dwarf_diename(&all[i]);
        const std::string_view kernel = kernel_of_stub(name != nullptr ? name : "");
        if (!kernel.empty() && is_symbol(kernel, symbol)) return parameters_of(all[i]);
    }
    return std::nullopt;
}

/// For stubs among the symbols of each binary: of a kernel that is launched by cudaLaunchCooperativeKernel(), say. It
/// has the types of its parameters in its name, or it might be another one.
struct Search {
    static constexpr int kMost = 4;  ///< symbols with the kernel's name in theirs
    const char* symbol;
    int count = 0;
    std::pair<Dwfl_Module*, Dwarf_Addr> found[kMost] = {};
};

/// Called through libdw: throws nothing.
int search_symbols(Dwfl_Module* module, void**, const char*, Dwarf_Addr, void* data) noexcept {
    auto& search = *static_cast<Search*>(data);
    const int count = libdw().dwfl_module_getsymtab(module);
    for (int i = 1; i < count && search.count < Search::kMost; ++i) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        const char* const name =
            libdw().dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
        const char* const stub = name != nullptr ? std::strstr(name, "__device_stub__Z") : nullptr;
        if (stub != nullptr && GELF_ST_TYPE(symbol.st_info) == STT_FUNC && std::strstr(stub, search.symbol) != nullptr)
            search.found[search.count++] = {module, address};
    }
    return search.count < Search::kMost ? DWARF_CB_OK : DWARF_CB_ABORT;
}

}  // namespace

[[gnu::noinline]] std::optional<StubParameters> stub_parameters(const char* symbol) {
    const DebugInfo debug_info;
    if (symbol == nullptr || debug_info.process() == nullptr) return std::nullopt;
    ReturnAddresses stack;
    read_return_addresses(stack);
    for (int i = 0; i < stack.count; ++i) {
        const uintptr_t call = stack.address[i] - 1;
        Dwfl_Module* const module = debug_info.module_at(call);
        if (module == nullptr) continue;
        if (auto found = at_address(module, call, symbol, may_be_kernel)) return found;
    }
    if (!std::string_view(symbol).starts_with("_Z")) return std::nullopt;
    Search search{symbol};
    libdw().dwfl_getmodules(debug_info.process(), search_symbols, &search, 0);
    for (int i = 0; i < search.count; ++i) {
        const auto& [module, address] = search.found[i];
        if (auto found = at_address(module, address, symbol, std::equal_to<std::string_view>())) return found;
    }
    return std::nullopt;
}

}  // namespace numsan
