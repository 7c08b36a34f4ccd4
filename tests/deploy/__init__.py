"""The files of docs/deploy are used as they are shipped, with other paths and ports."""
