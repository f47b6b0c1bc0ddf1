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
ACEL = [
    "(A ; B) WITHIN 6 us",
    "(A : B) WITHIN 6 us",
    "AGG y[s <- sum(B.x)](A ; B+) FILTER y[s > 1] WITHIN 6 us",
    "(A ; NEXT(B)) WITHIN 6 us",
]
