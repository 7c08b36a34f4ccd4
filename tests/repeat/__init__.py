"""Run the tests many times under load, and write a report: `make repeat`."""
