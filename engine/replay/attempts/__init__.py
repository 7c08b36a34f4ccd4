"""Functions that are called until they succeed: the bodies of steps and the items of maps."""
