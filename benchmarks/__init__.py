"""How fast Tocsin is, and next to what: seeded streams, workloads, contestants, a report. See docs/benchmarks.md."""
