// Python stacks: this thread's frames read without the interpreter's lock, interned, and what is alive by name.
#pragma once

#include <atomic>
#include <bit>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "host/stacks/stack_source.h"
#include "host/stacks/stack_table.h"
#include "interpose/python/layout/layout.h"

namespace numsan {

/// Stacks of the interpreter in this process. While a thread is inside a call of numsan's no other thread changes its
/// frames, and every frame keeps its code object alive: so a thread may read its own frames without the interpreter's
/// lock.
class PythonStacks final : public StackSource {
  public:
    enum class Mode {
        Raw,   ///< frames are read where they lie
        Api,   ///< frames are asked for under the interpreter's lock: slow, and it waits for other Python threads
        None,  ///< no interpreter, or none that is known: no stacks
    };
    static constexpr int kMaxDepth = 64;

    /// Attaches to the interpreter and checks the layout (layout_check.h); where it does not agree, the mode is Api.
    /// Takes the interpreter's lock (the caller may hold it already). `best` Api keeps to the public API, for
    /// comparison.
    explicit PythonStacks(Mode best = Mode::Raw);

    Mode mode() const { return mode_; }
    /// Why the mode is not Raw, "" if it is. Lower case, no full stop. Lives as long as this.
    const std::string& why() const { return why_; }

    /// In mode Raw: no lock. Stacks deeper than kMaxDepth are cut at the outer end.
    StackId capture() noexcept override;
    bool in_module(StackId id) const noexcept override { return table_.in_module(id); }
    std::vector<SourceFrame> resolve(StackId id) const override;

    /// Runs Python code under the interpreter's lock: the caller keeps our own hooks off on this thread meanwhile.
    LiveNames names(const TensorReader& reader) override;

    void lock() override {
        mutex_.lock();
        table_.lock();
    }
    void unlock() override {
        table_.unlock();
        mutex_.unlock();
    }

  private:
    /// A code object as it was when first seen. The four members after `code` distinguish it from a later one at the
    /// same address.
    struct Code {
        const void* code;
        const void* file_object;
        const void* name_object;
        int32_t first_line;
        std::string file;
        std::string function;
        bool module_call;   ///< torch.nn.Module._call_impl
        bool module_entry;  ///< torch.nn.Module._wrapped_call_impl
    };
    struct Frame {
        const void* code;
        uintptr_t instruction;
        const void* self;
    };
    static constexpr int kModuleCodes = 4;

    /// Another stack, another hash: of the raw walk and of the public one alike.
    static uint64_t mix(uint64_t hash, uint64_t value) { return std::rotl(hash ^ value, 29) * 0xff51afd7ed558ccdu; }
    bool is_module_code(const void* code) const noexcept {
        static_assert(kModuleCodes == 4);
        const auto is = [&](int i) { return module_codes_[i].load(std::memory_order_relaxed) == code; };
        return is(0) || is(1) || is(2) || is(3);
    }
    template <PythonLayout kLayout>
    static uint64_t hash_known(const PythonStacks& stacks, const void* thread) noexcept;
    static uint64_t hash_any(const PythonStacks& stacks, const void* thread) noexcept;
    template <class Layout>
    uint64_t hash_frames(const Layout& layout, const void* thread) const noexcept;
    using HashFrames = uint64_t (*)(const PythonStacks&, const void* thread) noexcept;
    static HashFrames hash_for(int minor) noexcept;
    int copy_frames(const void* thread, Frame (&frames)[kMaxDepth]) const noexcept;
    int line_of(const Frame& frame) const noexcept;
    StackId add_raw(const void* thread, uint64_t hash);
    const Code& code_of(const void* code);
    const Code& remember(Code code);
    uint64_t walk_api(std::vector<Frame>& frames) const;
    bool remember_api(const std::vector<Frame>& frames);
    StackId capture_api();
    StackId add(uint64_t hash, std::vector<StoredFrame> frames);

    const PythonApi* api_ = nullptr;
    PythonLayout layout_{};
    HashFrames hash_ = hash_any;
    Mode mode_ = Mode::None;
    std::string why_;
    StackTable table_;
    std::mutex mutex_;  ///< of codes_ and code_by_address_; taken for stacks never seen before only
    std::deque<Code> codes_;
    std::unordered_multimap<const void*, const Code*> code_by_address_;
    std::atomic<const void*> module_codes_[kModuleCodes] = {};
    /// All of module_codes_ lie at most `module_span_` bytes behind `module_low_`: most other codes do not.
    std::atomic<uintptr_t> module_low_{~uintptr_t(0)}, module_span_{0};
};

}  // namespace numsan
