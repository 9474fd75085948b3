# Functions whose frames are known in every member that a walk reads: each calls `check` where nothing but its first
# local holds `subject`. map() enters its function through C, a generator's frame lies in the generator, and names are
# of one, two and four bytes a character.
class Subject:
    def plain_é(self, _):
        check()
    def generated_名(self, _):
        yield check_in_generator()
    def in_cell_𐐀(self, _):
        check()
        return lambda: self
subject = Subject()
[*map(subject.plain_é, [0])]
[*subject.generated_名(0)]
if cells_are_arguments:
    [*map(subject.in_cell_𐐀, [0])]
