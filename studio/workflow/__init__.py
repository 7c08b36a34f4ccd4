"""The pages of one workflow: its tabs, and its code with the drawing."""
