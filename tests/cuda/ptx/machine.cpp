#include "tests/cuda/ptx/machine.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

namespace numsan::ptx {
namespace {

constexpr uint32_t kWarp = 32;
constexpr size_t kStackBytes = size_t(256) << 10;  // registers of a scan kernel take a fifth of it without optimisation

/// Who touched a byte of shared memory since the last barrier; kNobody, kSeveral, or the thread.
struct Touched {
    static constexpr int32_t kNobody = -1, kSeveral = -2;
    int32_t writer = kNobody, reader = kNobody;
    bool atomically = false;  ///< by the writer
    uint32_t since = 0;       ///< the number of that barrier
};

std::string place_of(const char* kernel, int line, uint32_t block, uint32_t thread) {
    return std::string(kernel) + ", line " + std::to_string(line) + ", block " + std::to_string(block) + ", thread " +
           std::to_string(thread) + ": ";
}

/// Runs one thread of a block after another. Translated code has nothing to destroy: a fiber whose thread is given up
/// is forgotten. A switch by setjmp and longjmp asks nothing of the kernel, unlike one by swapcontext.
struct Fiber {
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    ucontext_t beginning{};
    bool begun = false;
    jmp_buf place;
    Machine* machine = nullptr;
    Thread* thread = nullptr;
};

/// Of this host thread, with nothing to do.
thread_local std::vector<std::unique_ptr<Fiber>> idle;

}  // namespace

class Block {
  public:
    Block(Machine& machine, const Launch& launch, uint32_t number);

    bool is_over() const { return ended_ == threads_.size(); }
    /// Threads that all wait for each other go on. True: some do.
    bool release();
    bool exchange_in_warp(size_t first);
    bool release_barrier();
    void touch(size_t address, size_t bytes, Thread& thread, Thread::Access access, int line);

    Machine& machine_;
    const uint32_t number_;
    std::vector<unsigned char> shared_;
    std::vector<Touched> touched_;
    std::vector<std::unique_ptr<Thread>> threads_;
    size_t ended_ = 0;
    uint32_t barriers_ = 0;
};

/// One run().
class Machine {
  public:
    explicit Machine(const Launch& launch) : launch_(launch), random_(launch.seed), memory_(launch.memory) {
        std::sort(memory_.begin(), memory_.end(), [](const Memory& a, const Memory& b) { return a.data < b.data; });
    }
    std::string run();

    /// The fiber that runs gives way to run_together().
    void leave() {
        if (_setjmp(now_->place) == 0) _longjmp(home_, 1);
    }
    const Memory* memory_at(uint64_t address, size_t bytes) const;

    const Launch& launch_;
    std::mt19937 random_;
    std::vector<Memory> memory_;
    std::string fault_;
    Fiber* now_ = nullptr;
    jmp_buf home_;

  private:
    void run_together(const uint32_t* numbers, size_t count);
    void enter(Fiber& fiber);
    std::unique_ptr<Fiber> fiber_for(Thread& thread);
    static void body(unsigned high, unsigned low);
    template <class T>
    void shuffle_order(std::vector<T>& all) {
        if (launch_.seed != 0) std::shuffle(all.begin(), all.end(), random_);
    }
};

// Machine

std::string run(const Launch& launch) { return std::make_unique<Machine>(launch)->run(); }

std::string Machine::run() {
    std::vector<uint32_t> order(launch_.blocks.count());
    std::iota(order.begin(), order.end(), 0u);
    shuffle_order(order);
    for (size_t first = 0; first < order.size() && fault_.empty(); first += launch_.together)
        run_together(&order[first], std::min<size_t>(launch_.together, order.size() - first));
    return fault_;
}

void Machine::run_together(const uint32_t* numbers, size_t count) {
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Fiber*> turns;
    for (size_t i = 0; i < count; ++i) {
        blocks.push_back(std::make_unique<Block>(*this, launch_, numbers[i]));
        for (const std::unique_ptr<Thread>& thread : blocks.back()->threads_) {
            fibers.push_back(fiber_for(*thread));
            turns.push_back(fibers.back().get());
        }
    }
    const auto is_over = [](const std::unique_ptr<Block>& block) { return block->is_over(); };
    while (!std::all_of(blocks.begin(), blocks.end(), is_over)) {
        bool moved = false;
        shuffle_order(turns);
        for (Fiber* fiber : turns) {
            Thread& thread = *fiber->thread;
            if (thread.state_ != Thread::State::Ready) continue;
            enter(*fiber);
            if (!fault_.empty()) return;
            moved = true;
            if (thread.state_ == Thread::State::Ended) ++thread.block_.ended_;
        }
        for (const std::unique_ptr<Block>& block : blocks) moved = block->release() || moved;
        if (!fault_.empty()) return;
        if (moved) continue;
        const auto waits = std::find_if(turns.begin(), turns.end(), [](const Fiber* fiber) {
            return fiber->thread->state_ != Thread::State::Ended;
        });
        const Thread& thread = *(*waits)->thread;
        fault_ = place_of(launch_.kernel.name, thread.line_, thread.block(), thread.thread()) +
                 "it waits for threads that never get there";
        return;
    }
    std::move(fibers.begin(), fibers.end(), std::back_inserter(idle));
}

void Machine::enter(Fiber& fiber) {
    now_ = &fiber;
    if (_setjmp(home_) != 0) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.beginning);
}

