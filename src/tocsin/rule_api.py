"""Programs of rules: `rules()` compiles one; `Rules` has its matches and events, checks and explanations."""

from __future__ import annotations

import re
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from tocsin import errors
from tocsin.algebra.programs import TIMESTAMP, Program
from tocsin.analysis.rules.scopes import Registry
from tocsin.analysis.rules.translate import translate
from tocsin.engines.dispatch import (
    MatchOptions,
    RulesCheckOptions,
    check_demands,
    check_options,
    program_run,
    with_options,
)
from tocsin.explain.rule_report import RulesReport, checked_program, program_parts, rates_of
from tocsin.language.grammars import LONGEST_TEXT
from tocsin.language.partelang import ast, parse, print_program
from tocsin.language.user_defined import Function, functions_of, tables_of
from tocsin.optimizer.choose import expected_explosion
from tocsin.optimizer.statistics import Statistics
from tocsin.options import check_max_text, check_name
from tocsin.plan.prepare import distances_of
from tocsin.reports import Report, query_html, sections

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from tocsin.engines.rule_run import Run

KEYWORDS = re.compile(
    r"\b(template|rule|pattern|use|where|when|then|select|emit|at|with|no|all|in|distinct|unordered)\b"
)


def rules(
    text: str,
    *,
    name: str | None = None,
    functions: Mapping[str, Function] | None = None,
    tables: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | Callable[[str], str | None] | None = None,
    max_text: int = LONGEST_TEXT,
) -> Rules:
    """Compile a program of rules (PARTElang): all problems are shown at once.

    Parameters
    ----------
    text
        The program.
    name
        What messages call the text, such as the name of its file.
    functions
        Functions and predicates of your own that the text calls, each made by `tocsin.function`.
    tables
        Reference tables that the text asks, `known(a, b)`: rows as tuples or dicts, or a DataFrame.
    types
        Spark's names of types that the text calls by names of its own: `{"AccountId": "string"}`.
    modules
        The texts of modules that the program uses, by name, or what finds them.
    max_text
        The most characters the text and each module may have; a longer one is refused before it is read.

    Returns
    -------
    Rules
        To be matched, checked and explained.

    Raises
    ------
    QuerySyntaxError
        When the text is not a program; it shows the place and what was expected there.
    QueryBindingError
        When the program breaks a rule that programs have to keep; the error names it (`restriction`).

    Warns
    -----
    TocsinWarning
        When the program runs, but may not say what was meant.

    Examples
    --------
    >>> import tocsin
    >>> p = tocsin.rules('''
    ...     template Request { id : Integer }
    ...     template Reply   { id : Integer }
    ...     template Timeout { id : Integer }
    ...     rule NoReply where
    ...       request : Request
    ...       no reply : Reply { id = request.id }
    ...     when
    ...       no reply in request [0 seconds, 5 seconds]
    ...     then
    ...       emit Timeout at request.timestamp + 5 seconds with { id = request.id }
    ... ''')
    >>> rows = {"Request": [{"ts": 0, "id": 1}, {"ts": 10, "id": 2}], "Reply": [{"ts": 12, "id": 2}]}
    >>> tocsin.reference.events(p, rows)
    {'Timeout': [{'ts': 5000000, 'id': 1}]}
    """
    if not isinstance(text, str):
        raise errors.InvalidOptionError(
            f"A program is a text, not a {type(text).__name__}.", hint="write `tocsin.rules('rule R where a : A')`."
        )
    registry = Registry(functions_of(functions), tables_of(tables))
    check_max_text("max_text", max_text)
    check_name("name", name)
    for option, given in (("types", types), ("modules", modules)):
        if given is not None and not isinstance(given, Mapping) and not (option == "modules" and callable(given)):
            raise errors.InvalidOptionError(
                f"`{option}=` is a {type(given).__name__}, not a mapping from names to texts.",
                hint=f"write `{option}={{'Name': '…'}}`.",
            )
    tree = parse(text, name or "<rules>", max_text=max_text)
    load = modules if callable(modules) else (modules or {}).get
    translation = translate(tree, registry, load=load, types=types, max_text=max_text)
    for warning in translation.warnings:
        python_warnings.warn(warning, stacklevel=2)
    return Rules(text, tree, translation.program, translation.warnings)


