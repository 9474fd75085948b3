// Pairs what the device says of an output, in its result, with what it found there, in the ring.
#include "cuda/cuda_device_scanner.h"

#include <deque>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "cuda/cuda_scanner.h"
#include "cuda/kernel/scan_policy.h"

namespace numsan {
namespace {

using Slots = std::vector<gpu::HitSlot>;  // an output's, then its inputs'

DeviceHit device_hit(const Slots& slots) {
    DeviceHit hit{};
    hit.output = gpu::to_health(slots[0]);
    for (size_t i = 1; i < slots.size() && hit.input_count < DeviceHit::kMaxInputs; ++i) {
        if (slots[i].elements == 0) continue;  // its memory was gone
        hit.inputs[hit.input_count++] = {slots[i].argument, gpu::to_health(slots[i])};
    }
    return hit;
}

class CudaDeviceScanner final : public DeviceScanner {
  public:
    explicit CudaDeviceScanner(const char* library) : scanner_(library) {}

    Taken scan(const DeviceScan* scans, int32_t count) noexcept override {
        if (count == 1) return scanner_.scan(request_of(scans[0]));
        return hand_over(scans, count,
                         [this](const auto& all) { return scanner_.scan(all.data(), static_cast<int>(all.size())); });
    }

    Taken scan_behind_gate(const DeviceScan* scans, int32_t count) noexcept override {
        return hand_over(scans, count, [this](const auto& all) {
            return scanner_.scan_behind_gate(all.data(), static_cast<int>(all.size()));
        });
    }
    void give_up(uint64_t sequence) noexcept override {
        scanner_.forget(sequence);
        hits_.erase(sequence);
    }
    uint64_t capture_of(const DeviceQueue& queue) noexcept override { return scanner_.capture_of(where(queue)); }

    void before_write(const void* storage) noexcept override { scanner_.note_write(storage); }
    bool read(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) noexcept override {
        return scanner_.read(where(queue), from, bytes, to);
    }
    void flush() noexcept override { scanner_.flush_all(); }

    Answer answer(uint64_t sequence, Reading& reading) noexcept override {
        const gpu::CudaScanner::Outcome outcome = scanner_.outcome(sequence);
        if (outcome.answer == Answer::NotYet) {
            read_ring();  // while one output keeps the reader waiting, the others need room in there
            return Answer::NotYet;
        }
        reading.range = outcome.range;
        reading.has_hit = false;
        reading.why = outcome.answer == Answer::NotRead ? gpu::kSkipReasons[static_cast<int>(outcome.why)] : "";
        if (outcome.has_hit) {
            auto found = hits_.find(sequence);
            if (found == hits_.end()) {
                read_ring();
                found = hits_.find(sequence);
            }
            if (found != hits_.end()) {
                reading.hit = device_hit(found->second);
                reading.has_hit = true;
                hits_.erase(found);
            } else if (!outcome.hit_stuck && !out_of_memory_) {
                return Answer::NotYet;
            }
        }
        scanner_.forget(sequence);
        return outcome.answer;
    }

    bool next_replayed(uint64_t& sequence, DeviceHit& hit) noexcept override {
        if (replayed_.empty()) {
            try {
                scanner_.poll_replays([&](const gpu::Hit& found) {
                    const uint64_t replay = uint64_t(found.lane) << 32 | static_cast<uint32_t>(found.replay);
                    replayed_.push_back({found.sequence, replay, Slots(found.slots, found.slots + found.count)});
                });
            } catch (const std::bad_alloc&) {
                out_of_memory_ = true;
            }
        }
        if (replayed_.empty()) return false;
        sequence = replayed_.front().sequence;
        hit = device_hit(replayed_.front().slots);
        hit.replay = replayed_.front().replay;
        replayed_.pop_front();
        return true;
    }

    bool next_ended(uint64_t& sequence) noexcept override { return scanner_.next_ended(sequence); }
    void keep_held() noexcept override { scanner_.keep_held(); }

    bool writes_later(const void* data) const noexcept override { return is_pinned_memory(data); }
    uint64_t window() const noexcept override { return gpu::kResults; }
    void close() noexcept override { scanner_.close(); }
    int64_t further_launches(int64_t bytes, bool exact) const noexcept override {
        return bytes > (exact ? gpu::kAlwaysAloneBytes : gpu::kAloneBytes) ? 1 : 0;
    }
    int64_t cost(int device, int64_t launches, int64_t bytes) const noexcept override {
        return scanner_.cost(device).of(launches, bytes);
    }
    int64_t lost() const noexcept override { return static_cast<int64_t>(scanner_.counters().dropped); }
    int64_t device_bytes() const noexcept override { return scanner_.device_bytes(); }
    std::vector<ScannedDevice> devices() const override { return scanner_.devices(); }
    const char* reason() const noexcept override { return scanner_.reason(); }

  private:
    static gpu::StreamRef where(const DeviceQueue& queue) {
        return {nullptr, static_cast<CUstream_st*>(queue.stream), queue.device};
    }
    static gpu::ScanRequest request_of(const DeviceScan& scan) {
        gpu::ScanRequest request;
        request.where = where(scan.queue);
        request.outputs = scan.outputs;
        request.output_count = scan.output_count;
        request.inputs = scan.inputs;
        request.input_count = scan.input_count;
        request.storages = scan.held_by;
        request.sequence = scan.sequence;
        request.raises_gate = scan.raises_gate;
        request.replays = scan.replays;
        request.takes_turns = scan.takes_turns;
        request.exact = scan.exact;
        return request;
    }
    template <class Hand>
    static Taken hand_over(const DeviceScan* scans, int32_t count, Hand hand) noexcept {
        try {
            std::vector<gpu::ScanRequest> requests;
            requests.reserve(static_cast<size_t>(count));
            for (int32_t i = 0; i < count; ++i) requests.push_back(request_of(scans[i]));
            return hand(requests);
        } catch (const std::bad_alloc&) {
            return Taken::No;
        }
    }
    void read_ring() noexcept {
        try {
            scanner_.poll([&](const gpu::Hit& hit) {
                hits_[hit.sequence].assign(hit.slots, hit.slots + hit.count);
                // Those are not asked for any more.
                while (hits_.begin()->first + window() <= hit.sequence) hits_.erase(hits_.begin());
            });
        } catch (const std::bad_alloc&) {
            out_of_memory_ = true;
        }
    }

    gpu::CudaScanner scanner_;
    std::map<uint64_t, Slots> hits_;  ///< by the output's number: at most window() of them
    struct Replayed {
        uint64_t sequence, replay;
        Slots slots;
    };
    std::deque<Replayed> replayed_;  ///< what a ring holds, and as many that have waited for a replay's end
    bool out_of_memory_ = false;     ///< a hit was lost on the way: it is not waited for
};

}  // namespace

std::unique_ptr<DeviceScanner> make_cuda_scanner(const char* library) {
    return std::make_unique<CudaDeviceScanner>(library);
}

}  // namespace numsan
