"""Find money mules and a refund scam in the bundled trace, on Spark: `python examples/fraud_rules_spark.py`.

The rules are in `fraud.parte`, which comes with the package: A passes money on, B splits it into three parts or any
number, C sends money back that is then claimed too. `known_route` is a table of routes that money usually takes.
Needs `pip install "tocsin[spark]"` and a JDK 17 or newer. It prints:

    FraudPassThrough: incoming 2, outgoing 10
    FraudDiffusion: incoming 4, outgoing_1 6, outgoing_2 9, outgoing_3 200
    FraudDiffusionInAll: incoming 4, outgoing [6, 9, 200]
    FraudRefundScam: incoming 13, refund 201
    FraudRefundScam: incoming 13, refund 5003
    +-------------------+------------+------+---------------------+---------------------+
    |                 ts|mule_account|amount|incoming_transactions|outgoing_transactions|
    +-------------------+------------+------+---------------------+---------------------+
    |2018-01-01 08:00:00|           D|   120|                  [2]|                 [10]|
    |2018-01-01 08:00:10|           H|   320|                  [4]|          [6, 9, 200]|
    +-------------------+------------+------+---------------------+---------------------+
"""

from typing import Any

from pyspark.sql import SparkSession

import tocsin
from tocsin import datasets


def ids(held: Any) -> Any:
    """The id of a transfer, or those of several."""
    return [event["id"] for event in held] if isinstance(held, list) else held["id"]


def main() -> None:
    """Match every rule, then read what they emit."""
    spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    events = spark.read.csv(str(datasets.path("fraud")), header=True, inferSchema=True)
    program = tocsin.rules(
        datasets.pattern_path("fraud").read_text(encoding="utf-8"), tables={"known_route": datasets.known_routes()}
    )
    for rule in program.program.rules:
        for match in program.matches(rule.name, events).drop("match_id", "claim").orderBy("end").collect():
            found = ", ".join(f"{name} {ids(match[name])}" for name in match.asDict() if name not in ("start", "end"))
            print(f"{rule.name}: {found}")
    program.events("SuspiciousSequenceDetected", events).orderBy("ts").show()


if __name__ == "__main__":
    main()
