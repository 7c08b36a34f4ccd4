"""Groups of failures that are alike: the list of them, and the page of one error."""
