"""Workers and cycles that a test moves by hand.

All tests that rig a worker use one set of parts, those of `engine.testing`: its standing clock, its slices without a
timer, its `BareWorker`, which is a shift's claimer and host of cycles. Only what has to be decided differs:

* `engine.testing.workflow_test` does what is due by itself, on virtual time. `tests.stories` runs stories with it.
* `worker.HandShift` stops before and after each statement until the test lets it go on, on a loop and a clock of the
  test's. The model tests drive several of them side by side against one database.
* `host.HandHost` takes the place of worker and database for one cycle: the test answers flushes and ends bodies itself.
  `tests.golden.replay` replays recorded histories with it.

Everything else runs in a real shift (`tests.shifts`) or in real processes (`tests.process`).
"""
