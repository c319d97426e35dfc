#!/bin/sh
# Runs a compiler through ccache, so that each clone of this repository uses what another one compiled:
# ccache.sh CCACHE COMPILER ARGUMENTS...
#
# Headers are precompiled without ccache. GCC stores the time of each header in the result. If a cached result were used after another
# checkout wrote the same headers at another time, `#pragma once` would fail and each class would be defined twice. The result differs
# each time; so a checksum of the text that was precompiled stands beside it, by which ccache knows it.
ccache=$1
shift
CCACHE_BASEDIR=$(cd "${0%/*}/.." && pwd) CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
# Required for cache hits of files that are compiled with precompiled headers.
CCACHE_SLOPPINESS=pch_defines,time_macros
export CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_PCH_EXTSUM CCACHE_SLOPPINESS

case " $* " in
*" c++-header "*)
    # Of headers the text is asked for: without the names of the output and of the list of dependencies, and without Clang's option that
    # asks for another form. What was precompiled before goes first, since GCC would name it instead of the text.
    (
        before=
        for word; do
            shift
            case $before$word in
            -o | -MT | -MF | -Xclang) before=$word ;;
            -o*) output=$word before= ;;
            -MD | -MT* | -MF* | -Xclang-emit-pch) before= ;;
            -Xclang*) set -- "$@" -Xclang "$word" && before= ;;
            *) set -- "$@" "$word" ;;
            esac
        done
        rm -f "$output"
        "$@" -E -o - | sed "s|$CCACHE_BASEDIR||g" | sha256sum >"$output.sum"
    )
    exec "$@"
    ;;
esac

# Clang's precompiled headers are named by options behind -Xclang, where ccache leaves absolute paths as they are.
before=
for word; do
    shift
    case $before$word in
    -Xclang) before=$word ;;
    -Xclang"$CCACHE_BASEDIR"/*) set -- "$@" -Xclang "$(realpath --no-symlinks --relative-to=. "$word")" && before= ;;
    -Xclang*) set -- "$@" -Xclang "$word" && before= ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec "$ccache" "$@"
