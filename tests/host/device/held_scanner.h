// A device of made-up tensors: its memory is the host's, what a scan found is told when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "host/base/device_scanner.h"
#include "host/scan/cpu_scanner.h"

namespace numsan {

/// The same view as the adapter shows of a device's memory.
inline TensorView on_device(TensorView view) {
    if ((view.flags & kScannable) != 0) view.flags = (view.flags & ~uint32_t(kScannable)) | kLater;
    view.device = Device::Cuda;
    return view;
}

class HeldScanner final : public DeviceScanner {
  public:
    std::atomic<bool> held{false};  ///< nothing is told until this is over
    std::atomic<int> asked{0};      ///< for answers
    bool loses_hits = false;        ///< the ring was full
    bool captures = false;          ///< the queue is being captured
    uint64_t capture = 7;           ///< its number
    bool takes_turns = false;       ///< no scan of a graph that takes turns has its turn
    const char* refuses = nullptr;  ///< outputs are not read, for this reason
    const void* pinned = nullptr;   ///< memory of the host that the device writes
    uint64_t numbers = 1 << 12;
    int64_t lost_hits = 0;
    bool takes_nothing = false;
    int scans = 0, gathered = 0, inputs = 0, looks_back = 0, given_up = 0, closes = 0;
    std::atomic<int> flushes{0};
    std::vector<const void*> written;
    std::vector<uint64_t> ended;  ///< numbers of captured outputs whose graph is gone
    bool keeps = false;
    std::set<int> seen_devices;  ///< of all that was handed over

