// What belongs to a backend of somebody's own does not come to CUDA, whichever backend the program uses first.
#include "interpose/runtime/device_access.h"

#include <vector>

#include "tests/cuda/scanner/fake_gpu.h"

namespace numsan {
namespace {

class ForeignMemoryTest : public gpu::ScannerTest {
  protected:
    static OpEvent event_of(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
        OpEvent event{};
        event.inputs = inputs.data();
        event.input_count = static_cast<int32_t>(inputs.size());
        event.outputs = outputs.data();
        event.output_count = static_cast<int32_t>(outputs.size());
        event.on_device = true;
        event.queue.known = true;
        return event;
    }
    static TensorView view(Device device, const void* data) {
        TensorView view{};
        view.device = device;
        view.data = view.storage_data = data;
        view.flags = kLater;
        return view;
    }
    void SetUp() override {
        ScannerTest::SetUp();
        tensor.emplace(8);
        on_cuda = reinterpret_cast<const void*>(tensor->address());
    }
    static uint64_t asked() { return fake_cuda::calls("cuPointerGetAttribute"); }

    std::optional<gpu::GpuTensor> tensor;
    const void* on_cuda = nullptr;
    int elsewhere = 0;
    ForeignMemory memory;
};

TEST_F(ForeignMemoryTest, TensorsOfAnotherBackendThatComeAfterCudasAreLeftAlone) {
    const std::vector<TensorView> cuda{view(Device::Cuda, on_cuda)}, foreign{view(Device::Other, &elsewhere)};
    EXPECT_TRUE(memory.leaves_to_cuda(event_of(cuda, cuda)));
    EXPECT_EQ(asked(), 0u) << "what torch calls CUDA is";
    EXPECT_FALSE(memory.leaves_to_cuda(event_of(foreign, foreign)));
    EXPECT_FALSE(memory.leaves_to_cuda(event_of(foreign, cuda))) << "a copy between them reads the foreign one";
    EXPECT_FALSE(memory.leaves_to_cuda(event_of(cuda, foreign)));
    EXPECT_EQ(asked(), 1u);
    EXPECT_TRUE(memory.leaves_to_cuda(event_of(cuda, cuda)));
}

TEST_F(ForeignMemoryTest, ABackendInCudaMemoryIsCudas) {
    const std::vector<TensorView> empty{view(Device::Other, nullptr)}, own{view(Device::Other, on_cuda)};
    EXPECT_TRUE(memory.leaves_to_cuda(event_of({}, empty))) << "there is nothing to read, and nothing to ask of";
    EXPECT_EQ(asked(), 0u);
    EXPECT_TRUE(memory.leaves_to_cuda(event_of(own, own)));
    EXPECT_TRUE(memory.leaves_to_cuda(event_of(own, own)));
    EXPECT_EQ(asked(), 1u);
}

}  // namespace
}  // namespace numsan
