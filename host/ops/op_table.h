// The rows of operators.def, found by name. The core asks for them by traits_of(); the adapter, a library of its own,
// has a copy for the two questions at the end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/ops/op_traits.h"

namespace numsan::op_table {

constexpr auto make_rows() {
    using enum Form;
    using enum OpClass;
    using enum Total;
    constexpr KindSet kAll = kNaN | kAnyInf;
    return std::array{
#define NUMSAN_OPERATOR(text, ...) OpTraits{.names = text, __VA_ARGS__},
#include "host/ops/operators.def"
#undef NUMSAN_OPERATOR
    };
}
inline constexpr auto kRows = make_rows();
inline constexpr OpTraits kEmptyRow{};

/// Calls each(name) for the names of a row.
template <class Each>
constexpr void each_name(std::string_view names, Each&& each) {
    while (!names.empty()) {
        const size_t end = std::min(names.find(' '), names.size());
        each(names.substr(0, end));
        names.remove_prefix(std::min(end + 1, names.size()));
    }
}

struct Named {
    std::string_view name;
    uint16_t row = 0;
};

constexpr size_t count_names() {
    size_t count = 0;
    for (const OpTraits& row : kRows) each_name(row.names, [&](std::string_view) { ++count; });
    return count;
}

constexpr auto make_index() {
    std::array<Named, count_names()> index{};
    size_t next = 0;
    for (size_t row = 0; row < kRows.size(); ++row) {
        each_name(kRows[row].names, [&](std::string_view name) { index[next++] = {name, static_cast<uint16_t>(row)}; });
    }
    std::sort(index.begin(), index.end(), [](const Named& a, const Named& b) { return a.name < b.name; });
    return index;
}
inline constexpr auto kIndex = make_index();
static_assert(std::adjacent_find(kIndex.begin(), kIndex.end(),
                                 [](const Named& a, const Named& b) { return a.name == b.name; }) == kIndex.end(),
              "a name stands in two rows of operators.def");

/// The row of a plain name.
constexpr const OpTraits& row_of(std::string_view plain) noexcept {
    const auto* const it =
        std::lower_bound(kIndex.begin(), kIndex.end(), plain,
                         [](const Named& named, std::string_view name) { return named.name < name; });
    return it != kIndex.end() && it->name == plain ? kRows[it->row] : kEmptyRow;
}

inline constexpr std::string_view kAten = "aten::";

/// The class that the table gives an operator by its full name ("aten::copy_"); Other where its schema decides. What a
/// row says of the class holds for operators over lists only where these write their tensors whole.
constexpr OpClass listed_class(std::string_view full_name) noexcept {
    if (full_name.substr(0, kAten.size()) != kAten) return OpClass::Other;
    const std::string_view name = full_name.substr(kAten.size());
    const std::string_view plain = plain_op_name(name);
    const OpTraits& row = row_of(plain);
    const OpClass listed = name.size() > plain.size() && name.back() == '_' ? row.in_place : row.op_class;
    const bool lists = name.substr(0, 9) == "_foreach_";
    return lists && listed != OpClass::Overwriting ? OpClass::Other : listed;
}

/// What the operator computes of integers whose result may not fit its type, by its full name.
constexpr IntegerOp integer_op(std::string_view full_name) noexcept {
    if (full_name.substr(0, kAten.size()) != kAten || full_name.substr(kAten.size(), 9) == "_foreach_")
        return IntegerOp::None;
    switch (row_of(plain_op_name(full_name)).form) {
        case Form::Add: return IntegerOp::Add;
        case Form::Subtract: return IntegerOp::Subtract;
        case Form::SubtractFrom: return IntegerOp::SubtractFrom;
        case Form::Multiply: return IntegerOp::Multiply;
        case Form::Power: return IntegerOp::Power;
        case Form::Cast: return IntegerOp::Cast;
        case Form::Sum:
        case Form::Product:
        case Form::MatrixProduct: return IntegerOp::Gather;
        default: return IntegerOp::None;
    }
}

}  // namespace numsan::op_table
