#include "host/kernels/parameter_types.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

namespace numsan {
namespace {

using Part = KernelParameter;

constexpr int kMostNested = 8;     ///< structs in structs
constexpr size_t kMostParts = 64;  ///< of an argument
constexpr int kMostElements = 16;  ///< of an array of pointers, or of structs with such

std::optional<Dwarf_Die> type_of(const Dwarf_Die& of) {
    Dwarf_Die die = of, type;
    Dwarf_Attribute attribute;
    Dwarf_Attribute* const found = libdw().dwarf_attr_integrate(&die, DW_AT_type, &attribute);
    if (found == nullptr || libdw().dwarf_formref_die(found, &type) == nullptr) return std::nullopt;
    return type;
}

int tag_of(const Dwarf_Die& die) {
    Dwarf_Die copy = die;
    return libdw().dwarf_tag(&copy);
}

std::optional<Dwarf_Word> number(const Dwarf_Die& die, unsigned name) {
    Dwarf_Die copy = die;
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    Dwarf_Attribute* const found = libdw().dwarf_attr_integrate(&copy, name, &attribute);
    return found != nullptr && libdw().dwarf_formudata(found, &value) == 0 ? std::optional(value) : std::nullopt;
}

bool has(const Dwarf_Die& die, unsigned name) {
    Dwarf_Die copy = die;
    Dwarf_Attribute attribute;
    return libdw().dwarf_attr(&copy, name, &attribute) != nullptr;
}

int64_t size_of(const Dwarf_Die& type) {
    Dwarf_Die copy = type;
    Dwarf_Word bytes = 0;
    return libdw().dwarf_aggregate_size(&copy, &bytes) == 0 ? static_cast<int64_t>(bytes) : -1;
}

/// A type without its other names.
struct Bare {
    std::optional<Dwarf_Die> type;  ///< none: void
    bool constant = false;

    int tag() const { return type ? tag_of(*type) : DW_TAG_unspecified_type; }
};

Bare bare(std::optional<Dwarf_Die> type) {
    Bare found{type};
    for (;;) {
        switch (found.tag()) {
            case DW_TAG_const_type: found.constant = true; [[fallthrough]];
            case DW_TAG_typedef:
            case DW_TAG_volatile_type:
            case DW_TAG_restrict_type:
            case DW_TAG_atomic_type: found.type = type_of(*found.type); continue;
            default: return found;
        }
    }
}

/// "cuda::std::__4::complex<float>"; empty: it has none that others could have.
std::string name_of(const Dwarf_Die& type) {
    Dwarf_Die die = type;
    Dwarf_Die* scopes = nullptr;
    const int count = libdw().dwarf_getscopes_die(&die, &scopes);
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(scopes, std::free);
    std::string name;
    for (int i = 0; i < count; ++i) {
        const int tag = libdw().dwarf_tag(&scopes[i]);
        const char* const part = libdw().dwarf_diename(&scopes[i]);
        if (tag == DW_TAG_compile_unit) break;
        if (part == nullptr) return "";  // in an unnamed namespace: the program's own
        name = i == 0 ? std::string(part) : std::string(part) + "::" + name;
    }
    return name;
}

bool is_struct(int tag) { return tag == DW_TAG_structure_type || tag == DW_TAG_class_type; }

/// Calls visit(type, offset) for each base and member that an object has. False where a place is not known.
template <class Visit>
bool visit_members(const Dwarf_Die& type, Visit visit) {
    Dwarf_Die parent = type, child;
    if (has(type, DW_AT_declaration)) return false;
    if (libdw().dwarf_child(&parent, &child) != 0) return true;
    do {
        const int tag = libdw().dwarf_tag(&child);
        if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
        if (has(child, DW_AT_external)) continue;  // static
        const auto offset = number(child, DW_AT_data_member_location);
        const bool in_bits = has(child, DW_AT_data_bit_offset) || has(child, DW_AT_bit_size);
        if (!offset && in_bits) continue;  // an integer
        const std::optional<Dwarf_Die> of = type_of(child);
        if (!offset || !of || !visit(*of, static_cast<int64_t>(*offset))) return false;
    } while (libdw().dwarf_siblingof(&child, &child) == 0);
    return true;
}

/// What memory of a type holds.
struct Contents {
    enum class What : uint8_t {
        Nothing,   ///< an empty struct
        Numbers,   ///< of `dtype`, one after the other
        Integers,  ///< of a type that holds nothing else
        Bytes,     ///< anything may be handed over as such: `uint4`, `std::byte`
        Mixed,     ///< or not known
    };
    What what;
    DType dtype = DType::Float32;

