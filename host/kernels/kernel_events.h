// Launches and copies of a program without a framework, made into the events that a session takes: a kernel is an
// operator that reads and writes the buffers which its name says it is given.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/kernels/device_memory.h"
#include "host/kernels/event_views.h"
#include "host/kernels/kernel_manifest.h"
#include "host/kernels/kernel_signature.h"
#include "host/kernels/library_call.h"
#include "host/kernels/seen_launch.h"
#include "host/kernels/stub_parameters.h"

namespace numsan {

/// [MT] One for the process, called on the program's threads, before and after a call of the driver's. No member but
/// counts() throws: without memory a call is not seen, and what it wrote is not known.
class KernelEvents {
  public:
    /// What takes the events; outlives this. Its calls are made under no lock.
    class Sink {
      public:
        virtual void op_end(const OpEvent& event) noexcept = 0;
        /// What comes between two of these is no fault of the program's.
        virtual void ignore(bool begins) noexcept = 0;

      protected:
        ~Sink() = default;
    };

    /// stub_parameters(): is asked of kernels whose names do not say all, on the thread that launches them.
    using ParametersOf = std::optional<StubParameters> (*)(const char* symbol);

    /// What `manifest` says of a kernel counts beside its name and debug information, and nothing of it where it
    /// contradicts them. Without `parameters_of` there is no debug information; nor is there for further kernels once
    /// it has taken the program longer than `longest`.
    explicit KernelEvents(Sink& sink, KernelManifest manifest = {}, ParametersOf parameters_of = nullptr,
                          std::chrono::nanoseconds longest = std::chrono::seconds(2))
        : sink_(sink), manifest_(std::move(manifest)), parameters_of_(parameters_of), time_left_(longest.count()) {}

    /// The kernel is about to be launched: buffers of it whose values are not known are looked at first.
    void before_launch(const SeenLaunch& launch) noexcept;
    /// It was launched.
    void after_launch(const SeenLaunch& launch) noexcept;
    /// Something was launched that does not say what it writes: a graph.
    void after_unknown_launch() noexcept;

    /// A call of a library's: as a kernel that reads and writes its buffers. Its own launches are not shown.
    void before_call(const LibraryCall& call) noexcept;
    void after_call(const LibraryCall& call) noexcept;

    /// `of_host`: the host may write it, too.
    void allocated(uint64_t address, int64_t bytes, bool of_host) noexcept;
    void freed(uint64_t address) noexcept;
    /// Bytes are copied: from device to host, or anything else into memory of a device. `call` lives for ever.
    void copied(const char* call, uint64_t to, uint64_t from, int64_t bytes, const DeviceQueue& queue) noexcept;
    /// Bytes of a device's memory are set.
    void written(uint64_t address) noexcept;
    /// Calls were missed.
    void forget() noexcept;

    struct Counts {
        int64_t scanned = 0;      ///< launches and calls of libraries of which every buffer of numbers was handed over
        int64_t partly = 0;       ///< that may write more than that
        int64_t captured = 0;     ///< into graphs: those are not looked at
        int64_t elsewhere = 0;    ///< of which nothing was: they write to memory that was not seen to be allocated
        int64_t unexplained = 0;  ///< calls of which nothing is told: not all that they read was looked at
        int64_t unread = 0;       ///< kernels whose debug information there was no time for
        /// Kernels that a user describes and that none was found to be, with why one of that name was not.
        std::vector<std::pair<std::string, std::string>> unmet;
        std::map<std::string, int64_t> unseen;  ///< of kernels of which nothing says what they write, by their names
        /// Calls of libraries of which nothing is known, by their names, with why.
        std::map<std::pair<std::string, std::string>, int64_t> unseen_calls;
    };
    /// Throws std::bad_alloc.
    Counts counts() const;

  private:
    struct Kernel {
        bool typed = false;
        KernelSignature signature;
        OpInfo op{};
        int64_t scanned = 0, partly = 0, elsewhere = 0, unseen = 0;  ///< launches
    };

    /// It is known from now on: reads files, so is called under no lock. Throws std::bad_alloc.
    void meet(const char* symbol);
    Kernel& kernel_of(const char* symbol);
    /// What debug information says of its parameters, where that is more than the name does.
    void add_stub(const char* symbol, Kernel& kernel);
    /// What a user says of the kernel is part of its signature now, where he does.
    void add_declared(std::string_view symbol, Kernel& kernel);
    const OpInfo& call_op(const char* call, OpClass op_class);
    /// What the call reads goes to others: if it is bad, it matters there.
    void show_sent(const LibraryCall& call) noexcept;
    /// The buffer that begins at `address`, where it is not known what is in it.
    void add_unknown(EventViews& views, uint64_t address, DType dtype, uint64_t end = ~uint64_t(0));
    /// What is in those was there before, whoever wrote it: it is remembered, and nobody's fault.
    void look_at_unknown(const EventViews& views, const DeviceQueue& queue) noexcept;
    OpInfo new_op(const std::string& name, OpClass op_class);
    OpEvent event_of(const OpInfo& op, const DeviceQueue& queue) const;

    Sink& sink_;
    const KernelManifest manifest_;
    const ParametersOf parameters_of_;
    std::atomic<int64_t> time_left_;  ///< nanoseconds, for that
    std::atomic<int64_t> unread_{0};
    mutable std::mutex mutex_;  ///< of what follows
    DeviceMemory memory_;
    std::map<std::string, Kernel, std::less<>> kernels_;
    std::map<std::pair<std::string, OpClass>, OpInfo> calls_;  ///< copies, and those of libraries
    int64_t calls_scanned_ = 0, calls_partly_ = 0, calls_elsewhere_ = 0, calls_unexplained_ = 0;
    std::map<std::pair<std::string, std::string>, int64_t> calls_unseen_;
    std::set<std::string> met_;                        ///< of the kernels that a user describes
    std::map<std::string, std::string> contradicted_;  ///< the others of those, with why
    std::deque<std::string> names_;                    ///< of OpInfo, never freed
    int64_t captured_ = 0;
    uint32_t next_id_ = 0;
    Kernel others_{.signature = {}, .op = new_op("other kernels", OpClass::Other)};
    const OpInfo contents_ = new_op("contents of memory", OpClass::Other);
};

}  // namespace numsan
