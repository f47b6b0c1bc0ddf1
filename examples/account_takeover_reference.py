"""Find account takeovers without Spark: the builder and the reference evaluator, on plain rows.

`pip install tocsin`, then `python examples/account_takeover_reference.py`; it needs nothing but Python. The reference
is slow and exact, for small data; `account_takeover_spark.py` runs the same on Spark. It prints:

    Taken over:
      08:42 to 08:50  user chloe, country ZA, amount 5291.65
      09:58 to 10:06  user jonas, country SG, amount 8561.26
      10:51 to 10:58  user iris, country ZA, amount 8574.5
    Rising transfers:
      08:28 to 08:38  user luca, amounts [185.97, 362.2, 367.5], total 915.67
      09:50 to 10:10  user luca, amounts [12.39, 77.33, 114.38, 205.55], total 409.65
      10:48 to 11:03  user dmitri, amounts [128.93, 239.78, 269.12], total 637.83
      10:52 to 11:05  user jonas, amounts [75.52, 136.34, 388.8], total 600.66
      11:18 to 11:44  user jonas, amounts [38.49, 92.08, 251.51], total 382.08
"""

from typing import Any

import tocsin
from tocsin import builder, col, datasets, event, seq

# A login from abroad, a new password, and a large transfer of the same user, within a quarter of an hour.
TAKEOVER = tocsin.pattern(
    seq(event("Login", "l"), event("PasswordChange", "p"), event("Transfer", "t"))
    .partition_by("user")
    .where(col("l.country") != col("l.home"), col("t.amount") > 1000)
    .within(minutes=15)
    .returns("l.user", "l.country", "t.amount")
)

# The longest run of at least three transfers, each larger than the one before, after one login.
RISING = tocsin.pattern(
    seq(event("Login", "l"), event("Transfer", "t").at_least(3))
    .partition_by("user")
    .where(col("t[i].amount") > col("t[i-1].amount"))
    .within(minutes=30)
    .output("longest")
    .returns("l.user", amounts="t.amount", total=builder.sum_("t.amount"))
)


def show(title: str, matches: list[dict[str, Any]]) -> None:
    print(title)
    for match in sorted(matches, key=lambda match: match["start"]):
        columns = ", ".join(f"{name} {value}" for name, value in match.items())
        print(f"  {match['start']:%H:%M} to {match['end']:%H:%M}  {columns}")


def main() -> None:
    events = datasets.load("bank")  # a list of rows with a type column
    show("Taken over:", tocsin.reference.evaluate(TAKEOVER, events))
    show("Rising transfers:", tocsin.reference.evaluate(RISING, events))


if __name__ == "__main__":
    main()
