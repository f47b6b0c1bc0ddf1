"""Programs of rules on the engines: each rule is a query, and reads what others emit as it reads any input."""
