// Which frames of a CUDA program's launch are left out, by stacks as g++ and nvcc 13 make them.
#include "host/stacks/launch_stub.h"

#include <gtest/gtest.h>

#include <string>

namespace numsan {
namespace {

SourceFrame native(const char* function, const char* file, int line) { return {file, function, line, nullptr, true}; }

const SourceFrame kHelper = native("__cudaLaunchKernel_helper",
                                   "/usr/local/cuda/bin/../targets/x86_64-linux/include/crt/device_functions.h", 2963);
const SourceFrame kStub = native("__device_stub__Z5scalePfi(float*, int)", "/tmp/tmpxft_1_2-6_a.cudafe1.stub.c", 16);
const SourceFrame kWrapper = native("__wrapper__device_stub_scale<float>", "/tmp/tmpxft_1_2-6_a.cudafe1.stub.c", 18);
const SourceFrame kKernel = native("scale", "/home/me/a.cu", 5);
const SourceFrame kMain = native("main", "/home/me/a.cu", 40);

std::string functions(std::vector<SourceFrame> stack) {
    leave_out_launch_stub(stack);
    std::string all;
    for (const SourceFrame& frame : stack) all += frame.function + " ";
    return all;
}

TEST(LaunchStub, TheLineThatLaunchesIsInnermost) {
    EXPECT_EQ(functions({kHelper, kStub, kKernel, kMain}), "main ");
    EXPECT_EQ(functions({kHelper, kStub, kWrapper, kKernel, kMain}), "main ") << "of a template";
    EXPECT_EQ(functions({kHelper, kStub, kKernel, kMain, kStub, kKernel}), "main " + kStub.function + " scale ");
}

TEST(LaunchStub, OtherStacksStay) {
    EXPECT_EQ(functions({kKernel, kMain}), "scale main ");
    EXPECT_EQ(functions({}), "");
    EXPECT_EQ(functions({kHelper, kStub}), "__cudaLaunchKernel_helper " + kStub.function + " ")
        << "where the kernel's function is not known";
    EXPECT_EQ(functions({kHelper, kStub, kKernel}), "__cudaLaunchKernel_helper " + kStub.function + " scale ")
        << "nobody is left who launched it";
    EXPECT_EQ(functions({native("__device_stub_of_mine", "/home/me/a.c", 3), kMain}), "__device_stub_of_mine main ");
}

TEST(LaunchStub, WithoutDebugInformationTheKernelIsKnownByItsName) {
    const SourceFrame stub = native("__device_stub__Z5scalePfi(float*, int)", "/home/me/a.out", 0);
    const SourceFrame kernel = native("scale(float*, int)", "/home/me/a.out", 0);
    const SourceFrame other = native("scale(double*)", "/home/me/a.out", 0);
    EXPECT_EQ(functions({kHelper, stub, kernel, kMain}), "main ");
    EXPECT_EQ(functions({stub, kMain}), "main ") << "it was inlined";
    const SourceFrame of_template = native("__device_stub__Z4growIfEvPT_(float*)", "/home/me/a.out", 0);
    const SourceFrame wrapper = native("void __wrapper__device_stub_grow<float>(float*&)", "/home/me/a.out", 0);
    const SourceFrame grow = native("void grow<float>(float*)", "/home/me/a.out", 0);
    EXPECT_EQ(functions({of_template, wrapper, grow, kMain}), "main ");
    EXPECT_EQ(functions({wrapper, kMain}), "main ");
    EXPECT_EQ(functions({stub, other, kMain}), "scale(double*) main ");
    const SourceFrame unknown = native("__device_stub__Z", "/home/me/a.out", 0);
    EXPECT_EQ(functions({unknown, kMain}), "main ");
}

}  // namespace
}  // namespace numsan
