"""Charts of what happened over time: throughput, latency, step durations and retries, of all workflows or of one."""
