"""Every operation of the API, as a call. The clients have a method for each, with the same arguments."""
