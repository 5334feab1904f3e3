"""From whatever is left of a workflow to work that goes on."""
