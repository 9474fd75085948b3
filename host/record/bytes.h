// Plain data as bytes and back: one list of fields for both directions (see fields.h).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/base/ids.h"

namespace numsan {

/// What was read is not what a recorder writes.
class RecordError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Addresses are identities here, and programs use the same ones again and again: each is written once, then by number.
class AddressWriter {
  public:
    /// True: it is new, and its number is the count of those before it.
    bool number(uint64_t address, uint64_t& number) {
        const auto [it, added] = numbers_.try_emplace(address, numbers_.size());
        number = it->second;
        return added;
    }

  private:
    std::unordered_map<uint64_t, uint64_t> numbers_{{0, 0}};
};
using AddressList = std::vector<uint64_t>;  ///< by number; 0 is null

/// Appends. Whole numbers take as many bytes as they need.
class ByteWriter {
  public:
    static constexpr bool kReads = false;

    explicit ByteWriter(AddressWriter& addresses) : addresses_(addresses) {}

    void bytes(const void* data, size_t count) { out_.append(static_cast<const char*>(data), count); }
    void number(uint64_t value) {
        for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
        out_ += static_cast<char>(value);
    }
    void signed_number(int64_t value) {
        number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
    }
    void address(const void* value) {
        uint64_t known = 0;
        const auto bits = std::bit_cast<uint64_t>(value);
        const bool added = addresses_.number(bits, known);
        number(known);
        if (added) bytes(&bits, sizeof bits);
    }
    void text(std::string_view value) {
        number(value.size());
        bytes(value.data(), value.size());
    }

    std::string& out() { return out_; }

  private:
    std::string out_;
    AddressWriter& addresses_;
};

/// Throws RecordError where the bytes end too soon or are out of range.
class ByteReader {
  public:
    static constexpr bool kReads = true;

    ByteReader(std::string_view in, AddressList& addresses) : in_(in), addresses_(addresses) {}

    void bytes(void* into, size_t count) {
        if (count > in_.size()) throw RecordError("a value is cut short");
        std::memcpy(into, in_.data(), count);
        in_.remove_prefix(count);
    }
    uint64_t number() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            uint8_t byte = 0;
            bytes(&byte, 1);
            value |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if ((byte & 0x80) == 0) return value;
        }
        throw RecordError("a number has too many digits");
    }
    int64_t signed_number() {
        const uint64_t value = number();
        return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
    }
    const void* address() {
        const uint64_t known = number();
        if (known > addresses_.size()) throw RecordError("an address that was not written before");
        if (known == addresses_.size()) {
            uint64_t bits = 0;
            bytes(&bits, sizeof bits);
            addresses_.push_back(bits);
        }
        return std::bit_cast<const void*>(addresses_[known]);
    }
    std::string text() {
        const uint64_t size = number();
        if (size > in_.size()) throw RecordError("a text is cut short");
        std::string value(in_.substr(0, size));
        in_.remove_prefix(size);
        return value;
    }
    /// For lists: no more elements than there are bytes.
    size_t count() {
        const uint64_t value = number();
        if (value > in_.size()) throw RecordError("a list is cut short");
        return static_cast<size_t>(value);
    }
    bool empty() const { return in_.empty(); }
    size_t left() const { return in_.size(); }

  private:
    std::string_view in_;
    AddressList& addresses_;
};

template <class Bytes, class T>
void transfer(Bytes& b, T& value);

/// An enumerator or a small number up to `most`.
template <class Bytes, class T>
void transfer_choice(Bytes& b, T& value, uint64_t most) {
    if constexpr (Bytes::kReads) {
        const uint64_t read = b.number();
        if (read > most) throw RecordError("a value is out of range");
        value = static_cast<T>(read);
    } else {
        b.number(static_cast<uint64_t>(value));
    }
}

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class K, class V>
struct IsMap<std::map<K, V>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};

/// Writes or reads one value; of a struct what fields(bytes, value) lists.
template <class Bytes, class T>
void transfer(Bytes& b, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        if constexpr (Bytes::kReads)
            value = b.text();
        else
            b.text(value);
    } else if constexpr (std::is_same_v<T, bool>) {
        transfer_choice(b, value, 1);
    } else if constexpr (std::is_same_v<T, double>) {
        b.bytes(&value, sizeof value);
    } else if constexpr (std::is_same_v<T, const void*>) {
        if constexpr (Bytes::kReads)
            value = b.address();
        else
            b.address(value);
    } else if constexpr (std::is_integral_v<T>) {
        if constexpr (!Bytes::kReads) {
            if constexpr (std::is_signed_v<T>)
                b.signed_number(value);
            else
                b.number(value);
        } else if constexpr (std::is_signed_v<T>) {
            const int64_t read = b.signed_number();
            value = static_cast<T>(read);
            if (value != read) throw RecordError("a number is out of range");
        } else {
            const uint64_t read = b.number();
            value = static_cast<T>(read);
            if (value != read) throw RecordError("a number is out of range");
        }
    } else if constexpr (std::is_same_v<T, OpSeq>) {
        int64_t count = number(value);
        transfer(b, count);
        if constexpr (Bytes::kReads) value = OpSeq{count};
    } else if constexpr (IsOptional<T>::value) {
        bool there = value.has_value();
        transfer(b, there);
        if constexpr (Bytes::kReads) value = there ? T(std::in_place) : T();
        if (there) transfer(b, *value);
    } else if constexpr (IsVector<T>::value) {
        if constexpr (Bytes::kReads) {
            value.clear();
            for (size_t left = b.count(); left > 0; --left) transfer(b, value.emplace_back());
        } else {
            b.number(value.size());
            for (auto& element : value) transfer(b, element);
        }
    } else if constexpr (IsMap<T>::value) {
        if constexpr (Bytes::kReads) {
            value.clear();
            for (size_t left = b.count(); left > 0; --left) {
                typename T::key_type key{};
                transfer(b, key);
                transfer(b, value[std::move(key)]);
            }
        } else {
            b.number(value.size());
            for (auto& [key, mapped] : value) {
                auto copy = key;
                transfer(b, copy);
                transfer(b, mapped);
            }
        }
    } else if constexpr (IsPair<T>::value) {
        transfer(b, value.first);
        transfer(b, value.second);
    } else {
        fields(b, value);
    }
}

/// Of a value that stays as it is.
template <class T>
void write(ByteWriter& b, const T& value) {
    transfer(b, const_cast<T&>(value));  // a writer changes nothing
}

}  // namespace numsan
