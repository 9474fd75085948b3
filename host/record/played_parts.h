// What a session is made with when a recording answers: within host/record only.
#pragma once

#include "host/base/scanner.h"
#include "host/record/player.h"

namespace numsan {

/// The one that plays: the functions of the C boundary have nothing else to find it by.
extern Player* the_player;

class PlayedScanner final : public Scanner {
  public:
    Range range(const TensorView& tensor) const noexcept override;
    KindSet kinds(const TensorView& tensor) const noexcept override;
    Health health(const TensorView& tensor) const noexcept override;
    static void load(const void* at, void* into, size_t bytes);
};

class PlayedStacks final : public StackSource {
  public:
    StackId capture() noexcept override { return the_player->stack(); }
    bool in_module(StackId id) const noexcept override;
    std::vector<SourceFrame> resolve(StackId id) const override;
    LiveNames names(const TensorReader& reader) override;
};

struct PlayedAdapter {
    static uint32_t autograd_facts(const void* impl, bool may_wait);
    static AdapterApi api(const char* hook);
    static std::optional<ProcessRank> rank(void (*on_own_thread)());
    static DeviceScanner* no_device_scanner(const OpEvent& first, std::string& why);
    static void add_coverage(RunSummary& run);
    static bool generated_kernels() { return the_player->generated(); }
    static void leave(int) { the_player->leave(); }
    static BirthExchange* notes(BirthExchange& of_process);
};

}  // namespace numsan
