"""`holdfast completion`: what completes commands, workflows and checkpoints in a shell."""

from __future__ import annotations

import sys

import click

from holdfast.cli.group import Call, StoreCommand

SHELLS = ("bash", "zsh", "fish")

#: Each asks `holdfast` itself, and takes the answers as they are: words that no shell reads anything into.
_SCRIPTS = {
    "bash": r"""_holdfast_completion() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :file) compopt -o default ;;
            ?*) COMPREPLY+=("$line") ;;
        esac
    done < <(COMP_TEXT="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \
        "$1" completion bash --answer 2>/dev/null)
}
complete -o nosort -F _holdfast_completion holdfast
""",
    "zsh": r"""#compdef holdfast

_holdfast_completion() {
    local line
    local -a found
    while IFS= read -r line; do
        case $line in
            :file) _files ;;
            ?*) found+=("$line") ;;
        esac
    done < <(COMP_TEXT="${(j: :)words[1,CURRENT]}" holdfast completion zsh --answer 2>/dev/null)
    (( $#found )) && compadd -V holdfast -- "${found[@]}"
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _holdfast_completion "$@"
else
    compdef _holdfast_completion holdfast
fi
""",
    "fish": r"""function __holdfast_completion
    set -l text (commandline -cp | string collect)
    for line in (env COMP_TEXT=$text holdfast completion fish --answer 2>/dev/null)
        if test "$line" = ":file"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete --no-files --command holdfast --arguments "(__holdfast_completion)"
""",
}
_HOW = {
    "bash": 'eval "$(holdfast completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(holdfast completion zsh)"   # in ~/.zshrc, after compinit',
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command("completion", cls=StoreCommand)
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--answer", is_flag=True, hidden=True, help="Answer what the script asks.")
def command(call: Call, shell: str, answer: bool) -> None:
    """Print what completes commands in your shell.

    Commands, options, workflows and checkpoints are completed; those of a store
    on this machine only, and nothing of it is told in the trail.

    \b
    Example:
      holdfast completion bash --quiet >> ~/.bashrc
    """
    if answer:
        from holdfast.cli.completion_answers import answers

        for line in answers(shell):
            click.echo(line)
        return
    if call.output.as_json:
        call.output.data({"shell": shell, "script": _SCRIPTS[shell], "use": _HOW[shell]})
        return
    click.echo(_SCRIPTS[shell], nl=False)
    if sys.stdout.isatty():
        call.output.note(f"Use it so: {_HOW[shell]}")
