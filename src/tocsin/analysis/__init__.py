"""From a syntax tree to a checked query of the algebra, and what can be known of it before it runs."""
