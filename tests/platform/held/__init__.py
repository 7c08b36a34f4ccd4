"""An app that holds a delivery at a point of the web process, so that a test can kill it there.

A delivery whose id begins with `held-before-commit` or `held-before-answer` is held once. It says so with a file.
"""
