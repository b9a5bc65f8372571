"""``rmqctl completion SHELL``: the scripts that lie in ``completions/``."""

from typing import Annotated, Final

import typer

from rmqctl.context import context_of
from rmqctl.errors import UsageProblem

_BASH: Final = r"""# bash completion for rmqctl; made by `rmqctl completion bash`.
# Load it once with:  source <(rmqctl completion bash)
_rmqctl() {
    local IFS=$'\n' line word last=-1 current=${COMP_WORDS[COMP_CWORD]}
    local -a words=()
    # bash takes --name=value for three words.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if (( last >= 0 )) && [[ ${words[last]} == --* && ( $word == = || ${words[last]} == *= ) ]]
        then
            words[last]+=$word
        else
            words[++last]=$word
        fi
    done
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        # It shows only what comes after the =.
        [[ $line == --*=* && $current != --* ]] && line=${line#*=}
        printf -v line '%q' "$line"
        COMPREPLY+=("${line//\\,/,}")
    done < <(_RMQCTL_COMPLETE=1 "${COMP_WORDS[0]}" "${words[@]}" 2>/dev/null)
}
complete -o default -F _rmqctl rmqctl
"""

_ZSH: Final = r"""#compdef rmqctl
# zsh completion for rmqctl; made by `rmqctl completion zsh`.
# Put it as _rmqctl into a folder of $fpath, or load it with:  source <(rmqctl completion zsh)
_rmqctl() {
    local -a lines items
    local line value
    lines=("${(@f)$(_RMQCTL_COMPLETE=1 ${words[1]} "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in $lines; do
        [[ -z $line ]] && continue
        value=${line%%$'\t'*}
        items+=("${value//:/\\:}:${line#*$'\t'}")
    done
    if (( $#items )); then
        _describe -V rmqctl items
    else
        _files
    fi
}
if [[ $funcstack[1] == _rmqctl ]]; then
    _rmqctl "$@"
else
    compdef _rmqctl rmqctl
fi
"""

_FISH: Final = r"""# fish completion for rmqctl; made by `rmqctl completion fish`.
# Put it into ~/.config/fish/completions/rmqctl.fish
function __rmqctl_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (_RMQCTL_COMPLETE=1 $words[1] $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c rmqctl -f -a '(__rmqctl_complete)'
"""

_POWERSHELL: Final = r"""# PowerShell completion for rmqctl; made by `rmqctl completion powershell`.
# Add to $PROFILE:  rmqctl completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName rmqctl -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
    $arguments = @($words | Select-Object -Skip 1)
    if ($wordToComplete -eq '') { $arguments += '' }
    $env:_RMQCTL_COMPLETE = '1'
    try {
        & $words[0] @arguments 2>$null | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            $kind = 'ParameterValue'
            [System.Management.Automation.CompletionResult]::new($value, $value, $kind, $help)
        }
    } finally {
        Remove-Item Env:_RMQCTL_COMPLETE
    }
}
"""

SCRIPTS: Final = {
    "bash": ("rmqctl.bash", _BASH),
    "zsh": ("_rmqctl", _ZSH),
    "fish": ("rmqctl.fish", _FISH),
    "powershell": ("rmqctl.ps1", _POWERSHELL),
}
"""File name in ``completions/`` and text of each shell's script."""


def completion(
    ctx: typer.Context,
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh, fish or powershell")],
) -> None:
    """Print the completion script of a shell.

    Try it (bash, zsh):  source <(rmqctl completion bash)
    Keep it in bash:     write it to ~/.local/share/bash-completion/completions/rmqctl
    Keep it in zsh:      rmqctl completion zsh > "${fpath[1]}/_rmqctl"
    Keep it in fish:     rmqctl completion fish > ~/.config/fish/completions/rmqctl.fish
    Keep it in Windows:  rmqctl completion powershell >> $PROFILE
    """
    if shell not in SCRIPTS:
        raise UsageProblem(f"no completion for shell {shell!r} (one of {', '.join(SCRIPTS)})")
    context_of(ctx).out.write(SCRIPTS[shell][1])
