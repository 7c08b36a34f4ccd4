"""How fast the Studio answers on a large installation."""
