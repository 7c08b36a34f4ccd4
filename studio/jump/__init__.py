"""Go anywhere by a few letters: pages, workflows, instances by their ID, saved views and searches."""
