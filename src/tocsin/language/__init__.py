"""From text or Python calls to a syntax tree in which every node knows where it was written."""
