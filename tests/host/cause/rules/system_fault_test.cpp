// N9: kernels, memory nobody wrote, collectives.
#include <gtest/gtest.h>

#include "tests/host/cause/rules/said.h"

namespace numsan {
namespace {

TEST(SystemFault, OutOfACollective) {
    Features f = features_of("allreduce", Mechanism::OVF, kPosInf);
    f.phase = Phase::Comm;
    f.touched = f.operand_touched = false;
    EXPECT_EQ(winner(f), "N9");
    EXPECT_EQ(said(system_fault, f), Facts{"it came out of a collective"});
    f.narrow = true;
    f.dtype = DType::Float16;
    EXPECT_EQ(winner(f), "N8") << "a sum of ranks that half cannot hold";
}

TEST(SystemFault, ResultThatNoOperandExplains) {
    Features f = features_of("mm", Mechanism::OPAQUE, kNaN);
    EXPECT_EQ(winner(f), "N9");
    EXPECT_EQ(said(system_fault, f), Facts{"no operand that was read explains the result"});
    f.mechanism = Mechanism::DOM;
    EXPECT_NE(winner(f), "N9");
    EXPECT_EQ(said(system_fault, f), Facts{});
}

TEST(SystemFault, MemoryThatNobodyWrote) {
    Features f = features_of("mul", Mechanism::UNINIT, kNaN);
    EXPECT_EQ(winner(f), "N9");
    EXPECT_EQ(said(system_fault, f), Facts{"the memory had been allocated and never written"});
    f.reads_parameter = true;
    EXPECT_EQ(winner(f), "N6") << "an initialisation that was forgotten";
    EXPECT_EQ(said(system_fault, f), Facts{});
}

TEST(SystemFault, ParameterThatNoOperatorWasSeenToWrite) {
    Features f = features_of("external", Mechanism::STATE, kNaN);
    f.phase = Phase::Load;
    f.reads_parameter = f.overwritten = true;
    EXPECT_EQ(winner(f), "N9");
    EXPECT_EQ(said(system_fault, f), Facts{"what wrote it was not seen as an operator"});
    EXPECT_EQ(said(initialization, f), Facts{}) << "training had begun";
    f.overwritten = false;
    EXPECT_EQ(winner(f), "N6");
    EXPECT_EQ(said(system_fault, f), Facts{});
}

TEST(SystemFault, RacesAndDevicesAreNamedByTheirMechanism) {
    for (const Mechanism mechanism : {Mechanism::RACE, Mechanism::HW})
        EXPECT_EQ(winner(features_of("mul", mechanism, kNaN)), "N9") << to_string(mechanism);
}

}  // namespace
}  // namespace numsan
