// Root causes, generated from categories.def. Depends on nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace numsan {

/// A row of categories.def. Literals: valid for ever.
struct Category {
    const char* id;  ///< N1
    const char* slug;
    const char* name;
    const char* definition;
    const char* taxonomy;
};

inline constexpr Category kCategories[] = {
#define NUMSAN_CATEGORY(id, slug, name, definition, taxonomy) {id, slug, name, definition, taxonomy},
#include "host/finding/categories.def"
#undef NUMSAN_CATEGORY
};

/// One of them.
class CategoryId {
  public:
    /// "N3", "U"; one that does not exist does not compile.
    consteval CategoryId(const char* id) : row_(row_of(id)) {}

    /// That of a row. Precondition: there is one.
    constexpr explicit CategoryId(size_t row) : row_(static_cast<uint8_t>(row)) {}

    constexpr const Category& info() const { return kCategories[row_]; }
    bool operator==(const CategoryId&) const = default;

  private:
    friend class CategorySet;

    static consteval uint8_t row_of(std::string_view id) {
        for (size_t row = 0; row < std::size(kCategories); ++row) {
            if (id == kCategories[row].id) return static_cast<uint8_t>(row);
        }
        throw "no such category";
    }

    uint8_t row_;
};

constexpr const char* to_string(CategoryId category) { return category.info().id; }

/// Some of them.
class CategorySet {
  public:
    constexpr CategorySet() = default;

    /// Ids between spaces.
    consteval CategorySet(const char* ids) {
        for (std::string_view rest = ids; !rest.empty();) {
            const std::string_view id = rest.substr(0, rest.find(' '));
            bits_ |= uint32_t(1) << CategoryId::row_of(id);
            rest.remove_prefix(id.size() == rest.size() ? id.size() : id.size() + 1);
        }
    }

    constexpr bool empty() const { return bits_ == 0; }
    constexpr bool contains(CategoryId category) const { return (bits_ >> category.row_ & 1) != 0; }

  private:
    static_assert(std::size(kCategories) <= 32);
    uint32_t bits_ = 0;
};

}  // namespace numsan