@dataclass(frozen=True, repr=False)
class Rules:
    """A compiled program; made by `tocsin.rules`.

    Attributes
    ----------
    text
        The program as text.
    tree
        Its syntax tree.
    program
        Its meaning: rules of the algebra, with their strata.
    warnings
        What the compiler warned of.
    """

    text: str
    tree: ast.Program
    program: Program
    warnings: tuple[errors.TocsinWarning, ...] = ()

    @with_options(MatchOptions)
    def matches(self, rule: str, inputs: DataFrame | Mapping[str, DataFrame], **options: Unpack[MatchOptions]) -> Any:
        """Find every match of one rule, on the inputs and on what other rules emit. Nothing runs until you use it.

        Parameters
        ----------
        rule
            The name of the rule.
        inputs, time, tie, type, id, time_unit, engine, statistics, max_matches_per_start, max_task_memory
            As for `Pattern.match`. Events of types that rules emit may come from outside too, with the columns of
            their template. `time` as a mapping may leave such types out: their time is then called `timestamp`.
        strategy
            `"auto"`, or `"aggregate"`: each rule by itself, by nothing but aggregates over overlapping windows.
        form
            `"matches"`; rules have no compact rows.
        lateness, shards, emit, heartbeats, late, idle_timeout, rates
            As for `Pattern.match`. A stream emits the matches of rules in the order of the watermark, with either value
            of `emit`; those that read emitted events when all of these are known too.

        Returns
        -------
        DataFrame
            `match_id`, `start`, `end`, and one struct per variable; a streaming one on streaming DataFrames.

        Raises
        ------
        UnsupportedError
            When the rule, or one that it reads from, has something that no engine runs yet;
            `tocsin.reference.evaluate` runs all of it on plain rows.
        TocsinError
            When the program and the inputs do not fit together.

        Examples
        --------
        >>> p = rules("template A { x : Integer }  rule R where a : A { x > 1 }")
        >>> p.matches("R", {"A": [{"ts": 0, "x": 1}, {"ts": 5, "x": 2}]}, engine="local")["a"].to_pylist()
        [{'ts': 5, 'x': 2}]
        """
        self._require([rule])
        return self._run(inputs, options, [rule]).matches(rule)

    @with_options(MatchOptions)
    def match(
        self,
        inputs: DataFrame | Mapping[str, DataFrame],
        *,
        rules: Iterable[str] | None = None,
        **options: Unpack[MatchOptions],
    ) -> Any:
        """Find every match of several rules in one plan, which shares what they have in common. Nothing runs yet.

        The inputs are read and shuffled once for the rules of a stratum; equal patterns and common beginnings are
        searched once; what rules emit is found once, however many rules read it.

        Parameters
        ----------
        inputs
            As for `matches`; so are all options, and what is raised.
        rules
            The names of the rules; all of them when left out.

        Returns
        -------
        DataFrame
            `rule`, `match_id`, `start`, `end`, and for each rule a struct of its variables under the rule's name,
            which is NULL in the matches of others: `found.where("rule = 'R'").select("match_id", "R.*")`.

        Examples
        --------
        >>> p = rules('''template A { x : Integer }
        ...     rule Low where a : A { x < 2 }  rule High where b : A { x > 1 }''')
        >>> found = p.match({"A": [{"ts": 0, "x": 1}, {"ts": 5, "x": 2}]}, engine="local")
        >>> found.select(["rule", "start", "Low", "High"]).to_pylist()[1]
        {'rule': 'High', 'start': 5, 'Low': None, 'High': {'b': {'ts': 5, 'x': 2}}}
        """
        if isinstance(rules, str) or not isinstance(rules, Iterable | None):
            raise errors.InvalidOptionError(
                f"`rules={errors.shown(rules)}` is not a list of names of rules.", hint='write `rules=["R"]`.'
            )
        names = [each.name for each in self.program.rules] if rules is None else list(rules)
        if not names:
            raise errors.InvalidOptionError("`rules=` names no rule.", hint="leave it out to match all rules.")
        self._require(names)
        return self._run(inputs, options, names).together(names)

    def _run(self, inputs: Any, given: MatchOptions, wanted: Iterable[str]) -> Run[Any]:
        """The program on its inputs; everything that is wrong with the options is raised at once."""
        options = check_options(given, inputs, check_rates=partial(rates_of, self.program), of_rules=True)
        run = program_run(self.program, inputs, options)
        if options.known is not None:
            self._warn_of_explosions(wanted, options.known, options.max_matches_per_start)
        return run

    def _warn_of_explosions(self, wanted: Iterable[str], statistics: Statistics, most: int) -> None:
        for name in wanted:
            rule = self.program.rule(name)
            assert rule is not None
            expected = expected_explosion(rule.query, distances_of(rule.query), statistics, TIMESTAMP, most)
            if expected is not None:
                warning = errors.TocsinWarning("EXPLOSION_EXPECTED", f"Rule `{name}`: {expected}")
                python_warnings.warn(warning, stacklevel=4)

    def _require(self, wanted: Iterable[str]) -> None:
        names = [each.name for each in self.program.rules]
        errors.raise_all(
            [
                errors.UnknownRuleError(
                    f"The program has no rule `{errors.named(rule)}`.", hint=errors.did_you_mean(rule, names, "rules")
                )
                for rule in wanted
                if not isinstance(rule, str) or rule not in names
            ]
        )

    @with_options(MatchOptions)
    def events(
        self, template: str, inputs: DataFrame | Mapping[str, DataFrame], **options: Unpack[MatchOptions]
    ) -> Any:
        """Find the events of a template that the program emits: one for each match and `emit`, equal or not.

        Parameters
        ----------
        template
            The name of the template.
        inputs
            As for `matches`; so are all options, and what is raised.

        Returns
        -------
        DataFrame
            The time column, and the attributes of the template.

        Examples
        --------
        >>> p = rules('''template A { x : Integer }  template B { y : Integer }
        ...     rule R where a : A then emit B at a.timestamp + 1 second with { y = a.x + 1 }''')
        >>> p.events("B", {"A": [{"ts": 0, "x": 1}]}, engine="local").to_pylist()
        [{'ts': 1000000, 'y': 2}]
        """
        if not isinstance(template, str) or template not in self.program.emitters:
            raise errors.UnknownRuleError(
                f"No rule emits `{errors.named(template)}`.",
                hint=errors.did_you_mean(template, self.program.emitted, "emitted templates"),
            )
        emitting = [rule.name for rule in self.program.rules if any(emit.type == template for emit in rule.emits)]
        return self._run(inputs, options, emitting).events(template)

    @with_options(RulesCheckOptions)
    def check(
        self,
        schemas: DataFrame | StructType | Mapping[str, DataFrame | StructType | Mapping[str, str]] | None = None,
        rates: Mapping[str, Any] | None = None,
        **options: Unpack[RulesCheckOptions],
    ) -> RulesReport:
        """Report what is known before anything runs; with schemas, check that the inputs fit the templates.

        Parameters
        ----------
        schemas
            As for `Pattern.check`; those of the templates that no rule emits. Left out, the templates alone count.
        rates
            Events per second of each type from outside, `{"Transfer": "100/s"}`: the report then has how much a live
            program remembers.
        time, tie, type, time_unit, lateness
            As for `Pattern.check`.
        streaming
            Refuse a program whose state has no bound that is known before it starts.
        guarantees
            False gives up the bound of types without a rate.
        max_state, live_keys
            As for `Pattern.check`.

        Raises
        ------
        TocsinError
            The one thing that is wrong, or a `QueryErrors` with all of them.

        Examples
        --------
        >>> p = rules('''
        ...     template A { x : Integer }  template B { x : Integer }
        ...     rule R where a : A  no b : B { x = a.x } when no b in a [0 seconds, 4 seconds]
        ... ''')
        >>> print(p.check(rates={"A": 1, "B": 1}).rules[0].sizes)
        store  type  rate  lifetime  events  bytes  per key
        a      A     1/s   4 s       5       160 B  5
        NOT b  B     1/s   4 s       5       160 B  5
        total                        10      320 B  10
        Key: a.x = b.x.
        """
        demands = check_demands(rates, options, RulesCheckOptions)
        return checked_program(self.program, schemas, demands, self.warnings)

    def explain(self) -> Report:
        """Explain how the program is read: strata, the plan and distances of each rule, and what `match` shares."""
        return Report(sections({"Program": self.text.strip("\n")} | program_parts(self.program)))

    def to_text(self) -> str:
        """The program in its canonical form."""
        return print_program(self.tree)

    def __repr__(self) -> str:
        """The text of the program."""
        return self.text.strip("\n")

    def _repr_html_(self) -> str:
        return query_html(self.text, KEYWORDS)
