"""Counting under `any` with a window that slides over the events: one more at its end, one less at its beginning.

code        theory
----        ------
entry       P[p, q]: what is added up over the words that lead from the waiting p to the waiting q, or to a complete
            match, inside the window
ahead       P ← P · M: an instant more at the end
behind      P ← M⁻¹ · P: an instant less at the beginning; or P ← M · P, one more, where there is no window

The matrix M of an instant is I + Σ X · N over the letters: N says which waitings the letter moves to which, and X is
the sum of (1, weights) over the events of the instant that are this letter. A count with totals is a number of a
commutative ring, (c, t) with t · t' = 0, so that M can be undone, as long as no two waitings lead to each other: rows
are subtracted, the last waiting first, and a waiting that loops is divided by 1 + X. So an event costs some additions,
whatever lies in the window; the products of long numbers that `exact` needs at its cuts are not there.

What the functions here are given: `n` with all sums (see `loose`), first a spare one, then the entries, then the
results by label; a table of steps (see `steps`); and the weights of events for every total, `weight_digits` digits
each. They are for events that come with others of their instant, or with several letters; `sliding_code` writes out
what single events do.
"""

from __future__ import annotations

from typing import Any

from tocsin.kernels.trends.loose import (
    HEAD,
    LIMIT,
    MASK,
    MOST_TIMES,
    SINGLE,
    add_product,
    add_weight,
    clear,
    divide,
    settle,
)

ADD, ADD_ONE, MULTIPLY, DIVIDE = 0, 1, 2, 3
RESULT = -1

Array = Any


def step(  # noqa: PLR0915 - a call for each step would cost more than the step
    table: Array,
    begin: int,
    last: int,
    result: int,
    n: Array,
    room: int,
    letters: Array,
    weights: Array,
    weighed: Array,
    weight_digits: int,
    factors: Array,
) -> bool:
    """The steps of a table for the events from `begin` to `last` − 1; False: there is no room for a number."""
    size = 1 + len(weighed)
    stride = HEAD + size * room
    bits = letters[begin]
    for event in range(begin + 1, last):
        bits |= letters[event]
    for row in range(len(table)):
        letter, what, sign = table[row, 0], table[row, 1], table[row, 4]
        if (bits >> letter) & 1 == 0:
            continue
        to = (result if table[row, 2] == RESULT else table[row, 2]) * stride
        of = table[row, 3] * stride
        many = 1
        if last - begin > 1:
            many = 0
            for event in range(begin, last):
                many += (letters[event] >> letter) & 1
        # The weights of these events, added up, as one small number for each total; or else one by one.
        is_heavy, heaviest = False, 0
        for number in range(1, size):
            factor = 0
            if (weighed[number - 1] >> letter) & 1:
                for event in range(begin, last):
                    if (letters[event] >> letter) & 1:
                        place = ((number - 1) * len(letters) + event) * weight_digits
                        factor += weights[place]
                        for digit in range(1, weight_digits):
                            is_heavy = is_heavy or weights[place + digit] != 0
            factors[number] = sign * factor
            heaviest = max(heaviest, factor)
        if is_heavy or heaviest > MOST_TIMES:
            if not heavy_step(
                what, letter, sign, many, begin, last, to, of, n, room, letters, weights, weighed, weight_digits
            ):
                return False
            continue
        if what == ADD:
            if many + heaviest > 2 and n[of] > SINGLE and not settle(n, of, size, room):
                return False
            if n[to] + (many + heaviest) * n[of] > LIMIT:
                if not settle(n, of, size, room) or not settle(n, to, size, room):
                    return False
            n[to] += (many + heaviest) * n[of]
            digits = n[of + 1]
            n[to + 1] = max(n[to + 1], digits)
            times = sign * many
            for number in range(size):
                factor = factors[number]
                into, source, count = to + HEAD + number * room, of + HEAD + number * room, of + HEAD
                if digits == 1:
                    n[into] += times * n[source] + factor * n[count]
                elif times == 1 and factor == 0:
                    for place in range(digits):
                        n[into + place] += n[source + place]
                elif times == -1 and factor == 0:
                    for place in range(digits):
                        n[into + place] -= n[source + place]
                elif times == 1 and factor == 1:
                    for place in range(digits):
                        n[into + place] += n[source + place] + n[count + place]
                elif times == -1 and factor == -1:
                    for place in range(digits):
                        n[into + place] -= n[source + place] + n[count + place]
                else:
                    for place in range(digits):
                        n[into + place] += times * n[source + place] + factor * n[count + place]
        elif what == ADD_ONE:
            if n[to] > LIMIT and not settle(n, to, size, room):
                return False
            n[to] += many + heaviest
            n[to + HEAD] += sign * many
            for number in range(1, size):
                n[to + HEAD + number * room] += factors[number]
        elif what == MULTIPLY:
            if n[to] > LIMIT // (1 + many + heaviest) and not settle(n, to, size, room):
                return False
            n[to] *= 1 + many + heaviest
            digits, count, times = n[to + 1], to + HEAD, 1 + many
            for number in range(size - 1, -1, -1):
                factor, into = factors[number], to + HEAD + number * room
                if times == 2 and factor == 0:
                    for place in range(digits):
                        n[into + place] += n[into + place]
                elif times == 2 and factor == 1:
                    for place in range(digits):
                        n[into + place] += n[into + place] + n[count + place]
                else:
                    for place in range(digits):
                        n[into + place] = times * n[into + place] + factor * n[count + place]
        else:
            if (many > 1 or heaviest > 1 or n[to] > SINGLE * MOST_TIMES) and not settle(n, to, size, room):
                return False
            divide(n, to, 0, 1, 1 + many, room)
            digits, count = n[to + 1], to + HEAD
            for number in range(1, size):
                factor, into = factors[number], to + HEAD + number * room
                if factor == -1:
                    for place in range(digits):
                        n[into + place] -= n[count + place]
                elif factor != 0:
                    for place in range(digits):
                        n[into + place] += factor * n[count + place]
            n[to] += heaviest * n[to]
            if many > 1 and not settle(n, to, size, room):
                return False
            divide(n, to, 1, size, 1 + many, room)
            is_zero = digits > 1
            for number in range(size):
                is_zero = is_zero and n[to + HEAD + number * room + digits - 1] == 0
            if is_zero:
                n[to + 1] = digits - 1
            n[to] += MASK
    return True


