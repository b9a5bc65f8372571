# bash completion for rmqctl; made by `rmqctl completion bash`.
# Load it once with:  source <(rmqctl completion bash)
_rmqctl() {
    local IFS=$'\n' line current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        # bash splits words at = and shows only what comes after it.
        [[ $line == --*=* && $current != --* ]] && line=${line#*=}
        printf -v line '%q' "$line"
        COMPREPLY+=("${line//\\,/,}")
    done < <(_RMQCTL_COMPLETE=1 "${COMP_WORDS[0]}" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _rmqctl rmqctl
