// Python stacks: this thread's frames read without the interpreter's lock, interned, and what is alive by name.
#pragma once

#include <atomic>
#include <bit>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

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
    bool in_module(StackId id) const noexcept override { return StackTable::in_module(id); }
    std::vector<SourceFrame> resolve(StackId id) const override;
    void keep(StackId id) const noexcept override { table_.keep(id); }
    void release(StackId id) const noexcept override { table_.release(id); }
    int64_t forgotten() const noexcept override { return table_.forgotten(); }

    /// From here on a stack is not found any more once one of its functions is gone: another may be made at the same
    /// address. In mode Raw only; in mode Api the functions of known stacks are kept alive. This must live as long as
    /// the process. Takes the interpreter's lock.
    void watch_codes();

    /// Functions that are known, for tests.
    size_t known_codes() const;

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
    /// A code object as it was when first seen, for as long as a known stack has it. The four members after `code`
    /// distinguish it from a later one at the same address where codes are not watched.
    struct Code {
        const void* code;
        const void* file_object;
        const void* name_object;
        int32_t first_line;
        std::string file;
        std::string function;
        bool module_call = false;     ///< torch.nn.Module._call_impl
        bool module_entry = false;    ///< torch.nn.Module._wrapped_call_impl
        uint32_t uses = 0;            ///< frames of known stacks
        std::vector<StackId> stacks;  ///< in mode Raw: that have it; some may be forgotten
        std::list<Code>::iterator self;
    };
    static Code& code_in(const StoredFrame& frame) noexcept {
        return *static_cast<Code*>(const_cast<void*>(frame.code));
    }
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
    Code* known_code(const void* code) const noexcept;
    Code& code_of(const void* code);
    Code& remember(Code code);
    void forget_if_unused(Code& code) noexcept;
    void forget_stacks(Code& code) const;
    void forget_frames(std::span<const StoredFrame> frames) noexcept;
    void code_dies(const void* code) noexcept;
    static void code_is_freed(void* code);
    uint64_t walk_api(std::vector<Frame>& frames) const;
    bool remember_api(const std::vector<Frame>& frames);
    StackId add_api(const std::vector<Frame>& seen, uint64_t hash);
    StackId capture_api();
    StackId add(uint64_t hash, std::vector<StoredFrame> frames);
    void note_stack(StackId id, const std::vector<StoredFrame>& frames) noexcept;

    const PythonApi* api_ = nullptr;
    PythonLayout layout_{};
    HashFrames hash_ = hash_any;
    Mode mode_ = Mode::None;
    std::string why_;
    mutable StackTable table_{[this](std::span<const StoredFrame> frames) { forget_frames(frames); }};
    /// Of what follows; taken before the table's, for stacks that are not known, and when code objects die. Nothing of
    /// the interpreter is waited for under it.
    mutable std::mutex mutex_;
    std::list<Code> codes_;
    std::unordered_multimap<const void*, Code*> code_by_address_;  ///< without those whose code object is gone
    std::list<Code> unneeded_;  ///< in mode Api: what holds a reference that is to be given up, once the mutex is free
    std::atomic<const void*> module_codes_[kModuleCodes] = {};
    /// All of module_codes_ lie at most `module_span_` bytes behind `module_low_`: most other codes do not.
    std::atomic<uintptr_t> module_low_{~uintptr_t(0)}, module_span_{0};
};

}  // namespace numsan