std::unique_ptr<Fiber> Machine::fiber_for(Thread& thread) {
    std::unique_ptr<Fiber> fiber;
    if (!idle.empty()) {
        fiber = std::move(idle.back());
        idle.pop_back();
    } else {
        fiber = std::make_unique<Fiber>();
        getcontext(&fiber->beginning);
        fiber->beginning.uc_stack.ss_sp = fiber->stack.get();
        fiber->beginning.uc_stack.ss_size = kStackBytes;
        fiber->beginning.uc_link = nullptr;
        const auto self = reinterpret_cast<uintptr_t>(fiber.get());
        makecontext(&fiber->beginning, reinterpret_cast<void (*)()>(&Machine::body), 2, unsigned(self >> 32),
                    unsigned(self));
    }
    fiber->machine = this;
    fiber->thread = &thread;
    return fiber;
}

void Machine::body(unsigned high, unsigned low) {
    auto& fiber = *reinterpret_cast<Fiber*>(uintptr_t(high) << 32 | low);
    for (;;) {
        fiber.machine->launch_.kernel.body(*fiber.thread);
        fiber.thread->state_ = Thread::State::Ended;
        fiber.machine->leave();
    }
}

/// The memory that the bytes lie in; null: none.
const Memory* Machine::memory_at(uint64_t address, size_t bytes) const {
    const auto after = std::upper_bound(memory_.begin(), memory_.end(), address, [](uint64_t at, const Memory& memory) {
        return at < reinterpret_cast<uintptr_t>(memory.data);
    });
    // Tensors may overlap: views of one storage.
    for (auto at = after; at != memory_.begin();) {
        const Memory& memory = *--at;
        const auto begin = reinterpret_cast<uintptr_t>(memory.data);
        if (address + bytes <= begin + memory.bytes) return &memory;
    }
    return nullptr;
}

// Block

Block::Block(Machine& machine, const Launch& launch, uint32_t number)
    : machine_(machine), number_(number), shared_(launch.kernel.shared_bytes), touched_(launch.kernel.shared_bytes) {
    for (unsigned char& byte : shared_) byte = static_cast<unsigned char>(machine.random_());
    for (uint32_t i = 0; i < launch.threads.count(); ++i)
        threads_.push_back(std::make_unique<Thread>(machine, *this, i));
}

bool Block::release() {
    bool moved = false;
    for (size_t first = 0; first < threads_.size(); first += kWarp) moved = exchange_in_warp(first) || moved;
    return release_barrier() || moved;
}

/// shfl.sync, once all lanes of the warp are there.
bool Block::exchange_in_warp(size_t first) {
    if (first + kWarp > threads_.size()) return false;
    const auto lane = [&](uint32_t i) -> Thread& { return *threads_[first + i]; };
    for (uint32_t i = 0; i < kWarp; ++i) {
        const bool same = lane(i).state_ == Thread::State::InShuffle && lane(i).line_ == lane(0).line_;
        if (!same || lane(i).exchange_.mask != ~uint32_t(0)) return false;
    }
    for (uint32_t i = 0; i < kWarp; ++i) {
        Thread::Exchange& of = lane(i).exchange_;
        const uint32_t segment = of.clamp >> 8 & 31, clamp = of.clamp & 31, step = of.lane & 31;
        const uint32_t last = (i & segment) | (clamp & ~segment);  // the first one for Up
        uint32_t from = i;
        switch (of.mode) {
            case Shuffle::Up: from = i - step; break;
            case Shuffle::Down: from = i + step; break;
            case Shuffle::Bfly: from = i ^ step; break;
            case Shuffle::Idx: from = (i & segment) | (step & ~segment); break;
        }
        const auto signed_from = static_cast<int32_t>(from), signed_last = static_cast<int32_t>(last);
        const bool there = of.mode == Shuffle::Up ? signed_from >= signed_last : signed_from <= signed_last;
        of.result = lane(there ? from : i).exchange_.value;
    }
    for (uint32_t i = 0; i < kWarp; ++i) lane(i).state_ = Thread::State::Ready;
    return true;
}

