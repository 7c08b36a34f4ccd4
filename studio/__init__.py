"""The web application: watch and control the workflows that `engine` runs."""
