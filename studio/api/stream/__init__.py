"""Follow an instance over HTTP, as server-sent events.

`feed` reads what is new, once for all streams at the same place. `stream` is one reader; `flow` says whether its
connection takes more, `watch` whether it still may read.
"""
