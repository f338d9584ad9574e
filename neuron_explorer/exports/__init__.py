"""A trace in the formats of other tools: one format a file, written bit by bit."""
