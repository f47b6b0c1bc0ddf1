"""The search of an automaton as the text of one function: events in, runs in an arena, the steps of matches out.

It can be called again where it stopped: `at` holds the position, and all it works with are arrays. Runs in a state
without registers are found by the state, others by a hash of state and registers. When the arena is full, what no live
run can reach is left out, and what has left the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tocsin.analysis.types import Kind
from tocsin.automata.model import START
from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.folds import DOUBLE, KEY, OBJECT, storage
from tocsin.kernels.expressions.leaves import NotNumbers
from tocsin.kernels.runs.automaton_tables import ALWAYS, LATER, Step, Tables
from tocsin.kernels.runs.object_registers import Objects
from tocsin.kernels.runs.registers import Lines, Registers
from tocsin.kernels.runs.texts import (
    ARENA,
    AT,
    GRAPH,
    GRAPHS,
    HELPERS,
    INPUTS,
    LEAF,
    LIVE,
    MATCHES,
    POOL,
    WAYS,
    WORDS,
    WORK,
)

MOST_ALTERNATIVES = 64  # a longer `if … elif` is slow in plain Python, and one of thousands cannot be parsed


class SearchCode:
    """Writes the search of an automaton."""

    def __init__(
        self, tables: Tables, registers: Registers | Objects, has_window: bool, *, as_graphs: bool = False
    ) -> None:
        self.tables = tables
        self.registers = registers
        self.has_window = has_window
        self.as_graphs = as_graphs
        self.writer = Writer()
        # Whether ways that bind the same events are followed together.
        self.follows_words = tables.is_ambiguous and not as_graphs
        self.outputs = GRAPHS if as_graphs else MATCHES
        # All parameters after the window and the limit.
        self.parameters = ("at", *INPUTS, *registers.parameters, *ARENA, *LIVE, *registers.arrays, *WORK)
        self.parameters += (*(POOL if self.follows_words else ()), *self.outputs)

    def text(self) -> str:
        """The text."""
        w = self.writer
        w.line("@compiled")
        with w.block(f"def search(window, most, {', '.join(self.parameters)}):"):
            w.line(f"{', '.join(AT)} = {', '.join(f'at[{place}]' for place in range(len(AT)))}")
            w.line("n_out, n_steps, status = 0, 0, -1", "out_to[0] = 0")
            with w.block("while group < len(group_from):"):
                w.line("begin, behind = group_from[group], group_to[group]")
                w.when("place < 0", "place, first, live, nodes = begin, begin, 0, 0")
                with w.block("while True:"):
                    w.line(*(GRAPH if self.as_graphs else WORDS if self.follows_words else WAYS).splitlines())
                    w.when("status >= 0", "break")
                    w.when("place >= behind", "break")
                    self._room()
                    self._event()
                    w.line("place += 1")
                w.when("status >= 0", "break")
                w.line("group += 1", "place = -1")
            w.when("status < 0", "status = DONE")
            for place, name in enumerate(AT):
                w.line(f"at[{place}] = {name}")
            w.line("return status, n_out, n_steps, 0")
        return HELPERS + w.text

    def _room(self) -> None:
        """Room for all that one event can bring."""
        w = self.writer
        most_steps = max(1, *map(len, self.tables.leaving))
        w.when(f"(live + 1) * {most_steps} > live_node.shape[1]", "status = WIDE", "break")
        needed = f"nodes + (live + 1) * {2 * most_steps} + 2"
        with w.block(f"if {needed} > len(a_step):"):
            w.line(f"nodes = compacted({', '.join(ARENA)}, live_node, cur, live, nodes, first)")
            w.when(f"nodes * 2 > len(a_step) or {needed} > len(a_step)", "status = GROW", "break")

    def _event(self) -> None:
        w = self.writer
        w.line("i = place", "ts, word = times[i], words[i]")
        if self.has_window:
            with w.block("while ts - times[first] >= window:"):
                w.line("first += 1")
        if isinstance(self.registers, Objects) or any(step.timing for step in self.tables.steps):
            w.line("is_later = i == begin or ts > times[i - 1]")
        w.line("nxt, n_next, accepted = 1 - cur, 0, -1")
        with w.block("for k in range(live + 1):"):
            with w.block("if k < live:"):
                w.line("node = live_node[cur, k]")
                w.when("a_latest[node] < first", "continue")
                w.line("state = live_state[cur, k]")
            with w.block("else:"):
                if not self.as_graphs:
                    w.when("ts < own_low[group] or ts > own_high[group]", "break")
                w.line(f"node, state = -1, {START}")
            leaving = [state for state, steps in enumerate(self.tables.leaving) if steps]
            _choose(w, "state", leaving, self._state)
        w.line("live, cur = n_next, nxt")
        # A slice owns the matches that start in it, but graphs by their end, so that each end has one.
        owned = " and own_low[group] <= ts <= own_high[group]" if self.as_graphs else ""
        with w.block(f"if accepted >= 0{owned}:"):
            w.line("stack_node[0], stack_depth[0], stack, end = accepted, 0, 1, i")
            if self.follows_words:
                w.line("pool[0], stack_from[0], pooled = accepted, 0, 1")

    def _state(self, state: int) -> None:
        self.writer.line(*self.registers.loaded(self.tables.registers[state]))
        for step in self.tables.leaving[state]:
            tests = [f"word & {step.needs} == {step.needs}"] if step.needs else []
            if step.timing != ALWAYS:
                tests.append("is_later" if step.timing == LATER else "not is_later")
            with self.writer.condition(*tests):
                self._step(step)

    def _step(self, step: Step) -> None:
        w, tests = self.writer, []
        if step.guard is not None:
            tests = [self.registers.holds(step, Lines(w, f"g{step.number}_"))]
        with w.condition(*tests):
            after = self.registers.after(step, self.tables.registers[step.target], Lines(w, f"u{step.number}_"))
            if step.source == START:
                with w.block("if node < 0:"):
                    self._node(LEAF, "-1", "i")
                    w.line("node = nodes - 1")
            w.line("history = node")
            if step.is_kept:
                self._node(step.number, "node", "a_latest[node]")
                w.line("history = nodes - 1")
            if step.target in self.tables.automaton.finals:
                with w.block("if accepted < 0:"):
                    w.line("accepted = history")
                with w.block("else:"):
                    w.line(f"accepted, nodes = joined({', '.join(ARENA[:4])}, nodes, accepted, history, first)")
            else:
                self._reach(step.target, after)

    def _node(self, step: int, before: str, latest: str) -> None:
        self.writer.line(f"a_step[nodes], a_event[nodes], a_before[nodes] = {step}, i, {before}")
        self.writer.line(f"a_latest[nodes] = {latest}", "nodes += 1")

    def _hash(self, target: int, texts: dict[str, str]) -> str:
        """A number for a state and its registers; of few bits at every step, so that plain Python's is the same."""
        mixed = str(target)
        for full, text in texts.items():
            is_hashed = self.registers.arrays[f"live_{full}"] in (DOUBLE, KEY)
            number = f"hash({text})" if is_hashed else f"int({text})"
            mixed = f"(({mixed} & 0xFFFFFFFF) * 0x9E3779B1 + ({number} & 0xFFFFFFFF))"
        return f"({mixed} >> 7)"

    def _reach(self, target: int, texts: dict[str, str]) -> None:
        """Join the runs that are in the state with the same registers already, or be the first."""
        w = self.writer
        compared = {full: text for full, text in texts.items() if self.registers.arrays[f"live_{full}"] != OBJECT}
        w.line("slot = -1")
        if not texts:
            with w.block(f"if s_stamp[{target}] == i:"):
                w.line(f"slot = s_slot[{target}]")
            with w.block("else:"):
                w.line(f"s_stamp[{target}], s_slot[{target}] = i, n_next")
        else:
            w.line(f"place_of = {self._hash(target, compared)} & (len(h_slot) - 1)")
            with w.block("while h_stamp[place_of] == i:"):
                w.line("slot = h_slot[place_of]")
                same = [f"live_state[nxt, slot] == {target}"]
                same += [f"live_{full}[nxt, slot] == {text}" for full, text in compared.items()]
                w.when(f"{' and '.join(same)}", "break")
                w.line("slot = -1", "place_of = (place_of + 1) & (len(h_slot) - 1)")
            w.when("slot < 0", "h_stamp[place_of], h_slot[place_of] = i, n_next")
        with w.block("if slot < 0:"):
            w.line(f"live_state[nxt, n_next], live_node[nxt, n_next] = {target}, history")
            for full, text in texts.items():
                w.line(f"live_{full}[nxt, n_next] = {text}")
            w.line("n_next += 1")
        with w.block("else:"):
            w.line(
                f"live_node[nxt, slot], nodes = joined({', '.join(ARENA[:4])}, nodes, live_node[nxt, slot], history, "
                "first)"
            )


