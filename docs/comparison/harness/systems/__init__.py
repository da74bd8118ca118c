"""One module for each compared library. Each is imported in the environment of its own system alone."""
