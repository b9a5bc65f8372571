# bash completion for rmqctl; made by `rmqctl completion bash`.
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
