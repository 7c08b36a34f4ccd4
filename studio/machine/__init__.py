"""What the embedded database and the supervisor need of the machine: an account, private files, mortal children."""
