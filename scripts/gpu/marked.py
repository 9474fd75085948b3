"""Sections of markdown that are generated: what stands between two comments."""
import re


class NoPlace(Exception):
    """The text lacks the section, or has it twice."""


def replaced(text, begin, end, content):
    """`text` with `content` (without a last newline) between `<!-- begin -->` and the next `<!-- end -->`."""
    first, last = f"<!-- {begin} -->\n", f"<!-- {end} -->"
    pattern = re.compile(re.escape(first) + ".*?" + re.escape(last), re.DOTALL)
    found = len(pattern.findall(text))
    if found != 1:
        raise NoPlace(f"expected '<!-- {begin} -->' once, with its '<!-- {end} -->', found it {found} times")
    return pattern.sub(lambda _: first + content + "\n" + last, text)
