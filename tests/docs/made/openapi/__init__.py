"""The document of the HTTP API, studio/api/openapi.json: what ninja knows of the operations, made complete.

The examples are real: tests/studio/api/test_answers.py asks every operation and compares; `python -m tests.studio.api`
writes them again.
"""
