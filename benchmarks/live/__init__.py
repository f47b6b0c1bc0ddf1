"""Live streams: throughput next to chained joins and to a batch, and a soak over half an hour of steady input."""
