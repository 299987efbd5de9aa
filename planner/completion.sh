# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# Completion of atp-plan for bash. Commands and options are what its own help lists, so that this file names none; it is
# asked once per command and shell. Installed as share/bash-completion/completions/atp-plan; or by hand:
# `. planner/completion.sh`.

declare -gA _atp_plan_help

# Prints the help of a command, or the general one for "".
_atp_plan_help() {
    local key=${1:-.}
    if [[ -z ${_atp_plan_help[$key]:-} ]]; then
        _atp_plan_help[$key]=$("${COMP_WORDS[0]}" ${1:+"$1"} --help 2>/dev/null)
    fi
    printf '%s\n' "${_atp_plan_help[$key]}"
}

_atp_plan() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' commands options value i
    # `--option=value` comes in three words.
    if [[ $word == '=' ]]; then word=''; fi
    if [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
    commands=$(_atp_plan_help '' | sed -n '/^Options:/q; s/^  \([a-z][a-z]*\) .*/\1/p')
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ $'\n'$commands$'\n' == *$'\n'"${COMP_WORDS[i]}"$'\n'* ]]; then
            command=${COMP_WORDS[i]}
            break
        fi
    done
    # No command is solve.
    options=$(_atp_plan_help "${command:-solve}" | sed -n '1,/^Options:/d; s/^  \(-.*\)/\1/p')
    # What the option before the cursor takes, in capitals: "  -o, --output FILE   write ...".
    value=$(awk -v option="$before" '{
        for (i = 1; i <= NF && $i ~ /^-/; i++) { sub(/,$/, "", $i); if ($i == option) found = 1 }
        if (found) { if ($i ~ /^[A-Z]+$/) print $i; exit }
    }' <<<"$options")
    COMPREPLY=()
    case $value in
    '') ;;
    FILE | PLAN | PROFILE | PAGE)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        return
        ;;
    *) return ;; # a number: there is nothing to propose
    esac
    if [[ $word == -* ]]; then
        options=$(grep -o -e '^-[^ ]*\( --[a-z-]*\)*' <<<"$options" | tr -s ', ' '\n')
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    compopt -o filenames 2>/dev/null
    if [[ -z $command ]]; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$commands" -- "$word")
    fi
}

complete -F _atp_plan atp-plan
