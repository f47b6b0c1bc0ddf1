"""Find account takeovers in the bundled stream, on Spark: `python examples/account_takeover_spark.py`.

A takeover is a login from abroad, a new password, and a large transfer of the same user, within a quarter of an hour.
The second query finds runs of ever larger transfers: an iteration and an output policy.
Needs `pip install "tocsin[spark]"` and a JDK 17 or newer. It prints:

    +-------------------+-------------------+-----+-------+-------+
    |              start|                end| user|country| amount|
    +-------------------+-------------------+-----+-------+-------+
    |2026-03-02 08:42:00|2026-03-02 08:50:27|chloe|     ZA|5291.65|
    |2026-03-02 09:58:00|2026-03-02 10:06:00|jonas|     SG|8561.26|
    |2026-03-02 10:51:00|2026-03-02 10:58:24| iris|     ZA| 8574.5|
    +-------------------+-------------------+-----+-------+-------+

    +-------------------+-------------------+------+---------+------+
    |              start|                end|  user|transfers| total|
    +-------------------+-------------------+------+---------+------+
    |2026-03-02 08:28:50|2026-03-02 08:38:38|  luca|        3|915.67|
    |2026-03-02 09:50:22|2026-03-02 10:10:50|  luca|        4|409.65|
    |2026-03-02 10:48:12|2026-03-02 11:03:45|dmitri|        3|637.83|
    |2026-03-02 10:52:06|2026-03-02 11:05:27| jonas|        3|600.66|
    |2026-03-02 11:18:04|2026-03-02 11:44:21| jonas|        3|382.08|
    +-------------------+-------------------+------+---------+------+
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


# The longest run of at least three transfers, each larger than the one before, after one login.
RISING = tocsin.pattern("""
    PATTERN SEQ(Login l, Transfer{3,} t)
    PARTITION BY user
    WHERE t[i].amount > t[i-1].amount
    WITHIN 30 MINUTES
    OUTPUT longest
    RETURN l.user, COUNT(t) AS transfers, SUM(t.amount) AS total
""")


def main() -> None:
    # The library never makes or stops a session; this script may. UTC is how the times are shown, nothing else.
    spark = SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    events = spark.read.csv(str(datasets.path("bank")), header=True, inferSchema=True)

    # One DataFrame with a type column. With one per type: {"Login": logins, "PasswordChange": ..., "Transfer": ...}
    matches = TAKEOVER.match(events, time="ts", type="type")

    # A plain DataFrame: nothing has run yet. Instead of show(), write it: matches.write.parquet("takeovers")
    matches.drop("match_id").orderBy("start").show()

    RISING.match(events).drop("match_id").orderBy("start").show()


if __name__ == "__main__":
    main()
