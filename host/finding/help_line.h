// One change to try, and of what kind it is; kinds are generated from fix_kinds.def. Depends on nothing.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace numsan {

/// A row of fix_kinds.def. Literals: valid for ever.
struct FixKind {
    const char* id;  ///< clamp
    const char* meaning;
};

inline constexpr FixKind kFixKinds[] = {
#define NUMSAN_FIX_KIND(id, meaning) {#id, meaning},
#include "host/finding/fix_kinds.def"
#undef NUMSAN_FIX_KIND
};

/// Some of them.
class FixKinds {
  public:
    constexpr FixKinds() = default;

    /// Ids between spaces; one that does not exist does not compile.
    consteval FixKinds(const char* ids) {
        for (std::string_view rest = ids; !rest.empty();) {
            const std::string_view id = rest.substr(0, rest.find(' '));
            bits_ |= uint32_t(1) << row_of(id);
            rest.remove_prefix(id.size() == rest.size() ? id.size() : id.size() + 1);
        }
    }

    constexpr bool empty() const { return bits_ == 0; }

    /// Of the kind in this row of kFixKinds.
    constexpr bool contains(size_t row) const { return (bits_ >> row & 1) != 0; }
    bool operator==(const FixKinds&) const = default;

  private:
    static_assert(std::size(kFixKinds) <= 32);

    static consteval size_t row_of(std::string_view id) {
        for (size_t row = 0; row < std::size(kFixKinds); ++row) {
            if (id == kFixKinds[row].id) return row;
        }
        throw "no such kind of fix";
    }

    uint32_t bits_ = 0;
};

/// A sentence of help.
struct HelpLine {
    std::string text;
    FixKinds fixes;
};

}  // namespace numsan
