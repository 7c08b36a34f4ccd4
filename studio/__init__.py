"""The web application: watch and steer the workflows that `engine` runs."""
