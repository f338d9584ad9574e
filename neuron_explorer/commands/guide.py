"""`guide`: what a newcomer must know to ask a trace, worked queries and pitfalls."""

from __future__ import annotations

from neuron_explorer.commands.choices import Format
from neuron_explorer.reports import console
from neuron_explorer.reports.guide import guide_json, guide_markdown


def show_guide(form: Format) -> None:
    """Print the guide; as text it is the markdown that the package ships."""
    console.write_data(guide_json() if form is Format.JSON else guide_markdown())
