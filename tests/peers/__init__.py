"""Figures that independent implementations gave on inputs that anyone can draw again."""
