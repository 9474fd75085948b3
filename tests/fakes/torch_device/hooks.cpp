// What torch asks of an accelerator outside of operators: its generators, pinned memory, resizing of storages.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>

#include "device.h"

namespace fakegpu {
namespace {

/// A device's generator draws from a CPU generator: the default one from the CPU's default one, so that a program draws
/// the same numbers on the device as on the CPU.
struct Generator final : c10::GeneratorImpl {
    Generator(c10::DeviceIndex device, at::Generator cpu)
        : GeneratorImpl({kType, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), cpu(std::move(cpu)) {}

    void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
    void set_offset(uint64_t offset) override { cpu.set_offset(offset); }
    uint64_t get_offset() const override { return cpu.get_offset(); }
    uint64_t current_seed() const override { return cpu.current_seed(); }
    uint64_t seed() override { return cpu.seed(); }
    void set_state(const c10::TensorImpl& state) override { cpu.unsafeGetGeneratorImpl()->set_state(state); }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return cpu.unsafeGetGeneratorImpl()->get_state(); }
    Generator* clone_impl() const override { return new Generator(device().index(), cpu.clone()); }

    at::Generator cpu;
};

const at::Generator& default_generator(c10::DeviceIndex device) {
    static const auto* all = [] {
        auto* made = new std::vector<at::Generator>;
        for (c10::DeviceIndex i = 0; i < device_count(); ++i)
            made->push_back(at::make_generator<Generator>(i, at::detail::getDefaultCPUGenerator()));
        return made;
    }();
    return all->at(device < 0 ? current_device() : device);
}

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return device_count() > 0; }
    bool hasPrimaryContext(c10::DeviceIndex device) const override { return has_context(device); }
    c10::DeviceIndex deviceCount() const override { return device_count(); }
    c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
    void setCurrentDevice(c10::DeviceIndex device) const override { exchangeDevice(device); }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        return c10::impl::getDeviceGuardImpl(kType)->exchangeDevice({kType, device}).index();
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }
    bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
    c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
    const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
        return default_generator(device);
    }
    at::Generator getNewGenerator(c10::DeviceIndex device) const override {
        return at::make_generator<Generator>(device < 0 ? current_device() : device, at::detail::createCPUGenerator());
    }
    void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
        resize_storage(storage, bytes);
    }
};

std::unique_lock<std::mutex> locked(const at::Generator& generator) {
    at::Generator cpu = cpu_generator(generator);
    return std::unique_lock(cpu.mutex());
}

at::Tensor rng_state(int64_t device) { return default_generator(static_cast<c10::DeviceIndex>(device)).get_state(); }
void set_rng_state(int64_t device, const at::Tensor& state) {
    at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
    const auto lock = locked(generator);
    generator.set_state(state);
}
void manual_seed(int64_t device, int64_t seed) {
    at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
    const auto lock = locked(generator);
    generator.set_current_seed(static_cast<uint64_t>(seed));
}

}  // namespace

at::Generator cpu_generator(const at::Generator& generator) {
    return static_cast<const Generator*>(generator.unsafeGetGeneratorImpl())->cpu;
}

void register_hooks() {
    static auto* hooks = new Hooks;
    c10::SetAllocator(kType, allocator());
    at::RegisterPrivateUse1HooksInterface(hooks);
}

}  // namespace fakegpu

TORCH_LIBRARY(fakegpu, m) {
    m.def("rng_state(int device) -> Tensor", fakegpu::rng_state);
    m.def("set_rng_state(int device, Tensor state) -> ()", fakegpu::set_rng_state);
    m.def("manual_seed(int device, int seed) -> ()", fakegpu::manual_seed);
}
