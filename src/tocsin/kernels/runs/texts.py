"""The parts of the generated search that are the same for every automaton.

text         what it does
----         ------------
HELPERS      join two histories; leave out what no live run can reach
WAYS         the matches that end at an event, one after the other, where each is one way through the arena
WORDS        the same where several ways may bind the same events: all of those are followed together
GRAPH        the same as one graph: the part of the arena that they are ways through, and how many they are

The arena holds the histories of all runs in one graph, shared by starts; matches are its ways. A node is a number:

column      of a kept step             of a LEAF             of a UNION
------      --------------             ---------             ----------
a_step      its number                 LEAF                  UNION
a_event     the event it read          the event it began    one side
a_before    the history before it      -1                    the other side, with the later start
a_latest    the latest event that a run below began with

Runs that began at different events go on as one when they are in one state with equal registers, so that an event
costs as much as there are such pairs, and not as many times as there are starts in the window. A history whose latest
start has left the window is passed over in one step, and the larger side of a union is looked at first. Ways are as
many as runs, and each is followed in time proportional to its length (003 §7 calls that output-linear delay). Where
several ways may bind the same events, those that agree are followed together from the last step on, so that each comes
once, however many ways lead to it. A union one side of which has left the window costs a step more, once per event that
it is looked at from.
"""

from __future__ import annotations

LEAF, UNION = -1, -2
AT = ("group", "place", "first", "live", "nodes", "cur", "stack", "end", "pooled", "stamp")
ARENA = ("a_step", "a_event", "a_before", "a_latest", "a_new", "a_mark")
INPUTS = ("times", "words", "group_from", "group_to", "own_low", "own_high")
POOL = ("pool", "pool_key", "stack_from", "labels")  # what WORDS works with beside
WORK = ("h_stamp", "h_slot", "s_stamp", "s_slot", "stack_node", "stack_depth", "path", "counts", "g_list")
MATCHES = ("out_start", "out_end", "out_to", "out_step", "out_event")
GRAPHS = (*MATCHES, "out_before", "out_number", "out_root", "out_count")
LIVE = ("live_state", "live_node")

HELPERS = f"""\
@compiled
def joined(a_step, a_event, a_before, a_latest, nodes, one, other, first):
    if a_latest[one] < a_latest[other]:
        one, other = other, one
    if one == other or a_latest[other] < first:
        return one, nodes
    a_step[nodes] = {UNION}
    a_event[nodes] = other
    a_before[nodes] = one
    a_latest[nodes] = a_latest[one]
    return nodes, nodes + 1


@compiled
def compacted(a_step, a_event, a_before, a_latest, a_new, a_mark, live_node, cur, live, nodes, first):
    for node in range(nodes):
        a_new[node] = -1
    for k in range(live):
        a_new[live_node[cur, k]] = 0
    for node in range(nodes - 1, -1, -1):
        if a_new[node] == 0 and a_step[node] != {LEAF}:
            a_new[a_before[node]] = 0
            if a_step[node] == {UNION} and a_latest[a_event[node]] >= first:
                a_new[a_event[node]] = 0
    kept = 0
    for node in range(nodes):
        if a_new[node] < 0:
            continue
        step = a_step[node]
        if step == {UNION} and a_latest[a_event[node]] < first:
            a_new[node] = a_new[a_before[node]]
            continue
        a_step[kept] = step
        a_latest[kept] = a_latest[node]
        a_event[kept] = a_new[a_event[node]] if step == {UNION} else a_event[node]
        a_before[kept] = -1 if step == {LEAF} else a_new[a_before[node]]
        a_mark[kept] = -1
        a_new[node] = kept
        kept += 1
    for k in range(live):
        live_node[cur, k] = a_new[live_node[cur, k]]
    return kept


"""

# Count and write the match of a start, whose steps stand in `path`.
_MATCH = """\
        counts[start] += 1
        if counts[start] > most:
            status = TOO_MANY
            break
        for step in range(depth):
            kept = path[depth - 1 - step]
            out_step[n_steps + step] = a_step[kept]
            out_event[n_steps + step] = a_event[kept]
        n_steps += depth
        out_start[n_out] = start
        out_end[n_out] = end
        n_out += 1
        out_to[n_out] = n_steps
"""

