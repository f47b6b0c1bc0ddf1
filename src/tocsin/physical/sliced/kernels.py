"""What the two kinds of kernels have in common, as far as shipping events and naming matches ask for it."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Template
from tocsin.kernels.runs.kernel import RunKernel

AnyKernel = Kernel | RunKernel


def templates_of(kernel: AnyKernel) -> tuple[Template, ...]:
    """The kinds of events that a kernel makes."""
    return kernel.templates if isinstance(kernel, RunKernel) else ()


def needs_kinds(kernel: AnyKernel) -> bool:
    """Whether a kernel asks for the type of a row beside its flags."""
    if isinstance(kernel, RunKernel):
        return kernel.needs_kinds
    return any(len(source.types) > 1 for source in kernel.sources)


def hides_rows(kernel: AnyKernel) -> bool:
    """Whether two matches may look equal that were made of different rows, none of which has a twin.

    PROJECT leaves events out, and NEXT begins with an event that it does not bind (R8, R22). What AGG makes stands
    beside the rows that it was made of.
    """
    return any(isinstance(node, alg.Project | alg.NextOf) for node in kernel.query.pattern.walk())
