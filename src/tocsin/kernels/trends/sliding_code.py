"""The walk of a window over the events, as the text of a function; see `sliding`.

Most instants are one event with one letter, and most weights are small: the steps of such an event are written out
here, for each letter. All others are left to `sliding.step`, which reads them from the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tocsin.kernels.model import Integers
from tocsin.kernels.search.writer import Writer
from tocsin.kernels.trends.sliding import ADD, ADD_ONE, MULTIPLY, RESULT
from tocsin.kernels.trends.steps import Steps

PARAMETERS = (
    "group_from, group_to, own_low, own_high, ts, letters, labels, weights, weighed, weight_digits, window, starts, "
    " ahead, behind, ones, entries, room, n, factors"
)
REST = "n, room, letters, weights, weighed, weight_digits, factors"


@dataclass
class SlidingCode:
    """Writes the function of a table of steps.

    Attributes
    ----------
    steps
        The steps.
    weighed
        For each total the letters that it weighs, as bits.
    is_light
        For each total whether all of its weights are small numbers.
    """

    steps: Steps
    weighed: Sequence[int]
    is_light: Sequence[bool]
    writer: Writer = field(default_factory=Writer)

    def text(self) -> str:
        """To the results by label add the words of all groups; False: there is no room for a number."""
        writer = self.writer
        writer.line("@compiled")
        with writer.block(f"def search({PARAMETERS}):"):
            writer.all((f"size = {1 + len(self.weighed)}", "stride = HEAD + size * room", "many = len(letters)"))
            with writer.block("for g in range(len(group_from)):"):
                writer.all(("first = group_from[g]", "end = group_to[g]"))
                with writer.block("while first < end and ts[first] < own_low[g]:"):
                    writer.line("first += 1")
                writer.line("reset(n, size, room, entries, ones)")
                (self._slide if self.steps.has_window else self._backwards)()
            writer.line("return True")
        return writer.text

    def _slide(self) -> None:
        """The events from `left` to `right` − 1 are in the window."""
        writer = self.writer
        writer.line("left = right = last = first")
        with writer.block("while last < end and ts[last] <= own_high[g]:"):
            writer.all(("begin = last", "bits = 0"))
            with writer.block("while last < end and ts[last] == ts[begin]:"):
                writer.all(("bits |= letters[last]", "last += 1"))
            with writer.block(f"if bits & {self._first_letters} == 0:"):
                writer.line("continue")
            with writer.block("if right <= last:"):
                writer.all(("reset(n, size, room, entries, ones)", "left = right = last"))
            with writer.block("while left < last:"):
                writer.line("middle = left + 1")
                with writer.block("while middle < last and ts[middle] == ts[left]:"):
                    writer.line("middle += 1")
                self._instant("behind", self.steps.behind, "left", "middle", "0")
                writer.line("left = middle")
            writer.line("latest = ts[begin] + (window - 1)")
            with writer.block("while right < end and ts[right] <= latest:"):
                writer.line("middle = right + 1")
                with writer.block("while middle < end and ts[middle] == ts[right]:"):
                    writer.line("middle += 1")
                self._instant("ahead", self.steps.ahead, "right", "middle", "0")
                writer.line("right = middle")
            with writer.block("for event in range(begin, last):"):
                self._instant("starts", self.steps.starts, "event", "event + 1", "entries + labels[event]")

    def _backwards(self) -> None:
        writer = self.writer
        writer.line("last = end")
        with writer.block("while last > first:"):
            writer.line("begin = last - 1")
            with writer.block("while begin > first and ts[begin - 1] == ts[begin]:"):
                writer.line("begin -= 1")
            with writer.block("if ts[begin] <= own_high[g]:"), writer.block("for event in range(begin, last):"):
                self._instant("starts", self.steps.starts, "event", "event + 1", "entries + labels[event]")
            self._instant("behind", self.steps.behind, "begin", "last", "0")
            writer.line("last = begin")

    @property
    def _first_letters(self) -> int:
        return sum({1 << int(letter) for letter in self.steps.starts[:, 0]})

    # --- steps ------------------------------------------------------------------------------------

    def _instant(self, name: str, table: Integers, begin: str, last: str, result: str) -> None:
        writer = self.writer
        if not len(table):
            return
        letters = sorted(set(table[:, 0].tolist()))
        writer.line(f"bits = letters[{begin}] & {sum(1 << letter for letter in letters)}")
        is_more = "bits & (bits - 1)" if name == "starts" else f"{last} - {begin} > 1 or bits & (bits - 1)"
        with writer.block(f"if {is_more}:"):
            self._or_fail(f"step({name}, {begin}, {last}, {result}, {REST})")
        for letter in letters:
            with writer.block(f"elif bits == {1 << letter}:"):
                if name == "starts":
                    writer.line(f"result = ({result}) * stride")
                for number in self._weighed(letter):
                    place = f"({number - 1} * many + {begin}) * weight_digits"
                    light = self.is_light[number - 1]
                    writer.line(f"f{number} = weights[{place}]" if light else f"w{number} = {place}")
                for row in table.tolist():
                    if row[0] == letter:
                        self._step(*row)

    def _weighed(self, letter: int, *, light: bool | None = None) -> list[int]:
        """The totals that weigh a letter: all of them, or those with small weights, or the others."""
        return [
            number
            for number, (of, is_light) in enumerate(zip(self.weighed, self.is_light, strict=True), start=1)
            if of >> letter & 1 and light in (None, is_light)
        ]

    def _step(self, letter: int, what: int, to: int, of: int, sign: int) -> None:
        writer = self.writer
        weighed, heavy = (self._weighed(letter, light=light) for light in (True, False))
        writer.line(f"to, of = {'result' if to == RESULT else f'{to} * stride'}, {of} * stride")
        more = "".join(f" + f{number}" for number in weighed)
        if what == ADD_ONE:
            self._settle("n[to] > LIMIT", "to")
            writer.line(f"n[to] += 1{more}")
            writer.line(f"n[to + HEAD] {'+' if sign > 0 else '-'}= 1")
            for number in weighed:
                writer.line(f"n[to + HEAD + {number} * room] {'+' if sign > 0 else '-'}= f{number}")
            self._products(heavy, f"add_weight(n, to, {{}}, {sign} * weight, digit, size, room)")
        elif what == ADD:
            if weighed:
                self._settle(f"n[of] > SINGLE and 1{more} > 2", "of")
            self._settle(f"n[to] + (1{more}) * n[of] > LIMIT", "to", "of")
            writer.all((f"n[to] += (1{more}) * n[of]", "digits = n[of + 1]", "n[to + 1] = max(n[to + 1], digits)"))
            self._numbers([self._added(number, "+=" if sign > 0 else "-=", number in weighed) for number in self._all])
            self._products(heavy, f"add_product(n, to, {{}}, of, {sign} * weight, digit, size, room)")
        elif what == MULTIPLY:
            self._settle(f"n[to] > LIMIT // (2{more})", "to")
            writer.all((f"n[to] *= 2{more}", "digits = n[to + 1]"))
            self._numbers([self._doubled(number, number in weighed) for number in self._all[:0:-1]])
            self._products(heavy, "add_product(n, to, {}, to, weight, digit, size, room)")
            if heavy:
                writer.line("digits = n[to + 1]")
            self._numbers([self._doubled(0, False)])
        else:
            self._halve(weighed, heavy, more)

    def _products(self, totals: Sequence[int], call: str) -> None:
        """For each digit of the weights of some totals a call."""
        writer = self.writer
        for number in totals:
            with writer.block("for digit in range(weight_digits):"):
                writer.line(f"weight = weights[w{number} + digit]")
                with writer.block("if weight != 0:"):
                    self._or_fail(call.format(number))

    def _or_fail(self, call: str) -> None:
        with self.writer.block(f"if not {call}:"):
            self.writer.line("return False")

    @property
    def _all(self) -> range:
        return range(1 + len(self.weighed))

    def _settle(self, condition: str, *sums: str) -> None:
        with self.writer.block(f"if {condition}:"):
            for each in sums:
                self._or_fail(f"settle(n, {each}, size, room)")

    def _numbers(self, statements: Sequence[str]) -> None:
        """Statements about one digit, `@` places from where a number begins, for all digits."""
        writer = self.writer
        with writer.block("if digits == 1:"):
            writer.all(_at(statement, "") for statement in statements)
        with writer.block("else:"):
            for statement in statements:
                self._loop(statement, "digits")

    def _loop(self, statement: str, digits: str) -> None:
        # Numbers without a sign: compiled code asks of each other index whether it counts from the end, and then does
        # not work on several digits at a time.
        writer = self.writer
        bases = dict.fromkeys(re.findall(r"\[(.*?) @", statement))
        for number, base in enumerate(bases):
            writer.line(f"b{number} = np.uint64({base})")
            statement = statement.replace(f"[{base} @", f"[b{number} @")
        with writer.block(f"for place in range(np.uint64({digits})):"):
            writer.line(_at(statement, " + place"))

    def _added(self, number: int, sign: str, is_weighed: bool) -> str:
        value = f"n[of + HEAD + {number} * room @]"
        if is_weighed:
            value = f"({value} + f{number} * n[of + HEAD @])"
        return f"n[to + HEAD + {number} * room @] {sign} {value}"

    def _doubled(self, number: int, is_weighed: bool) -> str:
        value = f"n[to + HEAD + {number} * room @]"
        more = f" + f{number} * n[to + HEAD @]" if is_weighed else ""
        return f"{value} += {value}{more}"

    def _halve(self, weighed: Sequence[int], heavy: Sequence[int], more: str) -> None:
        """Divide by (2, weights): the count first, which the totals then have too much of."""
        writer = self.writer
        self._settle(f"n[to] > LIMIT // (2{more})", "to")
        if not heavy:
            writer.line(f"n[to] = ((n[to] + (0{more}) * ((n[to] >> 1) + HALF)) >> 1) + HALF")
        writer.line("digits = n[to + 1]")
        with writer.block(f"if {'False' if heavy else 'digits == 1'}:"):
            for number in self._all:
                value = f"n[to + HEAD + {number} * room]"
                less = f"({value} - f{number} * n[to + HEAD])" if number in weighed else value
                writer.line(f"{value} = {less} >> 1")
        with writer.block("else:"):
            self._halved(0)
            for number in weighed:
                self._loop(f"n[to + HEAD + {number} * room @] -= f{number} * n[to + HEAD @]", "digits")
            if heavy:
                writer.line(f"n[to] += (0{more}) * n[to] + HALF")
                self._products(heavy, "add_product(n, to, {}, to, -weight, digit, size, room)")
                writer.line("digits = n[to + 1]")
            for number in self._all[1:]:
                self._halved(number)
            tops = " and ".join(f"n[to + HEAD + {number} * room + digits - 1] == 0" for number in self._all)
            with writer.block(f"if digits > 1 and {tops}:"):
                writer.line("n[to + 1] = digits - 1")

    def _halved(self, number: int) -> None:
        first = f"to + HEAD + {number} * room"
        value = f"n[{first} @]"
        self._loop(f"{value} = ({value} >> 1) + ((n[{first} + 1 @] & 1) << (DIGIT - 1))", "digits - 1")
        self.writer.line(f"n[{first} + digits - 1] >>= 1")


def _at(statement: str, place: str) -> str:
    return statement.replace(" @", place)
