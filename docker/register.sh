#!/bin/sh
# Runs once after the server is up: the namespace, and the search attributes of runs.
set -eu

temporal operator namespace describe --namespace default >/dev/null 2>&1 ||
    temporal operator namespace create --namespace default --retention 30d

known=$(temporal operator search-attribute list --namespace default)
add() {
    case $known in
    *"$1"*) ;;
    *) temporal operator search-attribute create --namespace default --name "$1" --type "$2" ;;
    esac
}
add HarnessState Keyword
add HarnessRepo Keyword
add HarnessModel Keyword
add HarnessStep Int
add HarnessSpendUsd Double
