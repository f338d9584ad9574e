"""`python -m neuron_explorer`."""

from __future__ import annotations

from neuron_explorer.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
