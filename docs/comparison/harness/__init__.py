"""Measures lkr beside other retrieval systems, with the same model, collections and machine."""
