"""What the two kinds of kernels have in common, as far as shipping events and naming matches ask for it."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.analysis.types import Kind
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Template
from tocsin.kernels.runs.kernel import RunKernel
from tocsin.language import expressions as ex

AnyKernel = Kernel | RunKernel


def templates_of(kernel: AnyKernel) -> tuple[Template, ...]:
    """The kinds of events that a kernel makes."""
    return kernel.templates if isinstance(kernel, RunKernel) else ()


def asked_of(kernel: AnyKernel) -> dict[ex.Expression, Kind]:
    """The aggregates that matches bring along in place of bags, and what they are."""
    if isinstance(kernel, RunKernel):
        return {}
    return {aggregate: test.folds[0].kind for aggregate, test in kernel.conditions.asked.items()}


def shown(kernel: AnyKernel, needs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What the result needs of the variables whose events matches bring."""
    hidden = frozenset() if isinstance(kernel, RunKernel) else kernel.conditions.hidden
    return {name: attributes for name, attributes in needs.items() if name not in hidden}


def hides_events(kernel: AnyKernel) -> bool:
    """Whether no variable need hold the first and the last event of a match."""
    return isinstance(kernel, RunKernel) and kernel.hides_events


def needs_kinds(kernel: AnyKernel) -> bool:
    """Whether a kernel asks for the type of a row beside its flags."""
    if isinstance(kernel, RunKernel):
        return kernel.needs_kinds
    return any(len(source.types) > 1 for source in kernel.sources)