    Taken scan(const DeviceScan* all, int32_t count) noexcept override {
        if (takes_nothing) return Taken::No;
        const std::lock_guard<std::mutex> lock(mutex_);
        for (int32_t i = 0; i < count; ++i) take(all[i]);
        return captures ? Taken::Captured : Taken::Now;
    }
    Taken scan_behind_gate(const DeviceScan* all, int32_t count) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++looks_back;
        if (captures) {
            for (int32_t i = 0; i < count; ++i) behind_gate_.try_emplace(all[i].sequence, all[i], 0);
            return Taken::Captured;
        }
        for (int32_t i = 0; gate_ && i < count; ++i) take(all[i]);
        gate_ = false;
        return Taken::Now;
    }
    void give_up(uint64_t sequence) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        EXPECT_EQ(exact_.count(sequence), 0u) << "it was looked at";
        ++given_up;
    }
    uint64_t capture_of(const DeviceQueue&) noexcept override { return captures ? capture : 0; }

    void take(const DeviceScan& scan) {
        ++scans;
        gathered += scan.held_by != nullptr;
        inputs += scan.input_count;
        for (int32_t i = 0; i < scan.output_count; ++i) seen_devices.insert(scan.outputs[i].device_index);
        for (int32_t i = 0; i < scan.input_count; ++i) seen_devices.insert(scan.inputs[i].device_index);
        for (int32_t i = 0; i < scan.output_count; ++i) {
            const TensorView& output = scan.outputs[i];
            EXPECT_EQ(output.device, Device::Cuda);
            Told told{};
            told.answer = refuses != nullptr ? Answer::NotRead : Answer::Read;
            told.reading.why = refuses;
            told.reading.range = host_.range(output);
            told.reading.has_hit = (told.reading.range.suspicious || scan.exact) && !loses_hits;
            gate_ = gate_ || (scan.raises_gate && told.reading.range.suspicious);
            const uint64_t number = scan.sequence + static_cast<uint64_t>(i);
            if (captures) {
                graph_.try_emplace(number, scan, i);
                continue;
            }
            told.reading.hit = Captured(scan, i).hit(host_);
            exact_[number] = told;
        }
    }
    /// The number of the first captured output.
    uint64_t captured() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return graph_.begin()->first;
    }
    size_t behind_gate() const { return behind_gate_.size(); }
    /// Runs the graph: values are those that its tensors have now.
    void replay() {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++replays_;
        std::map<uint64_t, DeviceHit> hits;
        bool open = false;
        const auto look = [&](uint64_t number, const Captured& captured) {
            DeviceHit hit = captured.hit(host_);
            hit.replay = replays_;
            if (hit.output.kinds() == 0) return;
            open = open || captured.raises;
            hits.try_emplace(number, hit);
        };
        for (const auto& [number, captured] : graph_) {
            if (!takes_turns || captured.each_time) look(number, captured);
        }
        for (const auto& [number, captured] : behind_gate_) {
            if (open) look(number, captured);
        }
        replayed_.insert(replayed_.end(), hits.begin(), hits.end());
    }

    void before_write(const void* storage) noexcept override { written.push_back(storage); }
    bool read(const DeviceQueue&, const void* from, int64_t bytes, void* to) noexcept override {
        if (captures) return false;
        std::memcpy(to, from, static_cast<size_t>(bytes));
        return true;
    }
    void flush() noexcept override { ++flushes; }
    Answer answer(uint64_t sequence, Reading& reading) noexcept override {
        ++asked;
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto it = exact_.find(sequence);
        if (held || it == exact_.end()) return Answer::NotYet;
        reading = it->second.reading;
        const Answer answer = it->second.answer;
        exact_.erase(it);
        return answer;
    }
    bool next_replayed(uint64_t& sequence, DeviceHit& hit) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (replayed_.empty()) return false;
        sequence = replayed_.front().first;
        hit = replayed_.front().second;
        replayed_.erase(replayed_.begin());
        return true;
    }
    bool next_ended(uint64_t& sequence) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (ended.empty()) return false;
        sequence = ended.back();
        ended.pop_back();
        return true;
    }
    void keep_held() noexcept override { keeps = true; }
    bool writes_later(const void* data) const noexcept override { return data == pinned; }
    uint64_t window() const noexcept override { return numbers; }
    void close() noexcept override { ++closes; }
    int64_t further_launches(int64_t, bool) const noexcept override { return 0; }
    int64_t cost(int, int64_t launches, int64_t bytes) const noexcept override {
        return launches * 2500 + bytes / 1500;
    }
    int64_t lost() const noexcept override { return lost_hits; }
    int64_t device_bytes() const noexcept override { return 4096; }
    std::vector<ScannedDevice> devices() const override { return {{0, "a made-up device", 9, 0}}; }
    const char* reason() const noexcept override { return ""; }

  private:
    struct Told {
        Answer answer;
        Reading reading;
    };
    struct View {
        explicit View(const TensorView& from)
            : sizes(from.sizes, from.sizes + from.ndim), strides(from.strides, from.strides + from.ndim), view(from) {}
        Health health(const CpuScanner& host) const {
            TensorView now = view;
            now.sizes = sizes.data();
            now.strides = strides.data();
            return host.health(now);
        }
        std::vector<int64_t> sizes, strides;
        TensorView view;
    };
    /// One output of a scan.
    struct Captured {
        Captured(const DeviceScan& scan, int32_t i)
            : output(scan.outputs[i]),
              inputs(scan.inputs, scan.inputs + std::min(scan.input_count, DeviceHit::kMaxInputs)),
              each_time(!scan.takes_turns || scan.replays.share == 0),
              raises(scan.raises_gate) {}
        DeviceHit hit(const CpuScanner& host) const {
            DeviceHit hit{};
            hit.output = output.health(host);
            for (size_t k = 0; k < inputs.size(); ++k) {
                if ((inputs[k].view.flags & kScannable) != 0)
                    hit.inputs[hit.input_count++] = {static_cast<int32_t>(k), inputs[k].health(host)};
            }
            return hit;
        }
        View output;
        std::vector<View> inputs;
        bool each_time, raises;
    };
    std::mutex mutex_;
    bool gate_ = false;
    uint64_t replays_ = 0;
    CpuScanner host_;
    std::map<uint64_t, Told> exact_;
    std::map<uint64_t, Captured> graph_, behind_gate_;
    std::vector<std::pair<uint64_t, DeviceHit>> replayed_;
};

}  // namespace numsan
