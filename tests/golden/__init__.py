"""Golden histories: what sample workflows recorded once, kept as files and replayed by every later version.

A replay must make the same calls and come to the same end, with nothing new to run or to record: otherwise an instance
that was under way while the engine was replaced would not go on as it began. `python -m tests.golden` makes them anew;
do that for a new story or a sample workflow that was changed on purpose, never to make a replay pass.
"""
