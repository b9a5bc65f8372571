# PowerShell completion for rmqctl; made by `rmqctl completion powershell`.
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
