"""What the embedded database and the supervisor need from the operating system: accounts, private files, children."""
