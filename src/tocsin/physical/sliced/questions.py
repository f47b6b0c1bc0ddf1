"""What conditions on single events ask DataFrames: one column for each answer, joined to the events before the scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame

from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import Source
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.physical.columns import Compiler
from tocsin.physical.sliced.parts import Part
from tocsin.physical.sql import functions as F
from tocsin.physical.tables import Question, answered
from tocsin.physical.values import Kind, Value


class Questions:
    """The questions of a kernel's conditions."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple(sources)
        asked = [node for source in self.sources for node in _asked(source)]
        # Variables that ask the same of an event are answered by one join.
        alike = {key: number for number, key in enumerate(dict.fromkeys(map(anonymous, asked)))}
        self.names = {node: f"__tocsin_has{alike[anonymous(node)]}" for node in asked}

    @property
    def answers(self) -> dict[ex.Expression, Value]:
        """What each question is in a part that `answered` has made."""
        return {node: Value(F.col(name), Kind.BOOLEAN) for node, name in self.names.items()}

    def answered(self, part: Part, compiler: Callable[[str], Compiler]) -> DataFrame:
        """The events of a part with the answers; `compiler` compiles what a variable says of them."""
        questions: dict[str, Question] = {}
        for source in self.sources:
            if set(source.types) & set(part.types):
                for node in _asked(source):
                    values = [compiler(source.variable).value(argument) for argument in node.arguments]
                    questions[self.names[node]] = Question(node, values, self.names[node])
        if not questions:
            return part.renamed
        return answered(part.renamed, list(questions.values()), [column.text for column, _ in part.columns.values()])


def _asked(source: Source) -> list[rx.InTable]:
    nodes = (node for condition in source.conditions for node in condition.walk())
    return [node for node in nodes if isinstance(node, rx.InTable) and node.table.rows is None]
