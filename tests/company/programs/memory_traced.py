"""A training whose allocations memray records, and tracemalloc for a time.

usage: memory_traced.py FILE    FILE is what memray writes
"""
import sys
import tracemalloc

import memray
import torch._dynamo  # else the first step of an optimizer imports it, and tracemalloc makes that slow

import small_training

if __name__ == "__main__":
    with memray.Tracker(sys.argv[1]):
        tracemalloc.start(4)
        training = small_training.Training().steps()
        tracemalloc.stop()
        small_training.show_and_go_bad(training)
    records = memray.FileReader(sys.argv[1]).get_high_watermark_allocation_records(merge_threads=True)
    files = {place[1] for record in records for place in record.stack_trace()}
    print("memray", small_training.__file__ in files)
