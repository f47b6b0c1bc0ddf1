"""Find account takeovers in the bundled stream, on Spark: `python examples/account_takeover_spark.py`.

A takeover is a login from abroad, a new password, and a large transfer of the same user, within a quarter of an hour.
Needs `pip install "tocsin[spark]"` and a JDK 17 or newer. It prints:

    +-------------------+-------------------+-----+-------+-------+
    |              start|                end| user|country| amount|
    +-------------------+-------------------+-----+-------+-------+
    |2026-03-02 08:42:00|2026-03-02 08:50:27|chloe|     ZA|5291.65|
    |2026-03-02 09:58:00|2026-03-02 10:06:00|jonas|     SG|8561.26|
    |2026-03-02 10:51:00|2026-03-02 10:58:24| iris|     ZA| 8574.5|
    +-------------------+-------------------+-----+-------+-------+
"""

from pyspark.sql import SparkSession

import tocsin
from tocsin import datasets

TAKEOVER = tocsin.pattern("""
    PATTERN SEQ(Login l, PasswordChange p, Transfer t)
    PARTITION BY user
    WHERE l.country != l.home
      AND t.amount > 1000
    WITHIN 15 MINUTES
    RETURN l.user, l.country, t.amount
""")


def main() -> None:
    # The library never makes or stops a session; this script may. UTC is how the times are shown, nothing else.
    spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    events = spark.read.csv(str(datasets.path("bank")), header=True, inferSchema=True)

    # One DataFrame with a type column. With one per type: {"Login": logins, "PasswordChange": ..., "Transfer": ...}
    matches = TAKEOVER.match(events, time="ts", type="type")

    # A plain DataFrame: nothing has run yet. Instead of show(), write it: matches.write.parquet("takeovers")
    matches.drop("match_id").orderBy("start").show()


if __name__ == "__main__":
    main()
