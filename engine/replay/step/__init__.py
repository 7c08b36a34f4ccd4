"""`step`, through which a handler does everything durable: check a call and hand it to the cycle."""
