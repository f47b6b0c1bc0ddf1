"""Every error and warning a user can meet: a stable condition, one sentence, the place, advice.

An error reads in Spark's order::

    [UNKNOWN_ATTRIBUTE] Event type `Transfer` has no attribute `acount`.
      at fraud.sase:2:10
    2 | WHERE  b.acount = a.account
                 ^^^^^^
    Hint: did you mean `account`? `Transfer` has: account, amount, at.

`families` has the root of all errors and its families, `kinds` one class for each condition, and `quoting` the words in
which messages mention values and names. Each condition has an entry in `docs/reference/errors.md`; `make check` fails
otherwise.
"""

from tocsin.errors.families import *
from tocsin.errors.kinds import *
from tocsin.errors.quoting import *
