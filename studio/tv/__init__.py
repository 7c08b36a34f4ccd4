"""The wall screen."""
