"""Load and chaos: a whole Reprise under load while everything in it is killed, stopped, cut off and restarted.

`python -m tests.chaos --seed N --minutes 10` runs it and says PASS or FAIL. The ground truth is a ledger that bodies
and clients write and the engine never reads.
"""
