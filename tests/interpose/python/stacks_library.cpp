// The shared library that test_python_stacks.py drives: PythonStacks behind C functions, called through ctypes without
// the interpreter's lock.
#include <pthread.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "interpose/python/api/gate.h"
#include "interpose/python/frames.h"
#include "interpose/python/layout/layout_check.h"

using numsan::PythonStacks;

namespace {
PythonStacks* stacks;
std::string answer;
constexpr int kNumbers = sizeof(numsan::PythonLayout) / sizeof(int32_t);
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

/// "raw", "api" or "none", then the reason. May be called again.
EXPORT const char* stacks_attach(int api) {
    // leaked: threads of the test may still be inside
    stacks = new PythonStacks(api ? PythonStacks::Mode::Api : PythonStacks::Mode::Raw);
    stacks->watch_codes();
    // once: a fork that takes the lock twice waits for ever
    static const int forks_wait [[maybe_unused]] =
        pthread_atfork(numsan::lock_thread_states, numsan::unlock_thread_states, numsan::unlock_thread_states);
    const char* const modes[] = {"raw", "api", "none"};
    answer = modes[int(stacks->mode())] + std::string("|") + stacks->why();
    return answer.c_str();
}

/// The layout of the running interpreter as numbers, `kind` first; how many there are, 0 where it is not known.
EXPORT int stacks_layout(int32_t* numbers) {
    const auto layout = numsan::python_layout(*numsan::python_api());
    if (!layout) return 0;
    numbers[0] = int32_t(layout->kind);
    std::memcpy(numbers + 1, &layout->thread_frame, (kNumbers - 1) * sizeof *numbers);
    return kNumbers;
}

/// Whether a layout of such numbers is believed.
EXPORT int stacks_layout_agrees(const int32_t* numbers) {
    numsan::PythonLayout layout{};
    layout.kind = numsan::PythonLayout::Kind(numbers[0]);
    std::memcpy(&layout.thread_frame, numbers + 1, (kNumbers - 1) * sizeof *numbers);
    return numsan::layout_agrees(*numsan::python_api(), layout);
}

EXPORT uint32_t stacks_capture() { return stacks->capture(); }

EXPORT int stacks_in_module(uint32_t id) { return stacks->in_module(id); }

EXPORT int stacks_known_codes() { return int(stacks->known_codes()); }

/// Lines of file, line, function and self, separated by tabs.
EXPORT const char* stacks_resolve(uint32_t id) {
    answer.clear();
    for (const auto& frame : stacks->resolve(id)) {
        answer += frame.file + '\t' + std::to_string(frame.line) + '\t' + frame.function + '\t' +
                  std::to_string(reinterpret_cast<uintptr_t>(frame.self)) + '\n';
    }
    return answer.c_str();
}

std::string number(const void* address) { return std::to_string(reinterpret_cast<uintptr_t>(address)); }

/// Lines of kind, address and name, separated by tabs; the name of a gradient ends with the address of its leaf.
/// `gradient_of`: TensorReader's, may be null.
EXPORT const char* stacks_names(const void* (*gradient_of)(const void*)) {
    answer.clear();
    numsan::TensorReader reader;
    reader.gradient_of = gradient_of;
    const auto names = stacks->names(reader);
    for (const auto& [address, name] : names.modules) {
        answer += "module\t" + std::to_string(reinterpret_cast<uintptr_t>(address)) + '\t' + name + '\n';
    }
    const char* const roles[] = {"parameter", "buffer", "gradient", "state"};
    for (const auto& [address, tensor] : names.tensors) {
        answer += std::string(roles[int(tensor.role)]) + '\t' + std::to_string(reinterpret_cast<uintptr_t>(address)) +
                  '\t' + tensor.name + (tensor.leaf != nullptr ? " of " + number(tensor.leaf) : "") + '\n';
    }
    return answer.c_str();
}

/// How many of `count` look-ups found modules; for several threads at once.
EXPORT int stacks_look_ups(int count) {
    int found = 0;
    for (int i = 0; i < count; ++i) found += stacks->names({}).modules.empty() ? 0 : 1;
    return found;
}

/// Threads of look-ups that have not ended.
EXPORT int stacks_looking_up() { return numsan::python_access().inside(); }

/// A look-up that begins after some time, in which the caller may go on to the program's end.
EXPORT void stacks_look_up_later(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    stacks->names({});
}

/// Nanoseconds of one capture, over `count` of them.
EXPORT double stacks_time(int count) {
    uint32_t sum = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) sum += stacks->capture();
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    return sum ? elapsed.count() / count : -1;
}
