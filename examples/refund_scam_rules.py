"""Rules that build on each other: suspicious transfers, and refunds that somebody then claims back.

Rule `Suspicious` marks transfers on routes that are not registered. Rule `RefundScam` finds money that comes in, goes
back, and is claimed to have been an error, unless there was another transfer that the refund can belong to.

It prints:

    RefundScam: incoming 1, refund 3, claim at 2026-03-03 09:00:00
    {'Scam': [{'ts': datetime.datetime(2026, 3, 3, 9, 0), 'incoming': 1, 'refund': 3}]}
    at most 4 838 741 events in memory
"""

from __future__ import annotations

import datetime as dt

import tocsin

PROGRAM = """
template Transfer   { id : TransferId, sender : AccountId, receiver : AccountId, amount : Amount }
template Suspicion  { id : TransferId, sender : AccountId, receiver : AccountId, amount : Amount }
template Claim      { id : TransferId }
template Scam       { incoming : TransferId, refund : TransferId }

rule Suspicious where
  t : Transfer { NOT registered(sender, receiver) }
then
  emit Suspicion at t.timestamp with { id = t.id, sender = t.sender, receiver = t.receiver, amount = t.amount }

rule RefundScam where
  incoming : Suspicion
  refund : Transfer {
    sender = incoming.receiver,
    receiver = incoming.sender,
    amount >= incoming.amount * 0.9,
    amount <= incoming.amount * 1.1
  }
  claim : Claim { id = incoming.id }
  no other : Transfer { sender = incoming.sender, receiver = incoming.receiver, id != incoming.id }
when
  refund in incoming [0 days, 14 days]
  claim in incoming [0 days, 14 days]
  no other in refund [-14 days, 0 days]
then
  emit Scam at claim.timestamp with { incoming = incoming.id, refund = refund.id }
"""

MARCH_1 = dt.datetime(2026, 3, 1, 9)


def transfer(day: int, id: int, sender: str, receiver: str, amount: float) -> dict[str, object]:
    """A transfer some days after the first of March."""
    at = MARCH_1 + dt.timedelta(days=day)
    return {"ts": at, "id": id, "sender": sender, "receiver": receiver, "amount": amount}


def main() -> None:
    """Compile, run on plain rows, and ask how much a live program would remember."""
    program = tocsin.rules(PROGRAM, tables={"registered": [("bela", "cora")]})
    rows = {
        "Transfer": [
            transfer(0, 1, "ada", "bela", 300.0),
            transfer(0, 2, "bela", "cora", 50.0),
            transfer(1, 3, "bela", "ada", 310.0),
        ],
        "Claim": [{"ts": MARCH_1 + dt.timedelta(days=2), "id": 1}],
    }
    for match in tocsin.reference.evaluate(program, rows)["RefundScam"]:
        incoming, refund, claim = match["incoming"]["id"], match["refund"]["id"], match["claim"]["ts"]
        print(f"RefundScam: incoming {incoming}, refund {refund}, claim at {claim}")
    emitted = tocsin.reference.events(program, rows)
    print({"Scam": emitted["Scam"]})
    report = program.check(rates={"Transfer": "1/s", "Claim": "1 per hour"})
    print(f"at most {report.events:,} events in memory".replace(",", " "))


if __name__ == "__main__":
    main()
