# fish completion for rmqctl; made by `rmqctl completion fish`.
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
