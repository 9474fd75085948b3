// Which frames of a CUDA program's launch are left out, by stacks as g++ and nvcc 13 make them.
#include "host/stacks/launch_stub.h"

#include <gtest/gtest.h>

#include <string>

namespace numsan {
namespace {

SourceFrame frame_at(const char* function, const char* file, int line) { return {file, function, line, nullptr, true}; }

const SourceFrame kLaunchHelper = frame_at(
    "__cudaLaunchKernel_helper", "/usr/local/cuda/bin/../targets/x86_64-linux/include/crt/device_functions.h", 2963);
const SourceFrame kLaunchStub =
    frame_at("__device_stub__Z5scalePfi(float*, int)", "/tmp/tmpxft_1_2-6_a.cudafe1.stub.c", 16);
const SourceFrame kLaunchWrapper =
    frame_at("__wrapper__device_stub_scale<float>", "/tmp/tmpxft_1_2-6_a.cudafe1.stub.c", 18);
const SourceFrame kKernel = frame_at("scale", "/home/me/a.cu", 5);
const SourceFrame kMain = frame_at("main", "/home/me/a.cu", 40);

std::string left_of(std::vector<SourceFrame> stack) {
    leave_out_launch_stub(stack);
    std::string all;
    for (const SourceFrame& frame : stack) all += frame.function + " ";
    return all;
}

TEST(LaunchStub, TheLineThatLaunchesIsInnermost) {
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, kKernel, kMain}), "main ");
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, kLaunchWrapper, kKernel, kMain}), "main ") << "of a template";
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, kKernel, kMain, kLaunchStub, kKernel}),
              "main " + kLaunchStub.function + " scale ");
}

TEST(LaunchStub, OtherStacksStay) {
    EXPECT_EQ(left_of({kKernel, kMain}), "scale main ");
    EXPECT_EQ(left_of({}), "");
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub}), "__cudaLaunchKernel_helper " + kLaunchStub.function + " ")
        << "where the kernel's function is not known";
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, kKernel}),
              "__cudaLaunchKernel_helper " + kLaunchStub.function + " scale ")
        << "nobody is left who launched it";
    EXPECT_EQ(left_of({frame_at("__device_stub_of_mine", "/home/me/a.c", 3), kMain}), "__device_stub_of_mine main ");
}

TEST(LaunchStub, AKernelThatOnlyJumpsToItsStubIsNotOnTheStack) {
    const SourceFrame step = frame_at("step()", "/home/me/b.cu", 9);
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, step, kMain}), "step() main ");
    EXPECT_EQ(left_of({kLaunchHelper, kLaunchStub, kLaunchWrapper, step, kMain}), "step() main ");
    EXPECT_EQ(left_of({kLaunchWrapper, step, kMain}), "step() main ");
    EXPECT_EQ(left_of({kLaunchWrapper, kKernel, kMain}), "main ");
    EXPECT_EQ(left_of({kLaunchStub, frame_at("scale(Field&)", "/home/me/b.cu", 9), kMain}), "scale(Field&) main ");
    EXPECT_EQ(left_of({kLaunchStub, frame_at("scale(float*, int)", "/home/me/a.cu", 5), kMain}), "main ");
    EXPECT_EQ(left_of({kLaunchStub, frame_at("rescale", "/home/me/b.cu", 9), kMain}), "rescale main ");
    EXPECT_EQ(left_of({kLaunchStub, kMain}), "main ");
}

