"""Run the tests many times beside a load, and write a report: `make repeat`."""
