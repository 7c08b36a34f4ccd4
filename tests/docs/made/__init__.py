"""What the guide shows of the code's own tables: `python -m tests.docs.made` writes it again.

A module for each page or table. A test compares the pages with them.
"""