TEST(LaunchStub, AKernelIsKnownByItsOwnName) {
    const auto left = [](const char* symbol, const char* function) {
        return left_of({frame_at(symbol, "/tmp/a.cudafe1.stub.c", 9), frame_at(function, "/home/me/a.cu", 5), kMain});
    };
    const char* const of_template = "__device_stub__ZN4deep4growIfEEvPT_(float*)";
    EXPECT_EQ(left(of_template, "grow<float>"), "main ");
    EXPECT_EQ(left(of_template, "void deep::grow<float>(float*)"), "main ");
    EXPECT_EQ(left(of_template, "deep<float>"), "deep<float> main ");
    EXPECT_EQ(left(of_template, "void deep::grow<float>(Field<float>&)"),
              "void deep::grow<float>(Field<float>&) main ");
    const char* const unnamed = "__device_stub__ZN36_GLOBAL__N__7a33e497_4_a_cu_35004a266hiddenEPf(float*)";
    EXPECT_EQ(left(unnamed, "hidden"), "main ");
    EXPECT_EQ(left(unnamed, "(anonymous namespace)::hidden(float*)"), "main ");
    EXPECT_EQ(left(unnamed, "(anonymous namespace)::step(float*)"), "(anonymous namespace)::step(float*) main ");
    EXPECT_EQ(left(unnamed, "a::(anonymous namespace)"), "a::(anonymous namespace) main ") << "nothing follows";
    EXPECT_EQ(left("__device_stub__Z5plainPfi(float*, int)", "plain"), "main ") << "extern \"C\"";
    // A lambda's type has another name in nvcc than in g++.
    const char* const of_lambda =
        "__device_stub__ZN4deep4lam2IZ4mainEUnvdl1_PFivE4main2_PfEEvS3_T_(float*, __nv_dl_wrapper_t<int>&)";
    EXPECT_EQ(left(of_lambda, "lam2<__nv_dl_wrapper_t<__nv_dl_tag<int (*)(), main, 2>, float*> >"), "main ");
    EXPECT_EQ(left(of_lambda, "void deep::lam2<__nv_dl_wrapper_t<__nv_dl_tag<int (*)(), &main, 2u>> >(float*)"),
              "main ");
    EXPECT_EQ(left(of_lambda, "void deep::launch<lam2>(float*)"), "void deep::launch<lam2>(float*) main ");
}

TEST(LaunchStub, WithoutDebugInformationTheKernelIsKnownByItsName) {
    const SourceFrame stub = frame_at("__device_stub__Z5scalePfi(float*, int)", "/home/me/a.out", 0);
    const SourceFrame kernel = frame_at("scale(float*, int)", "/home/me/a.out", 0);
    const SourceFrame other = frame_at("scale(double*)", "/home/me/a.out", 0);
    EXPECT_EQ(left_of({kLaunchHelper, stub, kernel, kMain}), "main ");
    EXPECT_EQ(left_of({stub, kMain}), "main ") << "it was inlined";
    const SourceFrame of_template = frame_at("__device_stub__Z4growIfEvPT_(float*)", "/home/me/a.out", 0);
    const SourceFrame wrapper = frame_at("void __wrapper__device_stub_grow<float>(float*&)", "/home/me/a.out", 0);
    const SourceFrame grow = frame_at("void grow<float>(float*)", "/home/me/a.out", 0);
    EXPECT_EQ(left_of({of_template, wrapper, grow, kMain}), "main ");
    EXPECT_EQ(left_of({wrapper, kMain}), "main ");
    EXPECT_EQ(left_of({stub, other, kMain}), "scale(double*) main ");
    const SourceFrame of_c = frame_at("__device_stub__Z5plainPfi(float*, int)", "/home/me/a.out", 0);
    EXPECT_EQ(left_of({of_c, frame_at("plain", "/home/me/a.out", 0), kMain}), "main ") << "extern \"C\"";
    EXPECT_EQ(left_of({wrapper, grow, kMain}), "main ");
    const SourceFrame unknown = frame_at("__device_stub__Z", "/home/me/a.out", 0);
    EXPECT_EQ(left_of({unknown, kMain}), "main ");
}

TEST(LaunchStub, TheKernelOfAStubIsInItsName) {
    EXPECT_EQ(kernel_of_stub("__device_stub__Z5scalePfi"), "_Z5scalePfi");
    for (const char* const other : {"", "_Z5scalePfi", "__device_stub_of_mine", "a__device_stub__Z5scalePfi"})
        EXPECT_EQ(kernel_of_stub(other), "") << other;
    EXPECT_TRUE(may_be_kernel("_Z5scalePfi", "_Z5scalePfi"));
    EXPECT_TRUE(may_be_kernel("_Z5scalePfi", "scale")) << "extern \"C\"";
    EXPECT_TRUE(
        may_be_kernel("_ZN2ns5applyIfZ4mainEUnvdl0_PFivE4main1_EEvPT_T0_i", "_ZN2ns5applyIfZ4mainEUlfE_EEvPT_T0_i"));
    EXPECT_TRUE(may_be_kernel("_Z9adam_step4Adam", "adam_step"));
    EXPECT_FALSE(may_be_kernel("_Z9adam_step4Adam", "Adam")) << "that is what it is given";
    EXPECT_FALSE(may_be_kernel("_Z5scalePfi", "rescale"));
    EXPECT_FALSE(may_be_kernel("_Z5scalePfi", "_Z7rescalePfi"));
    EXPECT_FALSE(may_be_kernel("_Z5scalePfi", ""));
}

}  // namespace
}  // namespace numsan
