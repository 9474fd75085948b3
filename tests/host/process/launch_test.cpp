#include "host/process/launch.h"

#include <gtest/gtest.h>

#include <map>

namespace numsan {
namespace {

std::map<std::string, std::string> g_variables;

LaunchFacts facts_with(std::map<std::string, std::string> variables) {
    g_variables = std::move(variables);
    return launch_facts([](const char* name) -> const char* {
        const auto found = g_variables.find(name);
        return found == g_variables.end() ? nullptr : found->second.c_str();
    });
}

struct Case {
    const char* launcher;
    std::map<std::string, std::string> variables;
    const char* job;
};

TEST(Launch, EachLauncherSaysWhichProcessThisIs) {
    const std::map<std::string, std::string> torch{
        {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29400"}};
    const auto with = [&](std::map<std::string, std::string> more) {
        more.insert(torch.begin(), torch.end());
        return more;
    };
    const Case cases[] = {
        {"torchrun", with({{"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}), "none n0 29400"},
        {"deepspeed", with({{"CROSS_SIZE", "4"}, {"CROSS_RANK", "2"}}), "n0 29400"},
        {"ray", with({{"RAY_RAYLET_PID", "77"}, {"RAY_JOB_ID", "01000000"}}), "01000000 n0 29400"},
        {"environment", torch, "n0 29400"},
        {"openmpi",
         {{"OMPI_COMM_WORLD_RANK", "5"},
          {"OMPI_COMM_WORLD_SIZE", "8"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
          {"PMIX_NAMESPACE", "prte-n0-1@1"}},
         "prte-n0-1@1"},
        {"mvapich",
         {{"MV2_COMM_WORLD_RANK", "5"}, {"MV2_COMM_WORLD_SIZE", "8"}, {"MV2_COMM_WORLD_LOCAL_RANK", "1"}},
         nullptr},
        {"mpi",
         {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "0"}},
         "9"},
        {"slurm",
         {{"SLURM_PROCID", "5"},
          {"SLURM_NTASKS", "16"},
          {"SLURM_STEP_NUM_TASKS", "8"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_JOB_ID", "9"},
          {"SLURM_STEP_ID", "0"}},
         "9 0"},
    };
    for (const Case& one : cases) {
        const LaunchFacts facts = facts_with(one.variables);
        EXPECT_EQ(facts.launcher, one.launcher);
        EXPECT_EQ(facts.rank, 5) << one.launcher;
        EXPECT_EQ(facts.world_size, 8) << one.launcher;
        EXPECT_EQ(facts.local_rank, 1) << one.launcher;
        EXPECT_EQ(facts.job, one.job == nullptr ? std::nullopt : std::optional<std::string>(one.job)) << one.launcher;
    }
}

TEST(Launch, ALauncherInsideOfAnAllocationGoesFirst) {
    const LaunchFacts facts =
        facts_with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"RANK", "3"}, {"WORLD_SIZE", "16"}});
    EXPECT_EQ(facts.launcher, "environment");
    EXPECT_EQ(facts.rank, 3);
    EXPECT_EQ(facts.world_size, 16);
}

TEST(Launch, WhatIsNoNumberIsNoRank) {
    for (const char* text : {"", "x", "-1", "3x", "99999999999999"}) {
        EXPECT_FALSE(facts_with({{"RANK", text}}).rank.has_value()) << text;
    }
    const LaunchFacts facts = facts_with({{"RANK", "x"}, {"PMI_RANK", "5"}});
    EXPECT_EQ(facts.launcher, "mpi");
    EXPECT_EQ(facts.rank, 5);
    EXPECT_FALSE(facts.world_size.has_value());
}

TEST(Launch, AnAllocationWithoutAStepHasStartedNoRank) {
    const LaunchFacts facts =
        facts_with({{"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "0"}});
    EXPECT_FALSE(facts.rank.has_value());
    EXPECT_FALSE(facts.world_size.has_value());
    EXPECT_FALSE(facts.launcher.has_value());
}

TEST(Launch, ATaskThatIsAloneIsNoRank) {
    EXPECT_FALSE(facts_with({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).rank.has_value());
    EXPECT_FALSE(facts_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).rank.has_value());
    EXPECT_EQ(facts_with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).rank, 0);
}

TEST(Launch, WithoutALauncherNothingIsSaid) {
    const LaunchFacts facts = facts_with({{"MASTER_ADDR", "n0"}, {"WORLD_SIZE", "8"}});
    EXPECT_FALSE(facts.rank.has_value());
    EXPECT_FALSE(facts.world_size.has_value());
    EXPECT_FALSE(facts.launcher.has_value());
    EXPECT_FALSE(facts.job.has_value());
}

}  // namespace
}  // namespace numsan
