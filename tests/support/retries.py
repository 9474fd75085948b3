"""What was tried again. scripts/test names the file, counts its lines and shows them: a retry is no secret."""
import os


def note(what, why):
    """One line of the file that NUMSAN_TEST_RETRIES names, written at once; without the variable nothing is kept."""
    path = os.environ.get("NUMSAN_TEST_RETRIES")
    if path:
        with open(path, "a") as file:
            file.write(f"{what}: {' '.join(str(why).split())}\n")
