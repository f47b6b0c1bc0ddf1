"""Queries that ask something of time each: together they need everything that a stream has to decide."""

ANY = [
    "PATTERN SEQ(A a, B b) WITHIN 6 us",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.x <> c.x PARTITION BY k WITHIN 9 us",
    "PATTERN AND(A a, B b) WITHIN 5 us",
    "PATTERN OR(SEQ(A a, B b), SEQ(B b, C c)) WITHIN 5 us",
    "PATTERN SEQ(A a, B{1,2} b, C c) WHERE b[i].x >= b[i-1].x WITHIN 8 us",
    "PATTERN SEQ(A a1, A a2) WITHIN 4 us",
    "PATTERN SEQ(A a, B? b, C c) WITHIN 6 us",
]
ABSENT = [
    "PATTERN SEQ(A a, NOT B b) WITHIN 5 us",
    "PATTERN SEQ(NOT B b, A a) WITHIN 5 us",
    "PATTERN SEQ(A a, NOT B b, C c) WHERE b.x = a.x WITHIN 7 us",
    "PATTERN SEQ(A a, C c, NOT B b) WHERE b.k = a.k WITHIN 6 us",
    "PATTERN OR(SEQ(A a, NOT B b), C c) WITHIN 4 us",
    "PATTERN SEQ(NOT C c, A a, NOT B b) PARTITION BY k WITHIN 5 us",
    "PATTERN SEQ(A a, NOT B b, C c) WHERE b.x = NULL WITHIN 5 us",
]
SELECTED = [
    "PATTERN SEQ(A a, B+ b, C c) SEMANTICS next WITHIN 8 us",
    "PATTERN SEQ(A a, B b) SEMANTICS contiguous WITHIN 6 us",
    "PATTERN SEQ(A a, B+ b) SEMANTICS partition-contiguous PARTITION BY k WITHIN 6 us",
    "PATTERN SEQ(A a, B b) SEMANTICS next WHERE b.x > a.x WITHIN 6 us",
]
REPORTED = [
    f"PATTERN {pattern} OUTPUT {output} WITHIN 6 us"
    for pattern in ("SEQ(A a, B+ b)", "SEQ(A a, B b, NOT C c)")
    for output in ("first per start", "last per start", "first per end", "last per end", "longest")
]
SKIPPING = [
    f"PATTERN {pattern} AFTER MATCH SKIP {skip} WITHIN 6 us{key}"
    for pattern, key in (("SEQ(A a, B+ b)", ""), ("SEQ(A a, B b, NOT C c)", " PARTITION BY k"), ("SEQ(B+ b, C c)", ""))
    for skip in ("PAST LAST", "TO NEXT", "TO FIRST b", "TO LAST b")
]
SKIPPING_PER_END = [
    f"PATTERN {pattern} AFTER MATCH SKIP {skip} OUTPUT {output} per end WITHIN 6 us{key}"
    for pattern, key in (("SEQ(A a, B+ b, C c)", ""), ("SEQ(A a, B{1,2} b, NOT C c)", " PARTITION BY k"))
    for skip in ("PAST LAST", "TO NEXT", "TO FIRST b", "TO LAST b", "TO FIRST a")
    for output in ("first", "last")
]
SKIPPING_PER_START = [
    "PATTERN B{2,} b SEMANTICS contiguous AFTER MATCH SKIP PAST LAST OUTPUT longest WITHIN 6 us",
    "PATTERN SEQ(A a, B+ b) AFTER MATCH SKIP TO LAST b OUTPUT last WITHIN 6 us PARTITION BY k",
]
GROUPS = [
    "PATTERN SEQ(OR(A a, B b)+, C c) SEMANTICS next WITHIN 6 us",
    "PATTERN SEQ(OR(A a, B b)+, C c) SEMANTICS next AFTER MATCH SKIP PAST LAST WITHIN 6 us",
    "PATTERN SEQ(A a, OR(B b, C c)){1,2} SEMANTICS partition-contiguous AFTER MATCH SKIP TO LAST a WITHIN 6 us "
    "PARTITION BY k",
    "PATTERN SEQ(SEQ(A+ a)+, B b) WHERE a.x <= b.x SEMANTICS next AFTER MATCH SKIP TO NEXT OUTPUT longest WITHIN 6 us",
]
TIMED = [
    "PATTERN SEQ(A a, B b) WITHIN 6 us WITH TIMEOUTS",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.x <> c.x PARTITION BY k WITHIN 9 us WITH TIMEOUTS",
    "PATTERN SEQ(A a, B+ b, C c) WITHIN 7 us WITH TIMEOUTS",
    "PATTERN SEQ(A a, NOT C n, B b, A c) WHERE n.x = a.x WITHIN 8 us WITH TIMEOUTS",
    "PATTERN SEQ(NOT C n, A a, B b, NOT A m) WITHIN 6 us WITH TIMEOUTS",
    "PATTERN SEQ(A a, B? b, OR(C c, SEQ(A d, NOT B n, A e)), B f) WITHIN 8 us WITH TIMEOUTS",
]
UNWINDOWED = [
    "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < INTERVAL 5 us",
    "PATTERN SEQ(A a, B b, C c) WHERE b.ts - a.ts <= INTERVAL 3 us AND c.ts - b.ts < INTERVAL 4 us PARTITION BY k",
    "PATTERN OR(A a, SEQ(B b, C c)) WHERE c.ts - b.ts < INTERVAL 3 us",
]
ACEL = [
    "(A ; B) WITHIN 6 us",
    "(A : B) WITHIN 6 us",
    "AGG y[s <- sum(B.x)](A ; B+) FILTER y[s > 1] WITHIN 6 us",
    "(A ; NEXT(B)) WITHIN 6 us",
    "PROJECT[C](A ; B+ ; C) WITHIN 7 us",
    "(A OR B) AS x FILTER x[x > 0]",
]
TOTALS = "COUNT(*) AS n, SUM(b.x) AS s, MAX(b.x) AS m"
COUNTED = [
    f"PATTERN SEQ(A a, B+ b) WITHIN 5 us RETURN {TOTALS} EVERY 4 us",
    f"PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 6 us RETURN a.k, {TOTALS} GROUP BY a.k EVERY 3 us",
    f"PATTERN SEQ(A a, B+ b) WITHIN 5 us SEMANTICS next RETURN a.x, {TOTALS} GROUP BY a.x EVERY 1 us HAVING n > 1",
    f"PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 7 us SEMANTICS partition-contiguous RETURN {TOTALS} EVERY 20 us",
    f"PATTERN B{{2,}} b WHERE b[i].x >= b[i-1].x WITHIN 6 us RETURN {TOTALS} EVERY 5 us",
]
COUNTED_FORMULAS = [
    "(A AS p ; B AS q) WITHIN 5 us RETURN COUNT(*) AS n EVERY 4 us",
    "(A ; B+ AS y) WITHIN 6 us RETURN COUNT(*) AS n, SUM(y.x) AS s EVERY 3 us",
    "((A OR B)+ AS y) PARTITION BY k WITHIN 4 us RETURN COUNT(*) AS n EVERY 5 us",
    "PROJECT[C](A ; B ; C) WITHIN 6 us RETURN COUNT(*) AS n EVERY 4 us",
]
FOUND = [
    f"PATTERN SEQ(A a, B b) WHERE a.x <= b.x WITHIN 5 us RETURN b.x, {TOTALS} GROUP BY b.x EVERY 4 us",
    "PATTERN SEQ(A a, NOT C c, B b) WITHIN 5 us OUTPUT count EVERY 3 us",
    "PATTERN SEQ(A a, OR(B b, C b)) PARTITION BY k WITHIN 5 us RETURN COUNT(*) AS n, FIRST(b.x) AS f, LAST(a.x) AS l "
    "EVERY 4 us",
    f"PATTERN SEQ(A a, B b, NOT C c) PARTITION BY k WITHIN 5 us RETURN {TOTALS} EVERY 7 us",
    f"PATTERN SEQ(NOT C c, A a, B b) WITHIN 5 us RETURN {TOTALS} EVERY 2 us",
    f"PATTERN AND(A a, B b) WITHIN 4 us OUTPUT longest RETURN {TOTALS} EVERY 3 us",
    f"PATTERN SEQ(A a, B+ b) WITHIN 5 us AFTER MATCH SKIP PAST LAST EVENT RETURN {TOTALS} EVERY 4 us",
    f"PATTERN SEQ(A a, B b) WITHIN 6 us AFTER MATCH SKIP TO NEXT EVENT OUTPUT first RETURN {TOTALS} EVERY 4 us",
    *(
        f"PATTERN {pattern} WITHIN 5 us {policy} RETURN {TOTALS} EVERY {every} us"
        for pattern, policy, every in [
            ("SEQ(A a, B b)", "OUTPUT last PER END", 3),
            ("SEQ(A a, B b, NOT C c)", "OUTPUT first PER END", 4),
            ("SEQ(A a, B+ b)", "AFTER MATCH SKIP TO NEXT EVENT OUTPUT last PER END", 2),
            ("SEQ(A a, B b, NOT C c)", "AFTER MATCH SKIP PAST LAST EVENT OUTPUT first PER END", 7),
        ]
    ),
]
WINDOWS = [*COUNTED, *FOUND]
EVERYTHING = [*ANY, *ABSENT, *SELECTED, *REPORTED, *SKIPPING, *SKIPPING_PER_END, *SKIPPING_PER_START, *GROUPS, *TIMED]
