"""What people and programs do to instances from outside: start, send, pause, restart, delete, answer."""
