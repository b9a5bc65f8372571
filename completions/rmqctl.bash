# bash completion for rmqctl; made by `rmqctl completion bash`.
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
