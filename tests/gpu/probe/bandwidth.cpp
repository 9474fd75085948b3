// The rate of a scan beside that of a device copy, by lane kind and size, from a cold and a warm L2.
#include <algorithm>
#include <vector>

#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {
namespace {

constexpr int kTurns = 7;
constexpr unsigned char kFiniteByte = 0x3c;   // a finite number of every type
constexpr size_t kMoved = size_t(256) << 20;  // by one train, about

/// One type for each way in which lanes are packed, float32 first.
std::vector<DType> one_of_each_lane_kind() {
    std::vector<DType> types{DType::Float32};
    for (int i = 0; i < kDTypeCount; ++i) {
        const auto type = static_cast<DType>(i);
        const bool known = std::any_of(types.begin(), types.end(), [&](DType other) {
            return lane_kind_of(info(other)) == lane_kind_of(info(type));
        });
        if (!known) types.push_back(type);
    }
    return types;
}

class Rates {
  public:
    Rates(Phase& phase, size_t largest)
        : phase_(phase),
          l2_(phase.subject.l2_bytes() != 0 ? phase.subject.l2_bytes() : size_t(64) << 20),
          pool_(std::max(largest, std::min(2 * l2_, 8 * largest))),
          source_(pool_),
          target_(pool_),
          others_(std::min(2 * l2_, 8 * largest)),
          flush_(table_of(phase.subject, others_.data(), others_.bytes(), DType::Float32)) {
        others_.fill(kFiniteByte, stream_);
        source_.fill(kFiniteByte, stream_);
        target_.fill(kFiniteByte, stream_);
        stream_.synchronize();
    }

    /// Cold: before a train as much other memory is read as L2 holds twice, and its launches read memory that none of
    /// it has read. Warm: all launches read the same memory, which L2 has room for.
    Json measure(DType dtype, size_t bytes, bool cold) {
        const auto count = static_cast<size_t>(std::clamp<size_t>(kMoved / bytes, 2, kTrain));
        const size_t places = cold ? std::clamp<size_t>(pool_ / bytes, 1, count) : 1;
        const size_t step = places > 1 ? (pool_ - bytes) / (places - 1) / 256 * 256 : 0;
        std::vector<Table> tables;
        for (size_t i = 0; i < places; ++i)
            tables.push_back(table_of(phase_.subject, source_.data(i * step), bytes, dtype));
        std::vector<double> scans, copies, shares;
        for (int turn = -1; turn < kTurns && (turn < 1 || !phase_.is_over()); ++turn) {
            const double scan = train(count, cold, [&](size_t i) { tables[i % places].launch(stream_); });
            const double copy = train(count, cold, [&](size_t i) {
                const size_t at = i % places * step;
                check("cuMemcpyDtoDAsync", gpu().copy(target_.at(at), source_.at(at), bytes, stream_));
            });
            if (turn < 0) continue;  // the first is not like the others
            scans.push_back(scan);
            copies.push_back(copy);
            if (scan > 0) shares.push_back(copy / (2 * scan));
        }
        const auto rate = [&](const std::vector<double>& times, double moved) {
            const double time = median(times);
            return time > 0 ? Json(moved / time / 1e3) : Json(nullptr);
        };
        return {{"type", info(dtype).name},
                {"bytes", bytes},
                {"l2", cold ? "cold" : "warm"},
                {"launches", count},
                {"places", places},
                {"scan_microseconds", spread(scans)},
                {"copy_microseconds", spread(copies)},
                {"scan_gb_per_s", rate(scans, double(bytes))},
                {"copy_gb_per_s", rate(copies, 2 * double(bytes))},
                {"of_copy", spread(shares)}};
    }

    size_t l2() const { return l2_; }
    size_t pool() const { return pool_; }

  private:
    template <class Work>
    double train(size_t count, bool cold, Work work) {
        const auto flush = [&] {
            if (cold) flush_.launch(stream_);  // reading, as what is written has to go back to memory in the train
        };
        return device_microseconds(stream_, int(count), flush, [&](int i) { work(size_t(i)); }) / double(count);
    }

    Phase& phase_;
    const size_t l2_, pool_;
    Stream stream_;
    Buffer source_, target_, others_;
    Table flush_;
};

}  // namespace

void bandwidth(Phase& phase) {
    const size_t largest = phase.subject.fitting(size_t(1) << 30, 4);
    Rates rates(phase, largest);
    phase.data["what"] =
        "device time by events, a train of launches; rates count bytes read, of the copy read and written";
    phase.data["l2_bytes_assumed"] = rates.l2();
    phase.data["pool_bytes"] = rates.pool();
    Json& rows = phase.data["rows"] = Json::array();
    for (const DType dtype : one_of_each_lane_kind()) {
        for (size_t bytes = 1024; bytes <= largest; bytes *= 4) {
            for (const bool cold : {true, false}) {
                if (phase.is_over()) break;
                if (cold || bytes <= rates.l2() / 4) rows.push_back(rates.measure(dtype, bytes, cold));
            }
        }
        if (phase.is_over()) break;
        phase.note();
    }
    if (!take_hits(phase.subject).empty()) throw Wrong("finite values were called bad");
    const auto shown = std::find_if(rows.rbegin(), rows.rend(),
                                    [](const Json& row) { return row["type"] == "float32" && row["l2"] == "cold"; });
    if (shown == rows.rend()) return;
    const Json& row = *shown;
    phase.line = std::to_string(rows.size()) + " rows; float32, " + row["bytes"].dump() + " bytes, cold: scan " +
                 brief(row["scan_gb_per_s"]) + " GB/s, " + brief(row["of_copy"]) + " of a copy's rate";
}

}  // namespace numsan::gpu::probe
