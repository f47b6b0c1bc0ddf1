"""The count of `exact` as the text of a function: the moves of the machine written out, numbers in one long array.

A sum is `size` numbers (the count, then the totals) of `room` digits, and `extremes` keys. All sums that the walk works
with stand in `n` and `x`, one behind the other: rows of waitings, which have a column for complete words and one for
each waiting at the cut; the words behind the cut, by cut and waiting; those completed there. `s` and `sx` hold the
starts of a block, `o` and `ox` the result by label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tocsin.kernels.search.writer import Writer
from tocsin.kernels.trends.walks import Walk
from tocsin.language.ast import Selection

PARAMETERS = (
    "group_from, group_to, own_low, own_high, ts, letters, follows, labels, weights, weighed, weight_digits, "
    "keys, ranked, room, most_starts, window, n, x, s, sx, events, o, ox"
)


@dataclass(frozen=True)
class Layout:
    """Where sums stand in `n`: the number of the first of each kind."""

    waitings: int
    columns: int

    @property
    def rows(self) -> int:
        """The rows of waitings begin here, and once more behind them."""
        return 0

    @property
    def words(self) -> int:
        """The words behind the cut, and once more."""
        return 2 * self.waitings * self.columns

    @property
    def done(self) -> int:
        """The words completed behind the cut, by cut."""
        return self.words + 2 * self.waitings**2

    @property
    def one(self) -> int:
        """The empty word."""
        return self.done + self.waitings

    @property
    def sums(self) -> int:
        """How many there are."""
        return self.one + 1


@dataclass
class Code:
    """Writes the function of a walk; what there is none of needs no code."""

    walk: Walk
    has_totals: bool
    has_extremes: bool
    has_window: bool
    writer: Writer = field(default_factory=Writer)

    @cached_property
    def layout(self) -> Layout:
        """Where sums stand."""
        waitings = len(self.walk.waitings)
        return Layout(waitings, 1 + waitings if self.has_window else 1)

    @property
    def _is_any(self) -> bool:
        return self.walk.selection is Selection.ANY

    @property
    def _is_next(self) -> bool:
        return self.walk.selection is Selection.NEXT

    @property
    def _is_contiguous(self) -> bool:
        return not self._is_any and not self._is_next

    def text(self) -> str:
        """The function."""
        writer = self.writer
        writer.line("@compiled")
        with writer.block(f"def search({PARAMETERS}):"):
            writer.all(("size, extremes, long = 1 + len(weighed), len(ranked), 2 * room + 2", "unit = size * room"))
            writer.line(f"n[{self.layout.one} * unit] = 1")
            with writer.block("for g in range(len(group_from)):"):
                writer.all(("first = group_from[g]", "end = group_to[g]"))
                with writer.block("while first < end and ts[first] < own_low[g]:"):
                    writer.line("first += 1")
                with writer.block("while first < end and ts[first] <= own_high[g]:"):
                    self._cut()
                    self._backwards()
                    if self.has_window:
                        with writer.block("if found > 0:"):
                            self._forwards()
                    writer.line("first = cut")
            writer.line("return 0, 0, 0, 0")
        return writer.text

    # --- sums -------------------------------------------------------------------------------------

    def _clear(self, numbers: str, keys: str, first: str, sums: str, digits: str) -> None:
        """Make sums empty."""
        writer = self.writer
        with writer.block(f"for number in range(({first}) * size, ({first} + {sums}) * size):"):
            writer.line(f"{numbers}[number * room : number * room + {digits}] = NOTHING")
        if self.has_extremes:
            writer.line(f"{keys}[({first}) * extremes : ({first} + {sums}) * extremes] = NO_KEY")

    def _copy(self, into: str, source: str, sums: int) -> None:
        writer = self.writer
        with writer.block(f"for number in range({sums} * size):"):
            writer.line(f"to, of = ({into}) * unit + number * room, ({source}) * unit + number * room")
            writer.line("n[to : to + used] = n[of : of + used]")
        if self.has_extremes:
            spans = [f"({base}) * extremes : ({base} + {sums}) * extremes" for base in (into, source)]
            writer.line(f"x[{spans[0]}] = x[{spans[1]}]")

    def _grow(self, into: tuple[str, str], at: str, source: str, letter: int) -> None:
        """To the sum `at` add the words of the sum `source` of `n`, each with the event more, as a letter.

        Both may be the same: the count is written last, because the totals need it as it was.
        """
        writer = self.writer
        writer.line(f"to, of = ({at}) * unit, ({source}) * unit")
        guard = ["not is_zero(n, of, used)"] if self.has_extremes else []
        with writer.condition(*guard):
            writer.line("most = used")
            if self.has_totals:
                with writer.block("for number in range(size - 1, 0, -1):"):
                    writer.line("place = to + number * room")
                    writer.line(f"most = max(most, add({into[0]}, place, n, of + number * room, used))")
                    with writer.block(f"if (weighed[number - 1] >> {letter}) & 1:"):
                        writer.line("weight = ((number - 1) * len(ts) + event) * weight_digits")
                        product = f"add_product({into[0]}, place, weights, weight, weight_digits, n, of, used)"
                        writer.line(f"most = max(most, {product})")
            writer.line(f"used = max(most, add({into[0]}, to, n, of, used))")
            if self.has_extremes:
                with writer.block("for number in range(extremes):"):
                    writer.line(f"key = x[({source}) * extremes + number]")
                    with writer.block(f"if (ranked[number] >> {letter}) & 1:"):
                        writer.line("key = min(key, keys[number * len(ts) + event])")
                    place = f"{into[1]}[({at}) * extremes + number]"
                    writer.line(f"{place} = min({place}, key)")

    def _take(self, into: tuple[str, str], at: str, letter: int, state: int) -> None:
        """To the row that begins at `at` add what becomes of a word that takes the event and comes to a state."""
        columns = self.layout.columns
        for waiting in self.walk.of_state[state]:
            with self.writer.block(f"for column in range({columns}):"):
                self._grow(into, f"{at} + column", f"rows + {waiting * columns} + column", letter)
        if state in self.walk.machine.finals:
            self._grow(into, at, str(self.layout.one), letter)

    # --- blocks -----------------------------------------------------------------------------------

    def _cut(self) -> None:
        writer = self.writer
        if not self.has_window:
            writer.line("cut = end")
            return
        starts = sum(1 << letter for state, letter, _ in self.walk.machine.moves if state == 0)
        writer.all(("cut = first", "many = 0"))
        with writer.block("while cut < end and ts[cut] - ts[first] < window:"):
            self._instant_end("cut")
            with writer.block("for event in range(cut, last):"), writer.block(f"if letters[event] & {starts}:"):
                writer.line("many += 1")
            with writer.block("if cut > first and many > most_starts:"):
                writer.line("break")
            writer.line("cut = last")

    def _instant_end(self, begin: str) -> None:
        self.writer.line(f"last = {begin} + 1")
        if not self._is_contiguous:
            with self.writer.block(f"while last < end and ts[last] == ts[{begin}]:"):
                self.writer.line("last += 1")

    def _backwards(self) -> None:
        """What every start of the block leads to, the last start first."""
        writer, layout = self.writer, self.layout
        sums = layout.waitings * layout.columns
        if layout.waitings:
            self._clear("n", "x", "0", str(2 * sums), "room")
            if self.has_window:
                with writer.block(f"for waiting in range({layout.waitings}):"):
                    writer.line(f"n[(waiting * {layout.columns} + 1 + waiting) * unit] = 1")
        writer.line(f"rows, spare, found, used, last = 0, {sums}, 0, 1, cut")
        with writer.block("while last > first:"):
            writer.line("begin = last - 1")
            if not self._is_contiguous:
                with writer.block("while begin > first and ts[begin - 1] == ts[begin]:"):
                    writer.line("begin -= 1")
            self._starts()
            if layout.waitings:
                self._over_instant("rows", "spare", sums, self._back)
            writer.line("last = begin")

    def _starts(self) -> None:
        writer, columns = self.writer, self.layout.columns
        starts = [(letter, target) for state, letter, target in self.walk.machine.moves if state == 0]
        mask = sum(1 << letter for letter, _ in starts)
        header = f"if ts[event] <= own_high[g] and letters[event] & {mask}:"
        with writer.block("for event in range(last - 1, begin - 1, -1):"), writer.block(header):
            self._clear("s", "sx", f"found * {columns}", str(columns), "room")
            for letter, target in starts:
                with writer.block(f"if (letters[event] >> {letter}) & 1:"):
                    self._take(("s", "sx"), f"found * {columns}", letter, target)
            if self.has_window:
                writer.all(("events[found] = event", "found += 1"))
            else:
                self._add_complete("found")

    def _forwards(self) -> None:
        """For every start, the first one first, what it completes inside the block and behind it."""
        writer, layout = self.writer, self.layout
        sums = layout.waitings**2
        if sums:
            self._clear("n", "x", str(layout.words), str(2 * sums + layout.waitings), "room")
            with writer.block(f"for waiting in range({layout.waitings}):"):
                writer.line(f"n[({layout.words} + waiting * {layout.waitings + 1}) * unit] = 1")
        writer.line(f"words, spare, begin = {layout.words}, {layout.words + sums}, cut")
        with writer.block("for start in range(found - 1, -1, -1):"):
            if sums:
                writer.line("latest = ts[events[start]] + (window - 1)")
                with writer.block("while begin < end and ts[begin] <= latest:"):
                    self._instant_end("begin")
                    self._over_instant("words", "spare", sums, self._ahead)
                    writer.line("begin = last")
            writer.line("event = events[start]")
            self._add_complete("start")
            with writer.block(f"for cut_at in range({layout.waitings}):"):
                self._add_joined()

    # --- instants ---------------------------------------------------------------------------------

    def _over_instant(self, sums: str, spare: str, number: int, emit: Callable[[str, int], None]) -> None:
        """Step over the events from `begin` to `last` − 1.

        One event of one letter is stepped over in place where the order of moves allows it; everything else in a copy,
        which then takes the place of the sums.
        """
        writer = self.writer
        in_place = [letter for letter in range(len(self.walk.machine.letters)) if self._takes[letter][1]]
        if self._is_any and in_place:
            writer.all(("event = begin", "bits = letters[begin] if last - begin == 1 else -1"))
            for place, letter in enumerate(in_place):
                with writer.block(f"{'el' if place else ''}if bits == {1 << letter}:"):
                    emit(sums, letter)
            with writer.block("else:"):
                self._in_a_copy(sums, spare, number, emit)
        else:
            self._in_a_copy(sums, spare, number, emit)

    def _in_a_copy(self, sums: str, spare: str, number: int, emit: Callable[[str, int], None]) -> None:
        writer = self.writer
        letters = range(len(self.walk.machine.letters))
        if self._is_contiguous:
            self._clear("n", "x", spare, str(number), "used")
            writer.line("event = begin")
            with writer.block("if follows[begin]:"):
                for letter in letters:
                    with writer.block(f"if (letters[event] >> {letter}) & 1:"):
                        emit(spare, letter)
        else:
            self._copy(spare, sums, number)
            for letter in letters:
                if self._is_next:
                    self._first_of(letter, spare, emit)
                else:
                    header = f"if (letters[event] >> {letter}) & 1:"
                    with writer.block("for event in range(begin, last):"), writer.block(header):
                        emit(spare, letter)
        writer.line(f"{sums}, {spare} = {spare}, {sums}")

    def _first_of(self, letter: int, spare: str, emit: Callable[[str, int], None]) -> None:
        """Under `next` the first event of a letter takes all that wait for it, and nothing of them stays."""
        writer = self.writer
        header = f"if (letters[event] >> {letter}) & 1:"
        with writer.block("for event in range(begin, last):"), writer.block(header):
            emit(spare, letter)
            writer.line("break")

    @cached_property
    def _takes(self) -> list[tuple[list[tuple[int, int]], bool]]:
        """For every letter its moves (waiting, state it comes to), and whether their order allows to work in place.

        Going back, a waiting gets what the waitings of the state it comes to have: these must not have changed yet. So
        whoever reads a waiting comes before the waiting itself; going ahead, the order is the other way round.
        """
        found = []
        for letter in range(len(self.walk.machine.letters)):
            left = [
                (number, self.walk.moves[state, letter])
                for number, (state, awaited) in enumerate(self.walk.waitings)
                if (state, letter) in self.walk.moves and awaited in (-1, letter)
            ]
            ordered: list[tuple[int, int]] = []
            is_ordered = True
            while left:
                is_read = {number for take in left for number in self.walk.of_state[take[1]] if number != take[0]}
                free = [take for take in left if take[0] not in is_read]
                is_ordered = is_ordered and bool(free)  # or else they read each other in a circle
                ordered += free or left
                left = [take for take in left if take not in ordered]
            found.append((ordered, is_ordered))
        return found

    def _back(self, into: str, letter: int) -> None:
        """What waitings lead to that the event takes as a letter."""
        columns = self.layout.columns
        for waiting, state in self._takes[letter][0]:
            row = f"{into} + {waiting * columns}"
            if self._is_next:
                self._clear("n", "x", row, str(columns), "used")
            self._take(("n", "x"), row, letter, state)

    def _ahead(self, into: str, letter: int) -> None:
        """Words that the event takes as a letter, for every cut; complete ones go to those that are done."""
        waitings = self.layout.waitings
        with self.writer.block(f"for cut_at in range({waitings}):"):
            if self._is_next:
                for waiting, _ in self._takes[letter][0]:
                    self._clear("n", "x", f"{into} + cut_at * {waitings} + {waiting}", "1", "used")
            for waiting, state in reversed(self._takes[letter][0]):
                source = f"words + cut_at * {waitings} + {waiting}"
                if state in self.walk.machine.finals:
                    self._grow(("n", "x"), f"{self.layout.done} + cut_at", source, letter)
                for reached in self.walk.of_state[state]:
                    self._grow(("n", "x"), f"{into} + cut_at * {waitings} + {reached}", source, letter)

    # --- results ----------------------------------------------------------------------------------

    def _add_complete(self, start: str) -> None:
        """To the sum of the label add the words of a start that are complete inside its block."""
        writer, columns = self.writer, self.layout.columns
        writer.line("label = labels[event]")
        with writer.block("for number in range(size):"):
            writer.line(f"add(o, (label * size + number) * long, s, {start} * {columns} * unit + number * room, used)")
        if self.has_extremes:
            with writer.block("for number in range(extremes):"):
                place = "ox[label * extremes + number]"
                writer.line(f"{place} = min({place}, sx[{start} * {columns} * extremes + number])")

    def _add_joined(self) -> None:
        """To the sum of the label add the words of a start at a cut, each with every word completed behind it."""
        writer, columns = self.writer, self.layout.columns
        writer.line(f"before = (start * {columns} + 1 + cut_at) * unit")
        writer.line(f"behind = ({self.layout.done} + cut_at) * unit")
        writer.line("place = label * size * long")
        with writer.block("if not is_zero(s, before, used) and not is_zero(n, behind, used):"):
            writer.line("add_product(o, place, s, before, used, n, behind, used)")
            with writer.block("for number in range(1, size):"):
                writer.all(("place += long", "digits = number * room"))
                writer.line("add_product(o, place, s, before + digits, used, n, behind, used)")
                writer.line("add_product(o, place, s, before, used, n, behind + digits, used)")
            if self.has_extremes:
                with writer.block("for number in range(extremes):"):
                    left = f"sx[(start * {columns} + 1 + cut_at) * extremes + number]"
                    right = f"x[({self.layout.done} + cut_at) * extremes + number]"
                    kept = "ox[label * extremes + number]"
                    writer.line(f"{kept} = min({kept}, {left}, {right})")