/// bar.sync, once all threads of the block are there.
bool Block::release_barrier() {
    const auto waits = [](const std::unique_ptr<Thread>& thread) { return thread->state_ == Thread::State::AtBarrier; };
    if (!std::all_of(threads_.begin(), threads_.end(), waits)) return false;
    const int line = threads_.front()->line_;
    for (const std::unique_ptr<Thread>& thread : threads_) {
        if (thread->line_ != line) {
            machine_.fault_ = place_of(machine_.launch_.kernel.name, thread->line_, number_, thread->thread()) +
                              "it is at another barrier than thread 0, which is at that of line " +
                              std::to_string(line);
            return true;
        }
    }
    ++barriers_;
    for (const std::unique_ptr<Thread>& thread : threads_) thread->state_ = Thread::State::Ready;
    return true;
}

/// Two threads may touch a byte between two barriers if both read it, or both do so atomically.
void Block::touch(size_t address, size_t bytes, Thread& thread, Thread::Access access, int line) {
    const auto self = static_cast<int32_t>(thread.thread());
    for (size_t i = address; i < address + bytes; ++i) {
        Touched& byte = touched_[i];
        if (byte.since != barriers_) byte = Touched{Touched::kNobody, Touched::kNobody, false, barriers_};
        const auto is_others = [&](int32_t who) { return who != Touched::kNobody && who != self; };
        const bool atomic = access == Thread::Access::Atomic;
        if (is_others(byte.writer) && !(atomic && byte.atomically))
            thread.fault(line, "no barrier is between this access to shared memory and thread " +
                                   std::to_string(byte.writer) + "'s write");
        if (access == Thread::Access::Read) {
            byte.reader = is_others(byte.reader) ? Touched::kSeveral : self;
            continue;
        }
        if (is_others(byte.reader))
            thread.fault(line, "no barrier is between this write to shared memory and another thread's read");
        byte.atomically = atomic && (byte.writer == Touched::kNobody || byte.atomically);
        byte.writer = self;
    }
}

// Thread

uint32_t Thread::block() const { return block_.number_; }
Dim3 Thread::block_in_grid() const { return blocks().place(block()); }
Dim3 Thread::thread_in_block() const { return threads().place(thread_); }
Dim3 Thread::blocks() const { return machine_.launch_.blocks; }
Dim3 Thread::threads() const { return machine_.launch_.threads; }
uint64_t Thread::nanoseconds() const {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
uint64_t Thread::parameters() const { return reinterpret_cast<uintptr_t>(machine_.launch_.parameters); }

void Thread::fault(int line, const std::string& what) {
    machine_.fault_ = place_of(machine_.launch_.kernel.name, line, block(), thread_) + what;
    machine_.leave();
    std::abort();  // nothing comes back here
}

void* Thread::global(uint64_t address, size_t bytes, bool writes, int line) {
    if (address % bytes != 0)
        fault(line, "an access of " + std::to_string(bytes) + " bytes is not aligned: its address ends with " +
                        std::to_string(address % 16));
    const Memory* memory = machine_.memory_at(address, bytes);
    if (memory == nullptr) fault(line, "an access of " + std::to_string(bytes) + " bytes outside of all memory");
    if (writes && !memory->writable) fault(line, "a write of memory that is read only");
    return reinterpret_cast<void*>(address);
}

const void* Thread::parameter(uint64_t address, size_t bytes, int line) {
    const uint64_t begin = parameters();
    const size_t all = machine_.launch_.kernel.parameter_bytes;
    if (address < begin || bytes > all || address - begin > all - bytes)
        fault(line, "a read outside of the parameters");
    return reinterpret_cast<const void*>(address);
}

void* Thread::shared(uint64_t address, size_t bytes, Access access, int line) {
    if (address % bytes != 0) fault(line, "an access to shared memory is not aligned");
    if (bytes > block_.shared_.size() || address > block_.shared_.size() - bytes)
        fault(line, "an access outside of shared memory");
    block_.touch(address, bytes, *this, access, line);
    return block_.shared_.data() + address;
}

void Thread::wait(State state, int line) {
    state_ = state;
    line_ = line;
    machine_.leave();
}

void Thread::barrier(int line) { wait(State::AtBarrier, line); }

uint32_t Thread::shuffle(Shuffle mode, uint32_t value, uint32_t lane, uint32_t clamp, uint32_t mask, int line) {
    exchange_ = {mode, value, lane, clamp, mask, 0};
    wait(State::InShuffle, line);
    return exchange_.result;
}

void Thread::let_others() {
    if (machine_.launch_.together > 1) wait(State::Ready, line_);
}

}  // namespace numsan::ptx
