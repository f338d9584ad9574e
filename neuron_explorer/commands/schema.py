"""`schema`: what the columns mean."""

from __future__ import annotations

from neuron_explorer.commands.choices import Format
from neuron_explorer.reports import console
from neuron_explorer.reports.schema_report import schema_json, schema_markdown, schema_text


def show_schema(table: str | None, form: Format) -> None:
    """Print the event table and the views, or one of them."""
    match form:
        case Format.JSON:
            console.write_data(schema_json(table))
        case Format.MD:
            console.write_data(schema_markdown(table))
        case Format.TEXT:
            console.write(schema_text(table, console.stdout_page()))
