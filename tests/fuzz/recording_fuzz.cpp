// A recording: read to its end, or refused with a byte of the file. The input is tried as a file and, in a block whose
// checksum agrees, as records: what is read of a record is written and read back equal.
#include <zlib.h>

#include <charconv>

#include "host/record/fields.h"
#include "host/record/record_reader.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

void check_refusal(const std::string& error, size_t bytes) {
    require(one_safe_line(error), "a reason is one safe line", error);
    constexpr std::string_view kStart = "byte ";
    require(error.starts_with(kStart), "a reason names the byte", error);
    size_t byte = 0;
    const auto [end, problem] = std::from_chars(error.data() + kStart.size(), error.data() + error.size(), byte);
    require(problem == std::errc() && *end == ':' && byte <= bytes, "the byte is one of the file's", error);
}

template <class T>
std::string written(const T& value) {
    AddressWriter addresses;
    ByteWriter out(addresses);
    write(out, value);
    return out.out();
}

template <class T>
void check(RecordReader& reader) {
    T value{};
    reader.read(value);
    const std::string once = written(value);
    AddressList addresses{0};
    ByteReader in(once, addresses);
    T again{};
    transfer(in, again);
    require(in.empty() && written(again) == once, "what is written is read back equal");
}

void read_all(const std::string& file) {
    try {
        RecordReader reader([&](uint64_t offset, size_t bytes) {
            return offset < file.size() ? file.substr(offset, bytes) : std::string();
        });
        while (reader.next()) {
            switch (reader.kind()) {
                case RecordKind::Run: check<RunFacts>(reader); break;
                case RecordKind::Op: check<RecordedOp>(reader); break;
                case RecordKind::Stack: check<RecordedStack>(reader); break;
                case RecordKind::Segment: check<Segment>(reader); break;
                case RecordKind::ThreadEnd: check<uint32_t>(reader); break;
                case RecordKind::Stopped: check<std::string>(reader); break;
                case RecordKind::End: check<RunEnd>(reader); break;
                case RecordKind::None: break;
            }
        }
    } catch (const RecordError& error) {
        check_refusal(error.what(), file.size());
    }
}

void put_u32(std::string& to, uint64_t value) {
    for (int i = 0; i < 4; ++i) to += static_cast<char>(value >> (8 * i));
}

}  // namespace

void fuzz_recording(std::string_view input) {
    read_all(std::string(input));
    if (input.empty()) return;
    std::string stored(compressBound(input.size()), '\0');
    uLongf size = stored.size();
    auto* bytes = reinterpret_cast<Bytef*>(stored.data());
    require(compress2(bytes, &size, reinterpret_cast<const Bytef*>(input.data()), input.size(), 1) == Z_OK, "deflated");
    std::string file(kRecordMagic);
    file += static_cast<char>(kRecordVersion);
    file += kBlockMark;
    put_u32(file, size);
    put_u32(file, input.size());
    put_u32(file, crc32(0, bytes, static_cast<uInt>(size)));
    read_all(file + stored.substr(0, size));
}

}  // namespace numsan::fuzz
