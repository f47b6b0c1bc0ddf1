"""From a query to a plan: what is bound, rewritten and chosen before anything runs. No Spark."""
