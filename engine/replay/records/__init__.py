"""What is recorded of an instance, as its cycle reads it and wants it written."""
