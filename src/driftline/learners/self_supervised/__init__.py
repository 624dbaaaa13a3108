"""Methods that learn features without labels first."""
