from holdfast.cli.config import CONFIG_COMMANDS
from tests.cli.conftest import Run, load


def test_every_command_about_settings_is_listed_and_loads(run: Run):
    shown = run("config", "--help").out
    for name, (_, summary) in CONFIG_COMMANDS.items():
        assert summary in shown
        assert load(f"config {name}").name == name
