"""Workers: each runs a shift, which claims instances and drives their cycles."""
