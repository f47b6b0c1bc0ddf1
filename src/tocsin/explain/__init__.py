"""Telling users what happens: how a query is understood, and how and why it runs the way it does."""
