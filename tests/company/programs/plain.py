"""A training and nothing else; others are preloaded beside it, or run it."""
import small_training

if __name__ == "__main__":
    small_training.show_and_go_bad(small_training.Training().steps())
