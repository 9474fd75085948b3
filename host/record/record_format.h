// The format of a recording, version 5. Numbers of a header are little-endian.
//
//     file   = "NUMSAN-RECORDING" version:u8 block*
//     block  = 'B' stored:u32 plain:u32 check:u32 bytes[stored]    bytes: zlib's format; check: their CRC-32
//     plain  = record*                                             `plain` bytes when inflated
//     record = kind:u8 length:number bytes[length]                 no record goes beyond its block
//
// A number has seven bits a byte, the lowest first, and the high bit set in all but its last byte; a signed number n is
// written as the number 2n or -2n - 1. fields.h lists the fields of each kind in their order; an address is written by
// its number in the order in which addresses first occur, followed by its eight bytes when it is new.
//
// What was written before a process was killed is whole blocks, and the rest of one. The first record is the Run. An Op
// or a Stack comes before the first segment that names it. The last record of a run that ended is its End.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace numsan {

enum class RecordKind : uint8_t { None, Run, Op, Stack, Segment, ThreadEnd, Stopped, End };
inline constexpr uint64_t kLastRecordKind = static_cast<uint64_t>(RecordKind::End);

inline constexpr std::string_view kRecordMagic = "NUMSAN-RECORDING";
inline constexpr uint8_t kRecordVersion = 5;
inline constexpr size_t kFileHeader = kRecordMagic.size() + 1;

inline constexpr char kBlockMark = 'B';
inline constexpr size_t kBlockHeader = 13;
inline constexpr uint32_t kMostPlain = 64u << 20;   ///< bytes of a block; a record that is larger cannot be written
inline constexpr uint32_t kMostStored = 65u << 20;  ///< what zlib makes of them at most

}  // namespace numsan
