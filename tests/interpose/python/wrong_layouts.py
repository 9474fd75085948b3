"""No layout with a wrong offset is believed, and none of them is fatal; needs no torch, no pytest.

    python3.N wrong_layouts.py libstacks.so    prints each wrong layout that was believed; status 1 if there is one
"""
import ctypes
import sys

import walk

FIELDS = ("kind", "thread_frame", "cframe_frame", "previous", "code", "instruction", "owner", "locals", "code_file",
          "code_name", "code_qualname", "code_first_line", "code_bytes", "ascii_data", "other_data", "kind_bit")
FAR = (-1, -8, 1024, 2040, 4088, 65528, 1 << 20, 1 << 30, (1 << 31) - 8)


def candidates(field, right, numbers):
    """Values for one field: every near one, those of the other fields, and some that are far away."""
    if field == "kind":
        return {0, 1} - {right}
    near = range(0, 32) if field == "kind_bit" else range(0, 400)
    return ({*near, *FAR} | set(numbers)) - {right}


def same(field, wrong, right, numbers):
    """Whether a wrong number reads what the right one reads."""
    if field in ("cframe_frame", "owner", "code_qualname") and right < 0:
        return wrong < 0
    if field == "kind_bit":
        return False
    return numbers[0] == 0 and field == "code_bytes"  # no frame of 3.10 is read through it


def main(path):
    lib = walk.load(path)
    numbers = (ctypes.c_int32 * 64)()
    count = lib.stacks_layout(numbers)
    if count == 0:
        print("no layout here")
        return 0
    assert count == len(FIELDS), f"{count} numbers: name them in FIELDS"
    right = list(numbers[:count])
    assert lib.stacks_layout_agrees((ctypes.c_int32 * count)(*right)), "the right layout is not believed"
    believed = tried = 0
    for i, field in enumerate(FIELDS):
        for value in sorted(candidates(field, right[i], right)):
            if same(field, value, right[i], right):
                continue
            tried += 1
            wrong = (ctypes.c_int32 * count)(*right[:i], value, *right[i + 1:])
            if lib.stacks_layout_agrees(wrong):
                believed += 1
                print(f"{field} {value} is believed, {right[i]} is right")
    print(f"{believed} of {tried} wrong layouts are believed")
    return believed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
