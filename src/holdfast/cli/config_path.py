"""`holdfast config path`: which files settings are read from."""

from __future__ import annotations

import os

import click

from holdfast.cli.group import Call, StoreCommand


@click.command("path", cls=StoreCommand)
@click.option("--user", is_flag=True, help="Print only the path of your own file.")
@click.option("--project", is_flag=True, help="Print only the path of the file of this folder.")
def command(call: Call, user: bool, project: bool) -> None:
    """Tell which files settings are read from.

    Those of the project win over your own. None of them need be there.

    \b
    Example:
      holdfast config path --user
    """
    if user and project:
        raise click.UsageError("give --user or --project")
    found = config_files()
    if call.output.as_json:
        told = [{"which": name, "path": path, "exists": os.path.isfile(path)} for name, path in found.items()]
        call.output.data({"files": told})
    elif user or project:
        call.output.line(config_file("user" if user else "project"))
    else:
        rows = [(name, path, "yes" if os.path.isfile(path) else "no") for name, path in found.items()]
        call.output.table(("WHICH", "PATH", "EXISTS"), rows)


def config_file(which: str) -> str:
    """Answer the path of one of the files: `user` or `project`."""
    found = config_files().get(which)
    if found is None:
        raise click.UsageError("nobody knows where your own folder is: set HOME or XDG_CONFIG_HOME")
    return found


def config_files() -> dict[str, str]:
    """Answer the paths of the files, the one that wins first."""
    from holdfast.config_sources import CONFIG_VARIABLE, FILE_NAME, user_file

    project = os.environ.get(CONFIG_VARIABLE) or FILE_NAME
    own = user_file(os.environ)
    return {"project": os.path.abspath(project), **({"user": str(own)} if own else {})}