# --- derived events -------------------------------------------------------------------------------


class ReplayCode:
    """Writes the function that computes derived events from the steps of matches."""

    def __init__(self, tables: Tables, registers: Registers | Objects) -> None:
        self.tables = tables
        self.registers = registers
        # The kind of each output, by template and field, once the text is written; None: a Python object.
        self.kinds: dict[tuple[int, int], Kind | None] = {
            (number, place): Kind.NULL
            for number, one in enumerate(tables.templates)
            if one.is_derived
            for place in range(len(one.attributes))
        }

    @property
    def outputs(self) -> tuple[tuple[int, int, str], ...]:
        """Template and field of each output, and how it is held, once the text is written."""
        return tuple((*one, OBJECT if kind is None else storage(kind)) for one, kind in self.kinds.items())

    def text(self) -> str:
        """The text."""
        w = Writer()
        made = [f"{what}{number}_{place}" for number, place in self.kinds for what in ("d", "e")]
        w.line("@compiled")
        with w.block(f"def search({', '.join(['offsets', 'steps', 'events', *self.registers.parameters, *made])}):"):
            for number in sorted({number for number, _ in self.kinds}):
                w.line(f"m{number} = 0")
            with w.block("for match in range(len(offsets) - 1):"):
                w.line(*self.registers.initial)
                with w.block("for at in range(offsets[match], offsets[match + 1]):"):
                    w.line("step, i = steps[at], events[at]")
                    replayed = [
                        step.number
                        for step in self.tables.steps
                        if step.replays or any(output.is_derived for _, output in step.made)
                    ]
                    _choose(w, "step", replayed, lambda number: self._step(self.tables.steps[number], w))
            w.line("return 0, 0, 0, 0")
        return w.text

    def _step(self, step: Step, w: Writer) -> None:
        for made, (template, output) in enumerate(step.made):
            if not output.is_derived:
                continue
            for place in range(len(output.fields or ())):
                lines = Lines(w, f"f{step.number}_{template}_{place}_")
                text, null, kind = self.registers.field(step, made, place, lines)
                self._note(template, place, kind)
                w.line(f"d{template}_{place}[m{template}] = {text}", f"e{template}_{place}[m{template}] = {null}")
            w.line(f"m{template} += 1")
        w.line(*self.registers.replayed(step, Lines(w, f"u{step.number}_")))

    def _note(self, template: int, place: int, kind: Kind | None) -> None:
        if kind is None:
            self.kinds[template, place] = None
            return
        kinds = {self.kinds[template, place], kind} - {Kind.NULL}
        if not kinds <= {Kind.INTEGER, Kind.DOUBLE, Kind.BOOLEAN} or len(kinds) > 1:
            raise NotNumbers  # times, days and ranks are more than their numbers; 1 and 1.0 are different values
        self.kinds[template, place] = next(iter(kinds), Kind.NULL)


def _choose(w: Writer, name: str, numbers: Sequence[int], write: Callable[[int], None]) -> None:
    """One block for each value of a name; where there are many, two halves of them."""
    if len(numbers) > MOST_ALTERNATIVES:
        middle = len(numbers) // 2
        with w.block(f"if {name} < {numbers[middle]}:"):
            _choose(w, name, numbers[:middle], write)
        with w.block("else:"):
            _choose(w, name, numbers[middle:], write)
        return
    keyword = "if"
    for number in numbers:
        with w.block(f"{keyword} {name} == {number}:"):
            write(number)
        keyword = "elif"
