"""The table of workflows, the page of one, and its start form."""
