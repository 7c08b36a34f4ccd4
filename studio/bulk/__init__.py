"""Bulk jobs: the list, the page of one, and the dialog that starts one."""
