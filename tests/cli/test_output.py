from __future__ import annotations

from holdfast.cli.output import Output


def test_data_goes_to_standard_output_and_talk_to_standard_error(capsys):
    output = Output()
    output.line(output.paint("data", "good") + output.faint("!"))
    output.note("talk")
    assert capsys.readouterr() == ("data!\n", "talk\n")


def test_quiet_and_json_silence_the_talk(capsys):
    Output(quiet=True).note("talk")
    Output(as_json=True).note("talk")
    assert capsys.readouterr() == ("", "")


def test_colour_is_written_when_it_is_wanted(capsys):
    output = Output(color="always")
    output.line(output.paint("red", "bad"))
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m\n"
