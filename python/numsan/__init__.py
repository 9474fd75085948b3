"""numsan, a numerical sanitizer for PyTorch training. The command does the work; a program need not import anything."""
