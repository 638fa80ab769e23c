#!/bin/sh
# Makes .venv where there is none and installs into it what a lock names, then the project itself, editable.
# Every branch is for a machine that lacks something: uv, or pip, or the venv module's ensurepip (Debian keeps it apart).
# Installs nothing outside .venv, and nothing that the lock does not name.
#
# usage: scripts/set-up.sh LOCK      PYTHON=... chooses the interpreter, NO_UV=1 leaves uv aside
set -eu
cd "$(dirname "$0")/.."
lock=$1
venv=.venv

say() { printf 'set-up: %s\n' "$*" >&2; }
stop() { say "$@"; exit 1; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
# `command -v uv` is not enough: a pyenv shim may be there without a uv behind it.
has_uv() { [ -z "${NO_UV:-}" ] && uv --version >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then printf '%s\n' "$candidate"; return; fi
    done
}

make_venv() {
    if [ -e "$venv" ]; then
        [ -f "$venv/pyvenv.cfg" ] || stop "$venv is in the way and is no virtual environment"
        say "$venv does not run Python 3.11 or later: made anew"
        rm -rf "$venv"
    fi
    python=$(find_python)
    if has_uv; then
        # Without an interpreter at hand uv looks for one of its own.
        uv venv -q --python "${python:->=3.11}" "$venv"
        return
    fi
    [ -n "$python" ] || stop "Python 3.11 or later is needed; here is $("${PYTHON:-python3}" --version 2>/dev/null || echo none)"
    # Tried before it is used: a venv that fails half-way leaves half a folder.
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -m venv "$venv" || { rm -rf "$venv"; stop "$python -m venv failed"; }
    elif "$python" -c 'import venv' 2>/dev/null && "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --without-pip "$venv" || { rm -rf "$venv"; stop "$python -m venv --without-pip failed"; }
    else
        stop "$python has neither ensurepip nor pip: install one of the packages python3-venv and python3-pip, or uv"
    fi
}

install() {
    if has_uv; then
        uv pip install -q --python "$venv/bin/python" "$@"
    elif "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@"
    else
        python=$(find_python)
        [ -n "$python" ] && "$python" -m pip --version >/dev/null 2>&1 || stop "no pip for $venv: remove it and try again"
        "$python" -m pip --python "$venv/bin/python" install -q --disable-pip-version-check "$@"
    fi
}

new_enough "$venv/bin/python" || make_venv
say "installing $lock into $venv"
install --require-hashes -r "$lock"
# The build backend is in the lock: no isolated environment fetches another one.
install --no-deps --no-build-isolation -e .
