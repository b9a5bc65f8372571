"""``rmqctl completion SHELL``: the scripts in ``completions/``."""

from typing import Annotated, Final

import typer

from rmqctl.cli.context import context_of
from rmqctl.cli.marks import uses_no_store
from rmqctl.errors import UsageProblem

_BASH: Final = r"""# bash completion for rmqctl; made by `rmqctl completion bash`.
# Load it once with:  source <(rmqctl completion bash)

# The words of a line as a command gets them: quotes, backslashes and variables are resolved,
# nothing is run. Sets __words, __raw (the last word as typed) and __open (its open quote).
# The names begin with __ so that they do not hide variables that the line uses.
_rmqctl_words() {
    local __rest=$1 __part __name __word= __quoted=
    local __variable='^\$(([A-Za-z_][A-Za-z0-9_]*)|[{]([A-Za-z_][A-Za-z0-9_]*)[}])'
    __words=() __raw= __open=
    while [[ -n $__rest ]]; do
        if [[ -z $__raw && $__rest == '~/'* ]]; then
            __word=$HOME __raw='~' __rest=${__rest:1}
        fi
        case $__open in
            \') __part=${__rest%%\'*} ;;
            \") __part=${__rest%%[\"\\\$]*} ;;
            *) __part=${__rest%%[[:space:]\"\'\\\$]*} ;;
        esac
        __word+=$__part __raw+=$__part __rest=${__rest:${#__part}}
        [[ -n $__rest ]] || break
        __part=${__rest:0:1}
        case $__part in
            \" | \')
                if [[ -n $__open ]]; then __open=; else __open=$__part; fi
                __quoted=1
                ;;
            \\)
                __part=${__rest:0:2}
                if [[ -n $__open && $__part != \\[\"\\\$\`] ]]; then
                    __word+=$__part
                else
                    __word+=${__part:1}
                fi
                ;;
            \$)
                # A variable name at the very end may be incomplete: bash completes it.
                if [[ $__rest =~ $__variable && $__rest != "${BASH_REMATCH[0]}" ]]; then
                    __part=${BASH_REMATCH[0]} __name=${BASH_REMATCH[2]}${BASH_REMATCH[3]}
                    __word+=${!__name-}
                else
                    [[ $__rest == '$('*')'* ]] && __part=${__rest%%')'*}
                    __word+=$__part
                fi
                ;;
            *)
                [[ -n $__word || -n $__quoted ]] && __words+=("$__word")
                __word= __raw= __quoted= __rest=${__rest:1}
                continue
                ;;
        esac
        __raw+=$__part __rest=${__rest:${#__part}}
    done
    __words+=("$__word")
}

_rmqctl() {
    local -a __words
    local __raw __open
    _rmqctl_words "${COMP_LINE:0:COMP_POINT}"
    local -a words=("${__words[@]}")
    # Only what follows the last = or : or opening quote is replaced.
    _rmqctl_words "${__raw%"$2"}"
    local IFS=$'\n' line before=${__words[0]}
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        line=${line#"$before"}
        case $__open in
            \') line=${line//\'/\'\\\'\'} ;;
            \")
                line=${line//\\/\\\\} line=${line//\"/\\\"}
                line=${line//\$/\\\$} line=${line//\`/\\\`}
                ;;
            *)
                printf -v line '%q' "$line"
                line=${line//\\,/,}
                ;;
        esac
        COMPREPLY+=("$line")
    done < <(_RMQCTL_COMPLETE=1 "${words[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _rmqctl rmqctl
"""

_ZSH: Final = r"""#compdef rmqctl
# zsh completion for rmqctl; made by `rmqctl completion zsh`.
# Put it as _rmqctl into a folder of $fpath, or load it with:  source <(rmqctl completion zsh)

# A word as a command gets it: quotes, backslashes and variables are resolved, nothing is run.
_rmqctl_plain() {
    emulate -L zsh
    local __rest=$1 __open= __part MATCH MBEGIN MEND
    local -a match mbegin mend
    REPLY=
    [[ $__rest == '~/'* ]] && REPLY=$HOME __rest=${__rest[2,-1]}
    while [[ -n $__rest ]]; do
        __part=${__rest%%[\"\'\\\$]*}
        REPLY+=$__part __rest=${__rest[$#__part+1,-1]}
        [[ -n $__rest ]] || break
        __part=${__rest[1]}
        case $__open$__part in
            (\"\"|\'\') __open= ;;
            (\"|\') __open=$__part ;;
            (\'*|\"\') REPLY+=$__part ;;
            (*\\)
                __part=${__rest[1,2]}
                [[ -n $__open && $__part != \\[\"\\\$\`] ]] && REPLY+=\\
                REPLY+=${__part[2]}
                ;;
            (*)
                # A variable name at the very end may be incomplete: zsh completes it.
                if [[ $__rest =~ '^\$(([A-Za-z_][A-Za-z0-9_]*)|[{]([A-Za-z_][A-Za-z0-9_]*)[}])' &&
                    $__rest != $MATCH ]]
                then
                    __part=$MATCH
                    REPLY+=${(P)${:-$match[2]$match[3]}}
                else
                    REPLY+=$__part
                fi
                ;;
        esac
        __rest=${__rest[$#__part+1,-1]}
    done
}

_rmqctl() {
    local -a __typed lines items
    local REPLY __word
    for __word in "${(@)words[1,CURRENT-1]}"; do
        _rmqctl_plain "$__word "
        REPLY=${REPLY% }
        [[ -z $REPLY && $__word == \$* ]] || __typed+=("$REPLY")  # as unset variables vanish
    done
    _rmqctl_plain "${words[CURRENT]}"
    __typed+=("$REPLY")
    local line value
    lines=("${(@f)$(_RMQCTL_COMPLETE=1 "${(@)__typed}" 2>/dev/null)}")
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
    set -l current (commandline -ct | string trim --left --chars '"\'' | string unescape)
    set -l words (commandline -opc) "$current"
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


@uses_no_store
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
