"""The parts of the generated search that are the same for every automaton.

text         what it does
----         ------------
HELPERS      join two histories; leave out what no live run can reach
WAYS         the matches that end at an event, one after the other
GRAPH        the same as one graph: the part of the arena that they are ways through, and how many they are
"""

from __future__ import annotations

from tocsin.kernels.runs.arena import LEAF, UNION

# Why a call returns: all is done; the outputs are full; and too small are the stack, the arena, the lists of runs.
DONE, FULL, DEEP, GROW, WIDE, TOO_MANY = range(6)
AT = ("group", "place", "first", "live", "nodes", "cur", "stack", "end")
ARENA = ("a_step", "a_event", "a_before", "a_latest", "a_new", "a_mark")
INPUTS = ("times", "words", "group_from", "group_to", "own_low", "own_high")
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
            status = {DEEP}
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
            status = {FULL}
            break
        start = a_event[node]
        counts[start] += 1
        if counts[start] > most:
            status = {TOO_MANY}
            break
        for k in range(depth):
            kept = path[depth - 1 - k]
            out_step[n_steps + k] = a_step[kept]
            out_event[n_steps + k] = a_event[kept]
        n_steps += depth
        out_start[n_out] = start
        out_end[n_out] = end
        n_out += 1
        out_to[n_out] = n_steps
        continue
    if depth == len(path):
        stack += 1
        status = {DEEP}
        break
    path[depth] = node
    stack_node[stack] = a_before[node]
    stack_depth[stack] = depth + 1
    stack += 1
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
        status = {FULL}
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
