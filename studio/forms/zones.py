"""Offsets from UTC that a form suggests; any other can be typed."""

_HOURS = (*range(-12, 0), *range(1, 15))
_OTHERS = ("-03:30", "+03:30", "+04:30", "+05:30", "+05:45", "+06:30", "+09:30", "+12:45")
ZONES = ("Z", *(f"{hours:+03d}:00" for hours in _HOURS), *_OTHERS)
