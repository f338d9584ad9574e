"""`profile()` inside training loops that others wrote; each module needs its own framework."""