def heavy_step(
    what: int,
    letter: int,
    sign: int,
    many: int,
    begin: int,
    last: int,
    to: int,
    of: int,
    n: Array,
    room: int,
    letters: Array,
    weights: Array,
    weighed: Array,
    weight_digits: int,
) -> bool:
    """One step where weights are long numbers."""
    size = 1 + len(weighed)
    into = to
    if what == MULTIPLY:  # X · P goes to the spare sum first
        into = 0
        clear(n, into, size, room)
    if what == DIVIDE:
        if not settle(n, to, size, room):
            return False
        divide(n, to, 0, 1, 1 + many, room)
    elif what == ADD_ONE:
        n[to + HEAD] += sign * many
        n[to] += many
    else:
        if not settle(n, of, size, room) or not settle(n, into, size, room):
            return False
        n[into] += many * n[of]
        n[into + 1] = max(n[into + 1], n[of + 1])
        for number in range(size):
            for place in range(HEAD + number * room, HEAD + number * room + n[of + 1]):
                n[into + place] += sign * many * n[of + place]
    for number in range(1, size):
        if (weighed[number - 1] >> letter) & 1 == 0:
            continue
        for event in range(begin, last):
            if (letters[event] >> letter) & 1 == 0:
                continue
            for digit in range(weight_digits):
                weight = weights[((number - 1) * len(letters) + event) * weight_digits + digit]
                if weight == 0:
                    continue
                if what == ADD_ONE:
                    is_fine = add_weight(n, to, number, sign * weight, digit, size, room)
                else:
                    is_fine = add_product(n, into, number, of, sign * weight, digit, size, room)
                if not is_fine:
                    return False
    if what == DIVIDE:
        if not settle(n, to, size, room):
            return False
        divide(n, to, 1, size, 1 + many, room)
    elif what == MULTIPLY:
        if not settle(n, into, size, room) or not settle(n, to, size, room):
            return False
        n[to] += n[into]
        n[to + 1] = max(n[to + 1], n[into + 1])
        for number in range(size):
            for place in range(HEAD + number * room, HEAD + number * room + n[into + 1]):
                n[to + place] += n[into + place]
    return True


def reset(n: Array, size: int, room: int, entries: int, ones: Array) -> None:
    """Nothing lies in the window: the empty word leads from every waiting to itself."""
    stride = HEAD + size * room
    for entry in range(1, entries):
        clear(n, entry * stride, size, room)
    for number in range(len(ones)):
        n[ones[number] * stride + HEAD] = 1
        n[ones[number] * stride] = 1


FUNCTIONS = (heavy_step, step, reset)
