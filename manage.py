#!/usr/bin/env python3
"""Run one of Django's management commands; `manage.py studio` starts everything."""

from studio.__main__ import main

if __name__ == "__main__":
    main()
