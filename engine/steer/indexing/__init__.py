"""Keep the index of the search paths: add the declared ones, fill it for earlier instances, remove what is undeclared.

Triggers on the instances (`engine/migrations/search/values.sql`) write the values of what starts and ends from then on.
"""