WAYS = f"""\
while stack > 0:
    stack -= 1
    node = stack_node[stack]
    depth = stack_depth[stack]
    if a_latest[node] < first:
        continue
    step = a_step[node]
    if step == {UNION}:
        if stack + 2 > len(stack_node):
            stack += 1
            status = DEEP
            break
        stack_node[stack] = a_event[node]
        stack_depth[stack] = depth
        stack_node[stack + 1] = a_before[node]
        stack_depth[stack + 1] = depth
        stack += 2
        continue
    if step == {LEAF}:
        if n_out == len(out_start) or n_steps + depth > len(out_step):
            stack += 1
            status = FULL
            break
        if depth == 0:
            continue
        start = a_event[node]
{_MATCH}        continue
    if depth == len(path):
        stack += 1
        status = DEEP
        break
    path[depth] = node
    stack_node[stack] = a_before[node]
    stack_depth[stack] = depth + 1
    stack += 1
"""

WORDS = f"""\
while stack > 0:
    top = stack - 1
    depth = stack_depth[top]
    if depth >= len(path):
        status = DEEP
        break
    if depth > 0:
        path[depth - 1] = stack_node[top]
    stamp += 1
    k = stack_from[top]
    while k < pooled:
        node = pool[k]
        if a_mark[node] == stamp or a_latest[node] < first:
            pooled -= 1
            pool[k] = pool[pooled]
        elif a_step[node] != {UNION}:
            a_mark[node] = stamp
            k += 1
        elif pooled == len(pool):
            break
        else:
            a_mark[node] = stamp
            pool[k] = a_event[node]
            pool[pooled] = a_before[node]
            pooled += 1
    low = stack_from[top]
    if k < pooled or stack + pooled - low > len(stack_node):
        status = DEEP
        break
    leaves = 0
    for k in range(low, pooled):
        node = pool[k]
        if a_step[node] == {LEAF}:
            leaves += 1
            pool_key[k] = {1 << 62} + int(a_event[node])
        else:
            pool_key[k] = int(a_event[node]) * len(labels) + labels[a_step[node]]
    if n_out + leaves > len(out_start) or n_steps + leaves * depth > len(out_step):
        status = FULL
        break
    if pooled - low > 1:
        order = np.argsort(pool_key[low:pooled])
        pool_key[low:pooled] = pool_key[low:pooled][order]
        pool[low:pooled] = pool[low:pooled][order]
    stack = top
    for k in range(pooled - leaves, pooled):
        start = a_event[pool[k]]
        if depth == 0 or (k > low and pool_key[k] == pool_key[k - 1]):
            continue
{_MATCH}    if status >= 0:
        break
    pooled -= leaves
    for k in range(low, pooled):
        node = pool[k]
        if k == low or pool_key[k] != pool_key[k - 1]:
            stack_from[stack] = k
            stack_node[stack] = node
            stack_depth[stack] = depth + 1
            stack += 1
        pool[k] = a_before[node]
"""

GRAPH = f"""\
if stack > 0:
    root = stack_node[0]
    found = 0
    while stack > 0:
        stack -= 1
        node = stack_node[stack]
        while a_mark[node] != end:
            a_mark[node] = end
            g_list[found] = node
            found += 1
            if a_step[node] == {UNION} and a_latest[a_event[node]] >= first:
                stack_node[stack] = a_event[node]
                stack += 1
            if a_step[node] != {LEAF}:
                node = a_before[node]
    if n_out == len(out_root) or n_steps + found > len(out_step):
        for k in range(found):
            a_mark[g_list[k]] = -1
        stack_node[0] = root
        stack = 1
        status = FULL
        break
    g_list[:found] = np.sort(g_list[:found])
    least = end
    base = n_steps
    for k in range(found):
        node = g_list[k]
        step = a_step[node]
        if step == {UNION} and a_latest[a_event[node]] < first:
            a_new[node] = a_new[a_before[node]]
            continue
        out_step[n_steps] = step
        out_event[n_steps] = a_event[node]
        out_before[n_steps] = -1
        if step == {LEAF}:
            out_number[n_steps] = 1
            if a_event[node] < least:
                least = a_event[node]
        else:
            one = a_new[a_before[node]]
            out_before[n_steps] = one
            out_number[n_steps] = out_number[base + one]
            if step == {UNION}:
                other = a_new[a_event[node]]
                out_event[n_steps] = other
                number = out_number[base + one] + out_number[base + other]
                if out_number[base + one] < 0 or out_number[base + other] < 0 or number >= {1 << 62}:
                    number = -1
                out_number[n_steps] = number
        a_new[node] = n_steps - base
        n_steps += 1
    out_root[n_out] = a_new[root]
    out_count[n_out] = out_number[base + a_new[root]]
    out_start[n_out] = least
    out_end[n_out] = end
    n_out += 1
    out_to[n_out] = n_steps
"""
