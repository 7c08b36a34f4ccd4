"""The drawing of a handler: from its source to a flow, a layout and an SVG. Nothing here needs Django or a database."""
