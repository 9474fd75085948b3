// The ways in which a bad value can come about, generated from mechanisms.def. Depends on nothing.
#pragma once

#include <cstdint>

namespace numsan {

enum class Mechanism : uint8_t {
    None,  ///< of values that need none: infinities that the program wrote down
#define NUMSAN_MECHANISM(code, id, name, meaning) id,
#include "host/finding/mechanisms.def"
#undef NUMSAN_MECHANISM
};

/// A row of mechanisms.def. Literals: valid for ever.
struct MechanismInfo {
    Mechanism value;
    const char* code;  ///< NS101
    const char* id;    ///< DOM
    const char* name;
    const char* meaning;
};

inline constexpr MechanismInfo kMechanisms[] = {
#define NUMSAN_MECHANISM(code, id, name, meaning) {Mechanism::id, code, #id, name, meaning},
#include "host/finding/mechanisms.def"
#undef NUMSAN_MECHANISM
};

/// Null for None.
constexpr const MechanismInfo* info(Mechanism mechanism) {
    return mechanism == Mechanism::None ? nullptr : &kMechanisms[static_cast<int>(mechanism) - 1];
}

/// "DOM"; empty for None.
constexpr const char* to_string(Mechanism mechanism) {
    const MechanismInfo* row = info(mechanism);
    return row != nullptr ? row->id : "";
}

/// Some of them.
class MechanismSet {
  public:
    constexpr MechanismSet() = default;

    /// Ids between spaces; one that does not exist does not compile.
    consteval MechanismSet(const char* ids) {
        while (*ids != '\0') {
            const int index = index_of(ids);
            bits_ |= uint32_t(1) << index;
            for (const char* id = kMechanisms[index].id; *id != '\0'; ++id) ++ids;
            if (*ids == ' ') ++ids;
        }
    }

    constexpr bool empty() const { return bits_ == 0; }
    constexpr bool contains(Mechanism mechanism) const {
        return mechanism != Mechanism::None && (bits_ >> (static_cast<int>(mechanism) - 1) & 1) != 0;
    }

  private:
    static_assert(sizeof kMechanisms / sizeof kMechanisms[0] <= 32);

    static consteval int index_of(const char* word) {
        int index = 0;
        for (const MechanismInfo& row : kMechanisms) {
            const char* at = word;
            const char* id = row.id;
            while (*id != '\0' && *id == *at) ++id, ++at;
            if (*id == '\0' && (*at == '\0' || *at == ' ')) return index;
            ++index;
        }
        throw "no such mechanism";
    }

    uint32_t bits_ = 0;
};

}  // namespace numsan