    Contents beside(const Contents& other) const {
        const auto whole = [](What one) { return one == What::Integers || one == What::Bytes; };
        if (whole(what) && (whole(other.what) || other.what == What::Nothing)) return {What::Bytes};
        if (what == What::Nothing) return whole(other.what) ? Contents{What::Bytes} : other;
        return other.what == What::Nothing || (what == other.what && dtype == other.dtype) ? *this
                                                                                           : Contents{What::Mixed};
    }
};

Contents base_contents(const Dwarf_Die& type) {
    const int64_t bytes = size_of(type);
    switch (number(type, DW_AT_encoding).value_or(0)) {
        case DW_ATE_float:
            if (bytes == 4) return {Contents::What::Numbers, DType::Float32};
            if (bytes == 8) return {Contents::What::Numbers, DType::Float64};
            return {Contents::What::Mixed};
        case DW_ATE_boolean: return {Contents::What::Integers};
        case DW_ATE_signed: return {Contents::What::Integers};
        case DW_ATE_unsigned: return {bytes == 2 ? Contents::What::Bytes : Contents::What::Integers};
        case DW_ATE_signed_char:
        case DW_ATE_unsigned_char: return {Contents::What::Bytes};
        default: return {Contents::What::Mixed};
    }
}

Contents contents_of(const std::optional<Dwarf_Die>& of, int depth) {
    const Bare type = bare(of);
    const int tag = type.tag();
    if (tag == DW_TAG_base_type) return base_contents(*type.type);
    if (tag == DW_TAG_enumeration_type)
        return {size_of(*type.type) <= 2 ? Contents::What::Bytes : Contents::What::Integers};
    if (tag == DW_TAG_array_type) return contents_of(type_of(*type.type), depth);
    if (!is_struct(tag) || depth == kMostNested) return {Contents::What::Mixed};
    if (const auto dtype = number_type(name_of(*type.type))) return {Contents::What::Numbers, *dtype};
    Contents all{Contents::What::Nothing};
    int64_t bytes = 0;
    const bool known = visit_members(*type.type, [&](const Dwarf_Die& member, int64_t) {
        const Contents one = contents_of(member, depth + 1);
        all = all.beside(one);
        if (one.what != Contents::What::Nothing) bytes += size_of(member);
        return all.what != Contents::What::Mixed;
    });
    if (!known) return {Contents::What::Mixed};
    // What lies between members is no number.
    if (all.what == Contents::What::Numbers && bytes != size_of(*type.type)) return {Contents::What::Mixed};
    return all;
}

Part pointer_to(const std::optional<Dwarf_Die>& of) {
    const Contents contents = contents_of(of, 0);
    const bool constant = bare(of).constant;
    switch (contents.what) {
        case Contents::What::Numbers:
            return {.use = constant ? Part::Use::Reads : Part::Use::Writes, .dtype = contents.dtype};
        case Contents::What::Integers: return {.use = constant ? Part::Use::Value : Part::Use::Others};
        case Contents::What::Bytes: return {.use = constant ? Part::Use::Value : Part::Use::Unknown};
        case Contents::What::Nothing:
        case Contents::What::Mixed: return {.use = Part::Use::Unknown};
    }
    return {.use = Part::Use::Unknown};
}

int64_t elements_of(const Dwarf_Die& array) {
    const std::optional<Dwarf_Die> element = type_of(array);
    const int64_t bytes = element ? size_of(*element) : 0, whole = size_of(array);
    return bytes > 0 && whole >= 0 ? whole / bytes : -1;
}

/// The parts of one argument, as its type is gone through.
class Parts {
  public:
    Parts(int16_t argument, std::vector<Part>& parts) : argument_(argument), parts_(parts), first_(parts.size()) {}

    void add(const std::optional<Dwarf_Die>& of, int64_t offset, int depth) {
        const Bare type = bare(of);
        const int tag = type.tag();
        if (tag == DW_TAG_pointer_type) return add(pointer_to(type_of(*type.type)), offset);
        if (tag == DW_TAG_base_type || tag == DW_TAG_enumeration_type) return add_number(*type.type, offset);
        if (tag == DW_TAG_array_type && depth < kMostNested) return add_array(*type.type, offset, depth);
        // The stub is given structs by reference.
        const bool by_reference = tag == DW_TAG_reference_type && depth == 0;
        const Bare whole = by_reference ? bare(type_of(*type.type)) : type;
        if (!is_struct(whole.tag()) || depth == kMostNested) return add({.use = Part::Use::Unknown}, offset);
        const bool known = visit_members(*whole.type, [&](const Dwarf_Die& member, int64_t from) {
            add(member, offset + from, depth + 1);
            return parts_.size() - first_ < kMostParts;
        });
        if (!known) add({.use = Part::Use::Unknown}, offset);
    }

  private:
    void add(Part part, int64_t offset) {
        part.argument = argument_;
        part.offset = static_cast<int32_t>(offset);
        parts_.push_back(part);
    }
    void add_number(const Dwarf_Die& type, int64_t offset) {
        const Contents contents = tag_of(type) == DW_TAG_base_type ? base_contents(type) : Contents{};
        if (contents.what == Contents::What::Numbers) add({.use = Part::Use::Number, .dtype = contents.dtype}, offset);
    }
    void add_array(const Dwarf_Die& array, int64_t offset, int depth) {
        if (const auto what = contents_of(array, 0).what;
            what == Contents::What::Integers || what == Contents::What::Bytes)
            return;
        const std::optional<Dwarf_Die> element = type_of(array);
        const int64_t count = elements_of(array);
        if (count < 0 || count > kMostElements) return add({.use = Part::Use::Unknown}, offset);
        for (int64_t i = 0; i < count; ++i) add(element, offset + i * size_of(*element), depth + 1);
    }

    const int16_t argument_;
    std::vector<Part>& parts_;
    const size_t first_;
};

}  // namespace

void add_parts_of(const Dwarf_Die& type, int16_t argument, std::vector<KernelParameter>& parts) {
    Parts(argument, parts).add(type, 0, 0);
}

}  // namespace numsan
