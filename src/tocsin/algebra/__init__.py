"""One algebra for all front ends: what a query means, free of any text (SEMANTICS §3)."""
