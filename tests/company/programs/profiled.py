"""A training under torch.profiler and cProfile, which say what they saw how often."""
import cProfile
import pstats

import torch

import small_training

training = small_training.Training().steps(2)
with torch.profiler.profile(record_shapes=True, with_stack=True, with_modules=True, profile_memory=True,
                            schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)) as profiler:
    for _ in range(5):
        with torch.profiler.record_function("my step"):
            training.step()
        profiler.step()
for event in sorted(profiler.key_averages(group_by_input_shape=True), key=lambda e: (e.key, str(e.input_shapes))):
    print(event.key, event.count, event.input_shapes, event.cpu_memory_usage)
functions = cProfile.Profile()
functions.runcall(training.steps, 3)
for (file, line, name), (calls, *_) in sorted(pstats.Stats(functions).stats.items()):
    if file == small_training.__file__:
        print(line, name, calls)
with torch.profiler.profile():
    small_training.show_and_go_bad(training)
